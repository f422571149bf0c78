# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Fuzz targets: each tests/fuzz/fuzz_NAME.c is one libFuzzer program, linked with the rooms that read
# what is not trusted and with tests/unit's helpers, all compiled by clang with the sanitizers, under
# $(O)/fuzz. A target writes its own seeds (see fuzz_seed.h). `make fuzz` builds them, `make
# check-fuzz` runs each for a bounded while from the same start; FUZZ_RUNS and FUZZ_SECONDS make it
# longer.

FUZZ_O := $(O)/fuzz
FUZZ_ROOMS := base inspect recording timeline output
FUZZ_RUNS ?= 20000
FUZZ_SECONDS ?= 20
FUZZ_CFLAGS := -std=gnu11 -O1 -g $(WARN) -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=undefined -fno-omit-frame-pointer
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(FUZZ_O)/%)
# The pages of *_html.c are built elsewhere, and no target needs them.
FUZZ_LIB_SRC := $(filter-out %_html.c,$(foreach r,$(FUZZ_ROOMS), \
	$(filter userspace/$(r)/%,$(SRC)))) userspace/probe/plan/code.c userspace/probe/plan/code_exits.c \
	userspace/probe/plan/names.c userspace/probe/plan/schemas.c \
	userspace/daemon/request.c userspace/daemon/listen.c userspace/daemon/recording_store.c \
	userspace/daemon/totals.c userspace/daemon/metrics.c $(UNIT_HELP_SRC)
FUZZ_LIB_OBJ := $(FUZZ_LIB_SRC:%.c=$(FUZZ_O)/%.o)

$(FUZZ_O)/%.o: %.c $(STAMP) tests/fuzz/fuzz.mk | setup-build
	$(call say,FUZZCC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS_ALL) -Itests $(FUZZ_CFLAGS) -MMD -MP -c $< -o $@

# Kernel programs, compiled for the host: what they do not have static is nobody else's there.
FUZZ_KERNEL_OBJ := $(FUZZ_O)/tests/fuzz/fuzz_python.o $(FUZZ_O)/tests/fuzz/fuzz_unwind_walk.o
$(FUZZ_KERNEL_OBJ): CPPFLAGS_ALL := -Itests/fuzz/bpf_host $(CPPFLAGS_ALL)
$(FUZZ_KERNEL_OBJ): FUZZ_CFLAGS += -Wno-missing-prototypes

$(addprefix $(FUZZ_O)/userspace/output/,pprof/pprof.o pprof/pprof_tables.o perfetto/perfetto_packet.o): $(addsuffix .h,$(PB))
$(FUZZ_O)/libgpuprof.a: $(FUZZ_LIB_OBJ) $(PB_OBJ)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(FUZZ_O)/fuzz_%: $(FUZZ_O)/tests/fuzz/fuzz_%.o $(FUZZ_O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CLANG) -fsanitize=fuzzer,address,undefined $^ $(LIBS) -o $@

# What grows in fuzz_lines.
$(FUZZ_O)/fuzz_lines: | $(FUZZ_O)/lines.so
$(FUZZ_O)/lines.so: tests/unwind/lines.c tests/fuzz/fuzz.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -g -O2 -fPIC -shared -nostdlib $< -o $@

.PHONY: fuzz
fuzz: $(FUZZ_BIN)

.PHONY: check-fuzz
check-fuzz: $(FUZZ_BIN)
	$(Q)for t in $(FUZZ_BIN); do \
		echo "== $$t"; \
		rm -rf $$t.corpus; mkdir -p $$t.corpus; \
		$$t -runs=$(FUZZ_RUNS) -seed=1 -max_total_time=$(FUZZ_SECONDS) -max_len=65536 \
			-timeout=120 -artifact_prefix=$$t. -verbosity=0 $$t.corpus \
			> $$t.log 2>&1 || { tail -n 60 $$t.log; exit 1; }; \
		ls $$t.corpus | grep -q . || { echo "$$t: no seeds"; exit 1; }; \
	done
