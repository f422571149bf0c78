# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Installs the binary (which contains the collector), the manual page, the bash completion, the
# daemon's systemd unit and the examples.

# The version with its commit, for the gpuprof executable only.
VERSION := $(shell sh userspace/share/version.sh)
$(shell echo '$(VERSION)' | cmp -s - $(O)/version || echo '$(VERSION)' > $(O)/version)

$(O)/version.o: userspace/base/version.c $(O)/version $(STAMP)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -UGPUPROF_VERSION -DGPUPROF_VERSION='"$(VERSION)"' -c $< -o $@

INSTALLED ?= $(O)/gpuprof
MANDIR ?= $(PREFIX)/share/man
EXAMPLEDIR ?= $(PREFIX)/share/doc/gpuprof/examples
UNITDIR ?= $(PREFIX)/lib/systemd/system
EXAMPLES := $(wildcard userspace/share/examples/*)
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions

.PHONY: install
install: $(INSTALLED)
	install -D -m 755 $(INSTALLED) '$(DESTDIR)$(PREFIX)/bin/gpuprof'
	install -D -m 644 userspace/share/gpuprof.1 '$(DESTDIR)$(MANDIR)/man1/gpuprof.1'
	install -D -m 644 userspace/share/gpuprof.bash '$(DESTDIR)$(COMPLETIONDIR)/gpuprof'
	install -d '$(DESTDIR)$(UNITDIR)' '$(DESTDIR)$(EXAMPLEDIR)'
	sed 's|@BINDIR@|$(PREFIX)/bin|' userspace/share/gpuprof.service > '$(DESTDIR)$(UNITDIR)/gpuprof.service'
	install -m 644 $(EXAMPLES) '$(DESTDIR)$(EXAMPLEDIR)'

.PHONY: uninstall
uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/bin/gpuprof' '$(DESTDIR)$(MANDIR)/man1/gpuprof.1' \
		'$(DESTDIR)$(COMPLETIONDIR)/gpuprof' '$(DESTDIR)$(UNITDIR)/gpuprof.service' \
		$(patsubst userspace/share/examples/%,'$(DESTDIR)$(EXAMPLEDIR)/%',$(EXAMPLES))
