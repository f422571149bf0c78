/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Draws `top` with curses, which sends only what changed, and obeys its keys. The terminal is
 * restored however the process ends, by a crash too.
 */
#include "cli/top/top_screen.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/core/signals.h"
#include "cli/top/top_terminal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TURN_MS	     50
#define ROWS_MIN     8
#define COLUMNS_MIN  30
#define MESSAGES_MAX 100

enum prompt { PROMPT_NONE, PROMPT_FILTER, PROMPT_HELP };

struct screen {
	struct top *top;
	size_t first; /* row at the top of the list */
	size_t page;  /* rows that find room */
	size_t rows_nr;
	enum prompt prompt;
	char filter_before[sizeof(((struct top_view *)0)->filter)];
	char message[512];    /* at the bottom until a key is pressed */
	VEC(char *) reported; /* to be logged again once the terminal is restored */
	bool quit;
};

static void take_message(void *arg, const char *line)
{
	struct screen *s = arg;
	char *copy = s->reported.nr < MESSAGES_MAX ? strdup(line) : NULL;

	if (copy && vec_push(&s->reported, copy))
		free(copy);
	(void)snprintf(s->message, sizeof(s->message), "%s", line);
}

/* ---- drawing ---- */

static const struct {
	const char *keys, *what;
} help[] = {
	{"o k l m t", "view: operators, kernels, lines, memory, threads"},
	{"Tab", "next view"},
	{"< >, s", "sort by the column before, or the next one"},
	{"r", "reverse the order"},
	{"/ and Esc", "show only names with a text in them; all again"},
	{"c", "sum over all intervals, or the last one alone"},
	{"0", "reset the sums"},
	{"+ -", "longer or shorter intervals"},
	{"Space", "nothing is recorded until the next Space"},
	{"arrows, Home, End", "move through the rows"},
	{"q", "end"},
};

static void draw_help(struct screen *s)
{
	int row = 2;

	terminal_put(0, TERMINAL_BOLD, "gpuprof top: keys");
	for (size_t i = 0; i < sizeof(help) / sizeof(help[0]); i++) {
		char line[160];

		(void)snprintf(line, sizeof(line), "  %-17s %s", help[i].keys, help[i].what);
		terminal_put(row++, TERMINAL_PLAIN, line);
	}
	row++;
	for (int i = 0; i < TOTALS_VIEWS; i++) {
		char line[160];

		const struct top_view_info *info = top_view_info(&s->top->view, i);

		(void)snprintf(line, sizeof(line), "  %-10s %s", info->name, info->about);
		terminal_put(row++, TERMINAL_PLAIN, line);
	}
	terminal_put(terminal_rows() - 1, TERMINAL_REVERSE, "any key goes back");
}

/* The header's lines; returns the row below. */
static int draw_header(const struct screen *s)
{
	CLEANUP(buf__done) struct buf text = {0};
	struct top_header h;
	char *line, *rest;
	int row = 0;

	top_header_of(s->top, &h);
	h.columns = terminal_columns();
	h.devices_max = terminal_rows() / 4;
	top_put_header(&text, &s->top->view, &h);
	if (buf__error(&text))
		return 0;
	for (line = text.bytes; *line; line = rest) {
		rest = line + strcspn(line, "\n");
		if (*rest)
			*rest++ = '\0';
		terminal_put(row++, TERMINAL_PLAIN, line);
	}
	return row;
}

static void draw_tabs(const struct screen *s, int row)
{
	CLEANUP(buf__done) struct buf text = {0};
	const struct top *top = s->top;
	const struct top_view *v = &top->view;

	for (int i = 0; i < TOTALS_VIEWS; i++) {
		buf__char(&text, (char)(i == (int)v->view ? TOP_BOLD : TOP_PLAIN));
		buf__printf(&text, "%s ", top_view_info(v, i)->label);
	}
	buf__char(&text, TOP_PLAIN);
	if (top->paused) {
		buf__char(&text, TOP_ALARM);
		buf__str(&text, " paused");
		buf__char(&text, TOP_PLAIN);
	}
	if (top->over && top->live) {
		buf__char(&text, TOP_ALARM);
		buf__str(&text, " ended");
		buf__char(&text, TOP_PLAIN);
	}
	if (v->span == TOTALS_SUM && top->live)
		buf__str(&text, " sum of all intervals");
	if (v->filter[0] || s->prompt == PROMPT_FILTER)
		buf__printf(&text, " /%s", v->filter);
	if (!buf__error(&text))
		terminal_put(row, TERMINAL_PLAIN, text.bytes);
}

static void draw_empty(const struct screen *s, int row)
{
	const struct top *top = s->top;
	char text[160];

	if (top->view.filter[0])
		(void)snprintf(text, sizeof(text), "no name has '%s' in it; Esc shows all",
			       top->view.filter);
	else if (!top_has(top, top->view.view) || (top->over && !top_had(top, top->view.view)))
		(void)snprintf(text, sizeof(text), "not recorded (%s)",
			       top->view.view == TOTALS_MEMORY ? "attach --memory does"
							       : "attach --stack python does");
	else if (!top_had(top, top->view.view))
		(void)snprintf(text, sizeof(text), "the first interval is being recorded");
	else
		(void)snprintf(text, sizeof(text), "%s",
			       top_view_info(&top->view, top->view.view)->empty);
	terminal_put(row, TERMINAL_PLAIN, text);
}

