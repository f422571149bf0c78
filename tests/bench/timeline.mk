# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `make bench-timeline`: the time from a recording of a million ops to its table and trace.

TIMELINE_BENCH := $(O)/tests/timeline_bench

$(TIMELINE_BENCH): $(O)/tests/bench/timeline_bench.o $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@

.PHONY: bench-timeline
bench-timeline: $(TIMELINE_BENCH)
	$(Q)$(TIMELINE_BENCH) --make 1000000 $(TIMELINE_BENCH).gpuprof

-include $(O)/tests/bench/timeline_bench.d
