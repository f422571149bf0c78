# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# For tests/integration/test_inject.py: the driver, the library it injects, the traced process.

INJECT_TEST := $(O)/tests/fake/injector $(O)/tests/fake/injected.so $(O)/tests/fake/inject_target \
	$(O)/tests/fake/inject_target_static $(O)/tests/fake/libown_thread_malloc.so
ALL_EXTRA += $(INJECT_TEST)

.PHONY: inject-test-build
inject-test-build: $(INJECT_TEST)

$(O)/tests/fake/injector: $(O)/tests/fake/injector.o $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -Wl,--wrap=ptrace,--wrap=pwrite $^ $(LIBS) -o $@

# These run inside the traced process, so they are built plain, whatever SAN= says.
$(O)/tests/fake/injected.so: tests/fake/injected.c tests/fake/inject.mk $(STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden $(WARN) -shared -Wl,-soname,gpuprof-test $< -lm -lpthread -o $@

$(O)/tests/fake/libown_thread_malloc.so: tests/fake/own_thread.c tests/fake/inject.mk $(STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC $(WARN) -shared $< -lpthread -o $@

$(O)/tests/fake/inject_target: tests/fake/inject_target.c tests/fake/inject.mk $(STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) $< -lpthread -ldl -o $@

$(O)/tests/fake/inject_target_static: tests/fake/inject_target.c tests/fake/inject.mk $(STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -static -DNO_LOADER $< -lpthread -o $@
