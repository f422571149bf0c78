# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Builds gpuprof out of tree, under $(O). `make help` lists the targets.

SHELL := /bin/bash
MAKEFLAGS += -r
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
.DEFAULT_GOAL := all

O ?= build
CC = gcc
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
ARCH := $(shell uname -m | sed 's/aarch64/arm64/')
VMLINUX_H ?= vmlinux/$(ARCH)/vmlinux.h
PREFIX ?= /usr/local
DESTDIR ?=
PYTHON ?= /usr/bin/python3
RELEASE := $(shell sed -n 's/^release //p' userspace/share/version)

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)';)

ROOMS := base inspect probe inject recording capture timeline output daemon cli
OPT := $(if $(DEBUG),-O0 -g,-O2 -g)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter \
	$(if $(WERROR),-Werror)
CPPFLAGS_ALL := -D_GNU_SOURCE -DGPUPROF_VERSION='"$(RELEASE)"' -Iuserspace -Ibpf -I$(O)
# Hardening, because root runs this tool on hostile input. The checked versions of libc's functions
# need optimization, and they hide calls from the sanitizers.
FORTIFY := $(shell echo '\#include <features.h>' | \
	$(CC) -O2 -D_FORTIFY_SOURCE=3 -Werror -E - >/dev/null 2>&1 && echo 3 || echo 2)
HARDEN := -fstack-protector-strong -fstack-clash-protection $(if $(filter x86_64,$(ARCH)),-fcf-protection) \
	$(if $(DEBUG)$(SAN),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY))
# Keeps the paths of this machine out of the build.
PREFIX_MAP := -ffile-prefix-map=$(CURDIR)=. $(if $(filter build,$(O)),,-ffile-prefix-map=$(O)=build)
CFLAGS_ALL := -std=gnu11 $(OPT) $(WARN) $(HARDEN) $(PREFIX_MAP) -fPIE $(SANFLAGS) $(if $(COVERAGE),--coverage) $(CFLAGS)
LDFLAGS_ALL := -pie -Wl,-z,relro,-z,now,-z,noexecstack $(SANFLAGS) $(if $(COVERAGE),--coverage) $(LDFLAGS)
LIBS := -liberty -lsodium -lmicrohttpd -lbpf -lcapstone -ldw -lelf -llzma -lzstd -lz -lncursesw -ltinfo -lm -lpthread -ldl
BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(if $(filter x86_64,$(ARCH)),x86,$(ARCH)) \
	-Wall -Wextra -Wno-unused-parameter $(PREFIX_MAP) -Ibpf -include $(VMLINUX_H) \
	-idirafter /usr/include/$(ARCH)-linux-gnu $(if $(WERROR),-Werror)

