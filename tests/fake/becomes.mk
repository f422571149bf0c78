# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What tests/integration/test_children.py needs: a program that no loader starts. It stands for
# somebody else's, so it is built plain, whatever SAN= says.

ALL_EXTRA += $(O)/tests/fake/becomes

$(O)/tests/fake/becomes: tests/fake/becomes.c tests/fake/becomes.mk $(STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -static $< -o $@
