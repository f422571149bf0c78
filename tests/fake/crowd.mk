# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What tests/integration/test_daemon.py needs besides the stand-in for PyTorch: many processes with it.
# They stand for somebody else's programs, so it is built plain, whatever SAN= says.

ALL_EXTRA += $(O)/tests/fake/crowd

$(O)/tests/fake/crowd: tests/fake/crowd.c tests/fake/crowd.mk $(STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) $< -ldl -o $@