static void draw_rows(struct screen *s, int row)
{
	struct top *top = s->top;
	uint32_t shown = top_columns_shown(&top->view, top->totals->has_gpu, terminal_columns());
	struct top_rows rows = {0};
	struct buf text = {0};

	top_put_titles(&text, &top->view, shown);
	buf__str(&text, top_view_info(&top->view, top->view.view)->name_title);
	if (buf__error(&text) || top_rows__fill(&rows, &top->view, top->totals)) {
		vec_done(&rows.list);
		buf__done(&text);
		return;
	}
	terminal_put(row++, TERMINAL_REVERSE, text.bytes);
	s->rows_nr = rows.list.nr;
	s->page = terminal_rows() - 1 > row ? (size_t)(terminal_rows() - 1 - row) : 0;
	if (s->first + s->page > s->rows_nr)
		s->first = s->rows_nr > s->page ? s->rows_nr - s->page : 0;
	for (size_t i = s->first; i < rows.list.nr && row < terminal_rows() - 1; i++) {
		buf__clear(&text);
		top_put_cells(&text, &top->view, shown, rows.list.items[i], &rows,
			      top->totals->wall_ns[top->view.span]);
		top_put_name(&text, &top->view, rows.list.items[i],
			     text.nr + 8 < (size_t)terminal_columns()
				     ? (size_t)terminal_columns() - text.nr - 1
				     : 8);
		if (!buf__error(&text))
			terminal_put(row++, TERMINAL_PLAIN, text.bytes);
	}
	if (!rows.list.nr)
		draw_empty(s, row);
	vec_done(&rows.list);
	buf__done(&text);
}

static void draw_bottom(const struct screen *s)
{
	char line[600];

	if (s->prompt == PROMPT_FILTER)
		(void)snprintf(line, sizeof(line), "names with: %s_  (Enter, or Esc for all)",
			       s->top->view.filter);
	else if (s->message[0])
		(void)snprintf(line, sizeof(line), "%s", s->message);
	else
		(void)snprintf(line, sizeof(line),
			       "q end  h help  / filter  < > sort  r reverse  c sums  Space pause  "
			       "(%zu rows)",
			       s->rows_nr);
	terminal_put(terminal_rows() - 1, TERMINAL_REVERSE, line);
}

static void draw(struct screen *s)
{
	terminal_clear();
	if (s->prompt == PROMPT_HELP) {
		draw_help(s);
	} else if (terminal_rows() < ROWS_MIN || terminal_columns() < COLUMNS_MIN) {
		terminal_put(0, TERMINAL_PLAIN, "too small");
	} else {
		int row = draw_header(s);

		draw_tabs(s, row);
		draw_rows(s, row + 1);
		draw_bottom(s);
	}
	terminal_show();
}

/* ---- keys ---- */

static void say(struct screen *s, const char *text)
{
	(void)line_into(s->message, sizeof(s->message), text);
}

static void choose_view(struct screen *s, enum totals_view view)
{
	struct reason why = {0};

	s->top->view.view = view;
	s->first = 0;
	if (!s->top->live || s->top->over || top_has(s->top, view))
		return;
	say(s, view == TOTALS_MEMORY ? "allocations are recorded from now on"
				     : "Python stacks are recorded from now on");
	draw(s);
	if (top_want(s->top, view, &why))
		say(s, why.text);
}

/* The column before (-1) or after (1) among those that are shown. */
static void move_sort(struct screen *s, int by)
{
	struct top_view *v = &s->top->view;
	const struct top_view_info *info = top_view_info(v, v->view);
	uint32_t shown = top_columns_shown(v, s->top->totals->has_gpu, terminal_columns());
	int nr = (int)info->columns_nr, at = (int)(v->sort[v->view] - info->columns);

	do
		at = (at + by + nr) % nr;
	while (!(shown & 1U << at));
	v->sort[v->view] = &info->columns[at];
	s->first = 0;
}

static void change_interval(struct screen *s, int by)
{
	static const double all[] = {0.5, 1, 2, 3, 5, 10, 15, 30, 60};
	const int nr = (int)(sizeof(all) / sizeof(all[0]));
	int at = 0;

	if (!s->top->live)
		return;
	while (at < nr - 1 && all[at] < s->top->view.interval_s)
		at++;
	if (by < 0 || all[at] <= s->top->view.interval_s)
		at += by;
	s->top->view.interval_s = all[at < 0 ? 0 : at >= nr ? nr - 1 : at];
}

static void toggle_pause(struct screen *s)
{
	struct reason why = {0};

	if (top_pause(s->top, !s->top->paused, &why))
		say(s, why.text[0] ? why.text : "nothing is being recorded");
}

