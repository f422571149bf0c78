# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The page of the memory timeline: npm packages and sources become two lists of bytes that
# memory_html.c includes. It does not depend on flags, so every build folder shares one.

PAGE := build/page
PAGE_SRC := $(addprefix userspace/output/page/,package.json package-lock.json build.mjs build.sh) \
	$(wildcard userspace/output/page/src/*)

$(PAGE)/page_head.inc $(PAGE)/page_tail.inc &: $(PAGE_SRC) | setup-build
	$(call say,PAGE,$(PAGE))
	$(Q)sh userspace/output/page/build.sh $(PAGE)

$(O)/userspace/output/memory_html.o: $(PAGE)/page_head.inc $(PAGE)/page_tail.inc
$(O)/userspace/output/memory_html.o: CPPFLAGS_ALL += -I$(PAGE)
