/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Wraps curses. Only top_terminal.c includes it, because its names would clash everywhere else.
 */
#ifndef GP_CLI_TOP_TOP_TERMINAL_H
#define GP_CLI_TOP_TOP_TERMINAL_H

#include <stdbool.h>

/* Takes the terminal; false: it is not known here, or is none. *ret_ascii: it cannot show UTF-8.
 * From here on a crash gives it back before it ends the process. Colours unless NO_COLOR is set. */
bool terminal_open(bool *ret_ascii);
void terminal_close(void);

/* Its size now, in characters. */
int terminal_rows(void);
int terminal_columns(void);

enum terminal_style { TERMINAL_PLAIN, TERMINAL_BOLD, TERMINAL_REVERSE };

/* Puts a line of text in place, cut to the width; TERMINAL_REVERSE fills the row. Marks in it
 * (enum top_mark) change how the rest looks. */
void terminal_put(int row, enum terminal_style style, const char *text);
void terminal_clear(void);
/* Shows everything that was put since terminal_clear(). */
void terminal_show(void);

/* Characters are themselves. */
enum terminal_key {
	TERMINAL_NONE = -1,
	TERMINAL_ENTER = 1000,
	TERMINAL_ESCAPE,
	TERMINAL_BACKSPACE,
	TERMINAL_UP,
	TERMINAL_DOWN,
	TERMINAL_PAGE_UP,
	TERMINAL_PAGE_DOWN,
	TERMINAL_HOME,
	TERMINAL_END,
	TERMINAL_RESIZED,
	TERMINAL_OTHER,
};

/* The next key, TERMINAL_NONE: none was pressed. */
int terminal_key(void);

#endif /* GP_CLI_TOP_TOP_TERMINAL_H */
