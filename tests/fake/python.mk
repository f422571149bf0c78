# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What tests/integration/test_pythons.py needs besides the stand-in for PyTorch: a CPython's head. It
# stands for somebody else's program, so it is built plain, whatever SAN= says.

ALL_EXTRA += $(O)/tests/fake/fake_python

$(O)/tests/fake/fake_python: tests/fake/fake_python.c tests/fake/python.mk $(STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -rdynamic $(WARN) $< -o $@
