# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What tests/integration/test_unread.py preloads into gpuprof. It is built plain, whatever SAN= says:
# there gpuprof brings the sanitizers' libraries.

ALL_EXTRA += $(O)/tests/fake/fail_open.so

$(O)/tests/fake/fail_open.so: tests/fake/fail_open.c tests/fake/fail_open.mk $(STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC $(WARN) -shared $< -ldl -o $@
