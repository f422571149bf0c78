# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `make bench-unwind`: time and memory of the unwind tables of UNWIND_FILES; with UNWIND_PID= also
# the kernel's time for a native stack of that process, by depth.

UNWIND_BENCH := $(O)/tests/unwind_bench
UNWIND_FILES ?= $(firstword $(wildcard /usr/lib/python3/dist-packages/torch/lib/libtorch_cpu.so)) \
	/lib/x86_64-linux-gnu/libc.so.6 /usr/bin/python3

$(UNWIND_BENCH): $(O)/tests/bench/unwind_bench.o $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@

.PHONY: bench-unwind
bench-unwind: $(UNWIND_BENCH) unwind-test-build
	$(Q)$(UNWIND_BENCH) $(UNWIND_FILES)
	$(Q)$(if $(UNWIND_PID),$(AS_ROOT) $(O)/tests/unwind/check --time $(UNWIND_PID) 2000 60)

-include $(O)/tests/bench/unwind_bench.d
