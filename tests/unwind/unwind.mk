# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What tests/integration/test_unwind.py needs: the comparison of the kernel's walk with libdw, and a
# program that is hard to unwind; and libraries that come and go.

UNWIND_O := $(O)/tests/unwind
UNWIND_TEST := $(UNWIND_O)/check $(UNWIND_O)/target $(UNWIND_O)/first.so $(UNWIND_O)/second.so
ALL_EXTRA += $(UNWIND_TEST)

.PHONY: unwind-test-build
unwind-test-build: $(UNWIND_TEST)

$(UNWIND_O)/sample.bpf.o: tests/unwind/sample.bpf.c $(STAMP) | setup-build
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@

$(UNWIND_O)/sample.skel.h: $(UNWIND_O)/sample.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name sample_bpf > $@

$(UNWIND_O)/check.o: $(UNWIND_O)/sample.skel.h

$(UNWIND_O)/check: $(UNWIND_O)/check.o $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@

# Built plain, whatever SAN= says: its frames are what the test is about.
$(UNWIND_O)/target: tests/unwind/target.c tests/unwind/unwind.mk $(STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -fno-builtin -fplt $(WARN) $< -lpthread -o $@

# Two libraries that differ in nothing but the name of their function.
$(UNWIND_O)/%.so: tests/unwind/caller.c tests/unwind/unwind.mk $(STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -fPIC -shared -DCALLS=$*_calls $(WARN) $< -o $@

-include $(UNWIND_O)/sample.bpf.d $(UNWIND_O)/check.d
