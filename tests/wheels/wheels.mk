# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `make check-wheels`: names, calls and the rest beside torch.profiler's on PyPI's wheels of PyTorch, which
# are downloaded (7 GB) and unpacked, one after the other. WHEELS= names some of them.

$(O)/tests/wheels/show_plan: $(O)/tests/wheels/plan.o $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@

-include $(O)/tests/wheels/plan.d

.PHONY: check-wheels
check-wheels: setup-matrix all $(O)/tests/wheels/show_plan
	$(Q)$(AS_ROOT) env GPUPROF=$(abspath $(O))/gpuprof SHOW_PLAN=$(abspath $(O))/tests/wheels/show_plan \
		$(PYTHON) -B tests/wheels/run.py $(WHEELS)
