# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The description of xterm inside gpuprof, for machines that have none.

$(O)/terminal_xterm.inc: | setup-build
	$(call say,TERM,$@)
	$(Q)infocmp -0 -q -Q2 xterm | sed 's/.*/"&"/' > $@
	$(Q)grep -q '^"b64:' $@

$(O)/userspace/cli/top/top_terminal.o: $(O)/terminal_xterm.inc
