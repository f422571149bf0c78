# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `make check-cupti`: the collector against the CUPTI of every CUDA that is to be had as a wheel.

.PHONY: check-cupti
check-cupti: setup-check all $(COLLECTOR_TESTED) $(O)/tests/unit/collector_help.o
	$(Q)$(AS_ROOT) env GPUPROF=$(abspath $(O))/gpuprof CC=$(CC) CUPTI_LINK='$(abspath \
		$(O)/tests/unit/collector_help.o $(COLLECTOR_TESTED) $(O)/libgpuprof.a) $(LIBS) -lcmocka' \
		$(PYTHON) -B tests/cupti/check.py $(CUPTI)
