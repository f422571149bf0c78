/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sets curses up, and the way back: everything that restores the terminal is prepared beforehand,
 * so that a signal handler needs only write() and tcsetattr().
 */
#define NCURSES_WIDECHAR 1

#include "cli/top/top_terminal.h"

#include "base/shared_mapping.h"
#include "cli/top/top_view.h"

#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#define ESCAPE_DELAY_MS 25

/* What curses takes for TERMINFO: the description of xterm itself, made by infocmp(1). */
static const char xterm[] =
#include "terminal_xterm.inc"
	;

static struct {
	bool is_open;
	bool ascii;
	bool colours;
	struct termios before;
	char back[256]; /* the bytes that restore the terminal */
	size_t back_nr;
} terminal;

/* SIGBUS has a handler of its own, which calls give_back(). */
static const int crashes[] = {SIGSEGV, SIGFPE, SIGILL, SIGABRT};
static struct sigaction crash_before[sizeof(crashes) / sizeof(crashes[0])];

static void give_back(void)
{
	ssize_t ignored = write(STDOUT_FILENO, terminal.back, terminal.back_nr);

	(void)ignored;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
}

/* Whoever handled it before does so next: what failed is tried again when this returns. */
static void on_crash(int sig)
{
	give_back();
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		if (crashes[i] == sig)
			(void)sigaction(sig, &crash_before[i], NULL);
	(void)raise(sig);
}

/* A capability's bytes, without the delays that very old terminals need. */
static void add_back(const char *name)
{
	const char *text = tigetstr((char *)name);

	if (!text || text == (const char *)-1)
		return;
	while (*text && terminal.back_nr < sizeof(terminal.back)) {
		if (text[0] == '$' && text[1] == '<' && strchr(text, '>'))
			text = strchr(text, '>') + 1;
		else
			terminal.back[terminal.back_nr++] = *text++;
	}
}

static void prepare_way_back(void)
{
	struct sigaction sa = {.sa_handler = on_crash};

	terminal.back_nr = 0;
	add_back("sgr0");
	add_back("cnorm");
	add_back("rmkx");
	add_back("rmcup");
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		(void)sigaction(crashes[i], &sa, &crash_before[i]);
	shared_mapping_before_death(give_back);
}

static void choose_colours(void)
{
	const char *no = getenv("NO_COLOR");

	terminal.colours = !(no && *no) && has_colors() && start_color() == OK;
	if (!terminal.colours)
		return;
	(void)use_default_colors();
	(void)init_pair(TOP_BAR, COLOR_GREEN, -1);
	(void)init_pair(TOP_ALARM, COLOR_RED, -1);
}

/* The user's character set is UTF-8, by the variables that setlocale() reads. */
static bool user_has_utf8(void)
{
	static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	const char *locale = "";

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && !*locale; i++)
		locale = getenv(variables[i]) ? getenv(variables[i]) : "";
	return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
}

/* Chooses UTF-8, if the user and the machine have it, or ASCII. Of other character sets nothing is
 * loaded: their modules need the C library that they came with. The user's own locale is often not
 * installed where gpuprof runs, C.UTF-8 nearly always is. Of characters only: numbers keep their
 * points. */
static void choose_characters(void)
{
	terminal.ascii =
		!user_has_utf8() || (!setlocale(LC_CTYPE, "C.UTF-8") && !setlocale(LC_CTYPE, ""));
}

/* The kind of terminal understands what xterm does. */
static bool is_like_xterm(const char *kind)
{
	static const char *const kinds[] = {"xterm", "screen", "tmux",	    "rxvt", "vt100",
					    "vt220", "linux",  "alacritty", "foot", "kitty"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(kind, kinds[i], strlen(kinds[i])))
			return true;
	return false;
}

/* The terminal as this machine describes it, else as xterm: many machines describe few terminals,
 * and containers none. */
static SCREEN *open_screen(void)
{
	SCREEN *screen = newterm(NULL, stdout, stdin);
	const char *kind = getenv("TERM");

	if (screen || !kind || !is_like_xterm(kind) || setenv("TERMINFO", xterm, 1))
		return screen;
	return newterm("xterm", stdout, stdin);
}

