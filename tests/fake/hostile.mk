# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The hostile process of tests/integration/test_hostile.py: built plain, whatever SAN= says.

ALL_EXTRA += $(O)/tests/fake/hostile_target

$(O)/tests/fake/hostile_target: tests/fake/hostile_target.c tests/fake/hostile.mk $(STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -Ibpf $(filter-out -Wunused-result,$(WARN)) \
		-Wno-unused-result $< -lpthread -ldl -o $@
