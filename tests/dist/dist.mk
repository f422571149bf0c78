# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `make check-dist`: what `make dist` made, started and recording where people install it. DIST_PARTS=
# names some of the parts (see tests/dist/check.py).

DIST_PARTS ?=

.PHONY: check-dist
check-dist: setup-check-dist
	$(Q)$(MAKE) --no-print-directory $(O)/gpuprof dist
	$(Q)$(AS_ROOT) $(PYTHON) -B tests/dist/check.py --build $(abspath $(O)) $(DIST_PARTS)
