# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Installs the binary (the collector is inside it), the manual page and the bash completion.

MANDIR ?= $(PREFIX)/share/man
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions

.PHONY: install
install: $(O)/gpuprof
	install -D -m 755 $(O)/gpuprof '$(DESTDIR)$(PREFIX)/bin/gpuprof'
	install -D -m 644 userspace/share/gpuprof.1 '$(DESTDIR)$(MANDIR)/man1/gpuprof.1'
	install -D -m 644 userspace/share/gpuprof.bash '$(DESTDIR)$(COMPLETIONDIR)/gpuprof'

.PHONY: uninstall
uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/bin/gpuprof' '$(DESTDIR)$(MANDIR)/man1/gpuprof.1' \
		'$(DESTDIR)$(COMPLETIONDIR)/gpuprof'