bool terminal_open(bool *ret_ascii)
{
	SCREEN *screen;

	if (tcgetattr(STDIN_FILENO, &terminal.before))
		return false;
	choose_characters();
	screen = open_screen();
	if (!screen)
		return false;
	(void)set_term(screen);
	terminal.is_open = true;
	prepare_way_back();
	choose_colours();
	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)keypad(stdscr, TRUE);
	(void)nodelay(stdscr, TRUE);
	(void)set_escdelay(ESCAPE_DELAY_MS);
	(void)curs_set(0);
	*ret_ascii = terminal.ascii;
	return true;
}

void terminal_close(void)
{
	if (!terminal.is_open)
		return;
	terminal.is_open = false;
	(void)endwin();
	shared_mapping_before_death(NULL);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		(void)sigaction(crashes[i], &crash_before[i], NULL);
}

int terminal_rows(void)
{
	return LINES;
}

int terminal_columns(void)
{
	return COLS;
}

static attr_t look_of(enum top_mark mark)
{
	switch (mark) {
	case TOP_BOLD:
		return A_BOLD;
	case TOP_BAR:
		return terminal.colours ? COLOR_PAIR(TOP_BAR) : A_NORMAL;
	case TOP_ALARM:
		return A_BOLD | (terminal.colours ? COLOR_PAIR(TOP_ALARM) : A_REVERSE);
	default:
		return A_NORMAL;
	}
}

/* One character of `bytes` bytes; its columns. Where UTF-8 cannot be shown, or it is no character,
 * a '?'. */
static int put_character(const char *text, size_t *ret_bytes, int room)
{
	mbstate_t state = {0};
	wchar_t c;
	size_t bytes;
	int width;

	if ((unsigned char)*text < 0x80 || terminal.ascii) {
		/* The rest of a character in UTF-8 takes no place. */
		for (bytes = 1; (text[bytes] & 0xc0) == 0x80 && (unsigned char)*text >= 0x80;)
			bytes++;
		*ret_bytes = bytes;
		(void)addch((unsigned char)*text < 0x80 ? (chtype)*text : '?');
		return 1;
	}
	bytes = mbrtowc(&c, text, strlen(text), &state);
	width = bytes < (size_t)-2 ? wcwidth(c) : -1;
	*ret_bytes = width < 0 ? 1 : bytes;
	if (width < 0)
		(void)addch('?');
	else if (width <= room)
		(void)addnstr(text, (int)bytes);
	return width < 0 ? 1 : width;
}

void terminal_put(int row, enum terminal_style style, const char *text)
{
	attr_t base = style == TERMINAL_REVERSE ? A_REVERSE
		      : style == TERMINAL_BOLD	? A_BOLD
						: A_NORMAL;
	int at = 0;

	if (row < 0 || row >= LINES || move(row, 0) == ERR)
		return;
	(void)attrset((int)base);
	while (*text && at < COLS) {
		size_t bytes = 1;

		if (*text < ' ' && *text > 0)
			(void)attrset((int)(base | look_of((enum top_mark) * text)));
		else
			at += put_character(text, &bytes, COLS - at);
		text += bytes;
	}
	(void)attrset((int)base);
	while (style == TERMINAL_REVERSE && at++ < COLS)
		(void)addch(' ');
	(void)attrset(A_NORMAL);
}

void terminal_clear(void)
{
	(void)erase();
}

void terminal_show(void)
{
	(void)refresh();
}

int terminal_key(void)
{
	static const struct {
		int curses, ours;
	} keys[] = {
		{ERR, TERMINAL_NONE},		{'\r', TERMINAL_ENTER},
		{'\n', TERMINAL_ENTER},		{KEY_ENTER, TERMINAL_ENTER},
		{27, TERMINAL_ESCAPE},		{KEY_BACKSPACE, TERMINAL_BACKSPACE},
		{0x7f, TERMINAL_BACKSPACE},	{'\b', TERMINAL_BACKSPACE},
		{KEY_UP, TERMINAL_UP},		{KEY_DOWN, TERMINAL_DOWN},
		{KEY_PPAGE, TERMINAL_PAGE_UP},	{KEY_NPAGE, TERMINAL_PAGE_DOWN},
		{KEY_HOME, TERMINAL_HOME},	{KEY_END, TERMINAL_END},
		{KEY_RESIZE, TERMINAL_RESIZED},
	};
	int key = getch();

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].curses == key)
			return keys[i].ours;
	return key < 256 ? key : TERMINAL_OTHER;
}
