# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The pages in a real browser: make_page writes them, pytest drives Chromium. speedscope, the viewer
# for the traces, comes from npm like the page's own packages.

PAGE_TESTS := build/page-tests

MAKE_PAGE_OBJ := $(addprefix $(O)/tests/,page/make_page.o page/make_trace.o unit/memory_example.o \
	unit/stack_example.o unit/nasty_names.o)

$(O)/tests/make_page: $(MAKE_PAGE_OBJ) $(O)/libgpuprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@

.PHONY: page-packages
page-packages: | setup-build
	$(Q)sh userspace/output/page/build.sh $(PAGE_TESTS) tests/page

.PHONY: check-page
check-page: $(O)/tests/make_page page-packages
	$(Q)GPUPROF_BUILD=$(abspath $(O)) GPUPROF_VIEWERS=$(abspath $(PAGE_TESTS)) \
		$(PYTHON) -B -m pytest -q -p no:cacheprovider tests/page

# The picture of README.md.
.PHONY: picture
picture: all
	$(Q)$(AS_ROOT) env GPUPROF=$(abspath $(O))/gpuprof $(PYTHON) -B tests/page/picture.py userspace/share/doc/attach.svg
