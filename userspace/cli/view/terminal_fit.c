/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Asks the terminal for its size. A pipe or a file gets the whole table: programs read those.
 */
#include "cli/view/terminal_fit.h"

#include <sys/ioctl.h>
#include <unistd.h>

#define TERMINAL_ROWS 20

/* 0: the terminal does not say. */
static size_t width_of(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

void terminal_fit(const struct show_options *o, struct output_table_options *text)
{
	if (!isatty(STDOUT_FILENO))
		return;
	text->columns = o->wide ? 0 : width_of(STDOUT_FILENO);
	text->sort = o->sort;
	text->hints = true;
	if (o->limit == SHOW_LIMIT_UNSAID)
		text->limit = TERMINAL_ROWS;
}
