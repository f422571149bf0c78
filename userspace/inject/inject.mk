# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The machine code that userspace/inject lends to a thread of the target.

LIB_OBJ += $(O)/userspace/inject/trampoline.o

$(O)/userspace/inject/%.o: userspace/inject/%.S userspace/inject/trampoline.h $(STAMP) | setup-build
	$(call say,AS,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -c $< -o $@
