# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Installs the binary (which contains the collector), the manual pages, the guide, the bash completion,
# the daemon's systemd unit and the examples.

# The version with its commit, for the gpuprof executable only.
VERSION := $(shell sh userspace/share/version.sh)
$(shell echo '$(VERSION)' | cmp -s - $(O)/version || echo '$(VERSION)' > $(O)/version)

$(O)/version.o: userspace/base/version.c $(O)/version $(STAMP)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -UGPUPROF_VERSION -DGPUPROF_VERSION='"$(VERSION)"' -c $< -o $@

INSTALLED ?= $(O)/gpuprof
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/gpuprof
EXAMPLEDIR ?= $(DOCDIR)/examples
UNITDIR ?= $(PREFIX)/lib/systemd/system
EXAMPLES := $(wildcard userspace/share/examples/*)
DOCS := $(wildcard userspace/share/doc/*)
MAN1 := $(wildcard userspace/share/man/*.1)
MAN7 := $(wildcard userspace/share/man/*.7)
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions

.PHONY: install
install: $(INSTALLED)
	install -D -m 755 $(INSTALLED) '$(DESTDIR)$(PREFIX)/bin/gpuprof'
	install -d '$(DESTDIR)$(MANDIR)/man1' '$(DESTDIR)$(MANDIR)/man7'
	install -m 644 $(MAN1) '$(DESTDIR)$(MANDIR)/man1'
	install -m 644 $(MAN7) '$(DESTDIR)$(MANDIR)/man7'
	install -D -m 644 userspace/share/gpuprof.bash '$(DESTDIR)$(COMPLETIONDIR)/gpuprof'
	install -d '$(DESTDIR)$(UNITDIR)' '$(DESTDIR)$(EXAMPLEDIR)'
	sed 's|@BINDIR@|$(PREFIX)/bin|' userspace/share/gpuprof.service > '$(DESTDIR)$(UNITDIR)/gpuprof.service'
	install -m 644 $(EXAMPLES) '$(DESTDIR)$(EXAMPLEDIR)'
	install -m 644 $(DOCS) '$(DESTDIR)$(DOCDIR)'

.PHONY: uninstall
uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/bin/gpuprof' \
		$(patsubst userspace/share/man/%,'$(DESTDIR)$(MANDIR)/man1/%',$(MAN1)) \
		$(patsubst userspace/share/man/%,'$(DESTDIR)$(MANDIR)/man7/%',$(MAN7)) \
		$(patsubst userspace/share/doc/%,'$(DESTDIR)$(DOCDIR)/%',$(DOCS)) \
		'$(DESTDIR)$(COMPLETIONDIR)/gpuprof' '$(DESTDIR)$(UNITDIR)/gpuprof.service' \
		$(patsubst userspace/share/examples/%,'$(DESTDIR)$(EXAMPLEDIR)/%',$(EXAMPLES))