BPF_SRC := $(wildcard bpf/*.bpf.c)
BPF_OBJ := $(BPF_SRC:bpf/%.bpf.c=$(O)/bpf/%.bpf.o)
SKEL := $(O)/gpuprof.skel.h

SRC := $(foreach r,$(ROOMS),$(wildcard userspace/$(r)/*.c userspace/$(r)/*/*.c))
OBJ := $(SRC:%.c=$(O)/%.o)
LIB_OBJ := $(filter-out $(O)/userspace/cli/%,$(OBJ))
# The objects of the gpuprof executable, besides the library.
GPUPROF_OBJ := $(O)/userspace/main.o $(filter $(O)/userspace/cli/%,$(OBJ)) $(O)/version.o
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(O)/tests/%)
UNIT_HELP_SRC := $(filter-out $(UNIT_SRC),$(wildcard tests/unit/*.c))
UNIT_HELP_OBJ := $(UNIT_HELP_SRC:%.c=$(O)/%.o)

# A changed flag rebuilds everything that depends on it. Moving the tree changes no flag.
STAMP := $(O)/flags
FLAGS_NOW := $(subst $(CURDIR),.,$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) $(BPF_CFLAGS))
$(shell mkdir -p $(O); echo '$(subst ','\'',$(FLAGS_NOW))' | cmp -s - $(STAMP) || \
	echo '$(subst ','\'',$(FLAGS_NOW))' > $(STAMP))

-include $(wildcard userspace/*/*.mk tests/*/*.mk)

.PHONY: all
all: setup-build $(O)/gpuprof $(ALL_EXTRA)

# Goals that test or try gpuprof install missing packages; other goals stop if one is missing.
INSTALLING := check% bench% demo soak setup-%
setup = $(if $(GPUPROF_NO_SETUP),:,sh tests/setup.sh \
	$(if $(filter $(INSTALLING),$(MAKECMDGOALS)),,--check) $(1))

.PHONY: setup-build
setup-build:
	$(Q)$(call setup,build)

# Installs the packages for a build, or for the purposes in FOR= (see tests/setup.sh).
.PHONY: deps
deps:
	$(Q)sh tests/setup.sh $(or $(FOR),build)

$(O)/bpf/%.bpf.o: bpf/%.bpf.c $(STAMP) | setup-build
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@

$(O)/gpuprof.bpf.o: $(BPF_OBJ)
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(SKEL): $(O)/gpuprof.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name gpuprof_bpf > $@

$(O)/userspace/%.o: userspace/%.c $(STAMP) | setup-build $(SKEL)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(O)/tests/%.o: tests/%.c $(STAMP) | setup-build $(SKEL)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(O)/libgpuprof.a: $(LIB_OBJ)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(O)/gpuprof: $(GPUPROF_OBJ) $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@

$(O)/tests/test_%: $(O)/tests/unit/test_%.o $(UNIT_HELP_OBJ) $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -lcmocka -o $@

$(O)/tests/test_cli_%: $(O)/tests/unit/test_cli_%.o $(UNIT_HELP_OBJ) \
		$(filter $(O)/userspace/cli/%,$(OBJ)) $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -lcmocka -o $@

.PHONY: unit-build
unit-build: $(UNIT_BIN)

.PHONY: clean
clean:
	rm -rf $(O)

.PHONY: help
help:
	@echo 'Build'
	@echo '  make                builds $(O)/gpuprof'
	@echo '  make deps           installs the packages that a build needs (FOR="check dist": others)'
	@echo '  make install        installs it, its pages and examples (DESTDIR= PREFIX=/usr/local)'
	@echo '  make uninstall      removes them'
	@echo '  make dist           packages with one static file: tar.gz, .deb, .rpm, wheel, in $(O)/dist'
	@echo '  make dist-exe       the static file alone'
	@echo '  make clean          removes $(O)'
	@echo 'Try'
	@echo '  make demo           profiles a ResNet-18 training and shows the results'
	@echo 'Test'
	@echo '  make check          everything that needs neither GPU nor network; the sum of these:'
	@echo '    check-lint        the lints (one: check-style, check-headers, check-layers)'
	@echo '    check-unit        unit tests; unit-build only builds them'
	@echo '    check-fuzz        fuzzing, briefly (FUZZ_RUNS= FUZZ_SECONDS=); fuzz only builds it'
	@echo '    check-integration integration tests (PYTEST_ARGS="-k test_ctl")'
	@echo '    check-page        HTML pages in a browser'
	@echo '    check-san         unit and marked integration tests with ASan and UBSan'
	@echo '  make check-matrix   the version-dependent tests on PyTorch 2.6 and 2.14'
	@echo '  make check-dist     the packages, on four releases of Debian and by pip (DIST_PARTS=)'
	@echo '  make check-wheels   beside torch.profiler on PyPI wheels of PyTorch (downloads 7 GB)'
	@echo '  make check-cupti    the collector against the CUPTI of each CUDA from 11.7 (downloads)'
	@echo '  make check-kernels  the BPF programs, and recording, on stock kernels under QEMU (KERNELS=)'
	@echo '  make check-gpu      on real hardware; gpu-bundle makes a folder to take there'
	@echo '  make picture        the picture of README.md, from real output'
	@echo 'Run one test'
	@echo '  lint                $(PYTHON) -B tests/lint/run.py layers'
	@echo '  unit                make $(O)/tests/test_base_hash && $(O)/tests/test_base_hash'
	@echo '  integration         $(PYTHON) -B -m pytest tests/integration/test_ctl.py   (as root, after make)'
	@echo '  fuzz                make $(O)/fuzz/fuzz_elf && $(O)/fuzz/fuzz_elf -runs=20000'
	@echo 'Measure (BENCH= passes options)'
	@echo '  make bench          speed against plain and torch.profiler'
	@echo '  make bench-walk     nanoseconds per Python stack; bench-hits: per hit of each probe; bench-drain: of gpuprof per operator'
	@echo '  make bench-setup    seconds until a capture begins; bench-twins: the cost beside a twin process'
	@echo '  make bench-share    shares of CPU time beside torch.profiler'
	@echo '  make bench-timeline reading a million events; bench-unwind: unwind tables and walks'
	@echo '  make soak           100,000 stacks against the truth'
	@echo 'Variables'
	@echo '  O=dir V=1 DEBUG=1 SAN=address,undefined WERROR=1 COVERAGE=1 GPUPROF_NO_SETUP=1'
	@echo '  CC CLANG BPFTOOL VMLINUX_H PYTHON'

# The dependencies of each compiled file, from the compiler.
-include $(shell find $(O) -name '*.d' 2>/dev/null)