static void begin_filter(struct screen *s)
{
	s->prompt = PROMPT_FILTER;
	memcpy(s->filter_before, s->top->view.filter, sizeof(s->filter_before));
	s->top->view.filter[0] = '\0';
}

static void filter_key(struct screen *s, int key)
{
	char *filter = s->top->view.filter;
	size_t nr = strlen(filter);

	s->first = 0;
	if (key == TERMINAL_ENTER) {
		s->prompt = PROMPT_NONE;
	} else if (key == TERMINAL_ESCAPE) {
		filter[0] = '\0';
		s->prompt = PROMPT_NONE;
	} else if (key == TERMINAL_BACKSPACE) {
		while (nr && (filter[nr - 1] & 0xc0) == 0x80)
			nr--;
		filter[nr ? nr - 1 : 0] = '\0';
	} else if (key >= ' ' && key < 256 && key != 0x7f && nr + 1 < sizeof(s->top->view.filter)) {
		filter[nr] = (char)key;
		filter[nr + 1] = '\0';
	}
}

static bool move_key(struct screen *s, int key)
{
	size_t last = s->rows_nr > s->page ? s->rows_nr - s->page : 0, at = s->first;

	switch (key) {
	case TERMINAL_UP:
		at -= at > 0;
		break;
	case TERMINAL_DOWN:
		at++;
		break;
	case TERMINAL_PAGE_UP:
		at = at > s->page ? at - s->page : 0;
		break;
	case TERMINAL_PAGE_DOWN:
		at += s->page;
		break;
	case TERMINAL_HOME:
		at = 0;
		break;
	case TERMINAL_END:
		at = last;
		break;
	default:
		return false;
	}
	s->first = at < last ? at : last;
	return true;
}

static bool view_key(struct screen *s, int key)
{
	for (int i = 0; i < TOTALS_VIEWS; i++)
		if (key == top_view_info(&s->top->view, i)->letter) {
			choose_view(s, (enum totals_view)i);
			return true;
		}
	if (key != '\t')
		return false;
	choose_view(s, (enum totals_view)((s->top->view.view + 1) % TOTALS_VIEWS));
	return true;
}

static void command_key(struct screen *s, int key)
{
	struct top_view *v = &s->top->view;

	switch (key) {
	case 'q':
	case 'Q':
		s->quit = true;
		break;
	case 'h':
	case '?':
		s->prompt = PROMPT_HELP;
		break;
	case '<':
		move_sort(s, -1);
		break;
	case '>':
	case 's':
		move_sort(s, 1);
		break;
	case 'r':
		v->reverse[v->view] = !v->reverse[v->view];
		break;
	case 'c':
		v->span = v->span == TOTALS_SUM ? TOTALS_LAST : TOTALS_SUM;
		break;
	case '0':
		live_totals__reset(s->top->totals);
		break;
	case '+':
	case '-':
		change_interval(s, key == '+' ? 1 : -1);
		break;
	case ' ':
		toggle_pause(s);
		break;
	case '/':
		begin_filter(s);
		break;
	case TERMINAL_ESCAPE:
		v->filter[0] = '\0';
		break;
	default:
		break;
	}
}

static void obey(struct screen *s, int key)
{
	if (s->prompt == PROMPT_HELP) {
		s->prompt = PROMPT_NONE;
		return;
	}
	if (s->prompt == PROMPT_FILTER) {
		filter_key(s, key);
		return;
	}
	if (key != TERMINAL_RESIZED)
		s->message[0] = '\0';
	if (!view_key(s, key) && !move_key(s, key))
		command_key(s, key);
}

/* ---- the course ---- */

static int run(struct screen *s)
{
	struct reason why = {0};
	unsigned int turn = 0;

	while (!s->quit && !signals_asked()) {
		bool was_over = s->top->over, anew = turn++ % (1000 / TURN_MS) == 0;
		int key, got = top_poll(s->top, TURN_MS, &why);

		if (got < 0) {
			log_err("%s", why.text);
			return CLI_FAILED;
		}
		if (s->top->over && !was_over)
			say(s, "no process is left; 'q' ends");
		while ((key = terminal_key()) != TERMINAL_NONE) {
			obey(s, key);
			anew = true;
		}
		if (anew || got)
			draw(s);
	}
	return CLI_DONE;
}

int top_screen(struct top *top)
{
	struct screen s = {.top = top};
	int status;

	if (!terminal_open(&top->view.ascii)) {
		log_err("the terminal '%s' is not known here; set TERM, or use --once",
			getenv("TERM") ? getenv("TERM") : "");
		return CLI_FAILED;
	}
	log_set_sink(take_message, &s);
	status = run(&s);
	log_set_sink(NULL, NULL);
	terminal_close();
	for (size_t i = 0; i < s.reported.nr; i++) {
		(void)fprintf(stderr, "%s\n", s.reported.items[i]);
		free(s.reported.items[i]);
	}
	vec_done(&s.reported);
	return status;
}
