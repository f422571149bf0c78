/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parses options and prints help, both from tables. getopt_long() would not do: it keeps global
 * state, accepts abbreviations silently and prints its own messages.
 */
#include "cli/core/options.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/core/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HELP_COLUMN 30
#define LINE_WIDTH  80

const struct option_spec options_common[] = {
	{.name = "help", .letter = 'h', .help = "Show help."},
	{.name = "help-all", .help = "Show help with all options."},
	{.name = "verbose", .letter = 'v', .help = "Log more; twice: debug messages too."},
	{0},
};

struct parser {
	const struct command *command;
	char **argv;
	int argc;
	int at; /* next word */
	void *values;
	int operands;
	int verbose;
	bool wants_help, wants_all_help;
};

/* ---- mistakes ---- */

int options_usage_error(const struct command *command, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_err("%s; try 'gpuprof %s --help'", text, command->name);
	return CLI_USAGE;
}

unsigned int options_distance(const char *a, const char *b)
{
	unsigned int row[64], n = (unsigned int)strnlen(b, 64);

	if (n >= 64 || strnlen(a, 64) >= 64)
		return 99;
	for (unsigned int j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned int i = 1; a[i - 1]; i++) {
		unsigned int corner = row[0];

		row[0] = i;
		for (unsigned int j = 1; j <= n; j++) {
			unsigned int best = corner + (a[i - 1] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			corner = row[j];
			row[j] = best;
		}
	}
	return row[n];
}

static const char *nearest_option(const struct command *command, const char *name)
{
	const struct option_spec *tables[] = {command->options, options_common};
	const char *best = NULL;
	/* A short word is near to any other short one. */
	unsigned int least = 1 + (unsigned int)strlen(name) / 2;

	least = least < 4 ? least : 4;

	for (size_t t = 0; t < 2; t++)
		for (const struct option_spec *o = tables[t]; o && o->name; o++) {
			unsigned int d = options_distance(name, o->name);

			if (!o->hidden && d < least) {
				least = d;
				best = o->name;
			}
		}
	return best;
}

static int unknown_option(const struct command *command, const char *word)
{
	const char *near = word[0] && word[1] == '-' ? nearest_option(command, word + 2) : NULL;

	if (near)
		return options_usage_error(command, "unknown option '%s' (did you mean '--%s'?)",
					   word, near);
	return options_usage_error(command, "unknown option '%s'", word);
}

static int unknown_choice(const struct command *command, const struct option_spec *o,
			  const char *value)
{
	CLEANUP(buf__done) struct buf b = {0};

	if (o->rule)
		return options_usage_error(command, "--%s takes %s, not '%s'", o->name, o->rule,
					   value);
	for (size_t i = 0; o->choices && o->choices[i]; i++) {
		buf__str(&b, i ? ", " : "");
		buf__str(&b, o->choices[i]);
	}
	return options_usage_error(command, "unknown value '%s' for --%s: choose one of %s", value,
				   o->name, b.bytes ? b.bytes : "");
}

bool options_is_pids(const char *word)
{
	return *word && !word[strspn(word, "0123456789,")];
}

static int unexpected_operand(const struct command *command, const char *word)
{
	if (options_is_pids(word) && options_find(command, "pid"))
		return options_usage_error(command, "unexpected '%s' (did you mean '--pid %s'?)",
					   word, word);
	return options_usage_error(command, "unexpected '%s'", word);
}

/* ---- values ---- */

static bool is_choice(const struct option_spec *o, const char *value)
{
	if (o->known)
		return o->known(value);
	if (!o->choices)
		return true;
	for (size_t i = 0; o->choices[i]; i++)
		if (!strcmp(o->choices[i], value))
			return true;
	return false;
}

static int set_number(const struct parser *p, const struct option_spec *o, const char *value)
{
	bool any = !o->min && !o->max;
	long n;
	char *end;

	errno = 0;
	n = strtol(value, &end, 10);
	if (errno || end == value || *end)
		return options_usage_error(p->command, "--%s takes a whole number, not '%s'",
					   o->name, value);
	if (!any && (n < o->min || n > o->max))
		return options_usage_error(p->command,
					   "--%s takes a number from %ld to %ld, not "
					   "'%s'",
					   o->name, o->min, o->max, value);
	*(long *)((char *)p->values + o->offset) = n;
	return 0;
}

static int set_percent(const struct parser *p, const struct option_spec *o, const char *value)
{
	double n;
	char *end;

	errno = 0;
	n = strtod(value, &end);
	if (errno || end == value || *end || !isfinite(n) || n <= 0 || n > 100)
		return options_usage_error(p->command,
					   "--%s takes percent: a number above 0, at most 100, not "
					   "'%s'",
					   o->name, value);
	*(double *)((char *)p->values + o->offset) = n;
	return 0;
}

static int set_seconds(const struct parser *p, const struct option_spec *o, const char *value)
{
	static const struct {
		const char *name;
		double s;
	} units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
	double n, unit = 0;
	char *end;

	errno = 0;
	n = strtod(value, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(end, units[i].name))
			unit = units[i].s;
	n *= unit;
	if (errno || end == value || !isfinite(n) || n <= 0 || n > 1e9)
		return options_usage_error(p->command,
					   "--%s takes a number of seconds above 0 (or of minutes "
					   "or hours: 5m, 2h), not '%s'",
					   o->name, value);
	*(double *)((char *)p->values + o->offset) = n;
	return 0;
}

static int set_bytes(const struct parser *p, const struct option_spec *o, const char *value)
{
	static const char units[] = "KMGT";
	unsigned long long n = 0;
	unsigned int shift = 0;
	const char *unit;
	char *end = (char *)value;

	errno = 0;
	if (*value >= '0' && *value <= '9')
		n = strtoull(value, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		end++;
	}
	if (errno || end == value || *end || n > (unsigned long long)INT64_MAX >> shift ||
	    n << shift < (unsigned long long)o->min)
		return options_usage_error(p->command,
					   "--%s takes a number of bytes such as 64M or 1G, at "
					   "least %ld, not '%s'",
					   o->name, o->min, value);
	*(uint64_t *)((char *)p->values + o->offset) = n << shift;
	return 0;
}

static int set_value(const struct parser *p, const struct option_spec *o, const char *value)
{
	switch (o->kind) {
	case OPTION_NUMBER:
		return set_number(p, o, value);
	case OPTION_SECONDS:
		return set_seconds(p, o, value);
	case OPTION_PERCENT:
		return set_percent(p, o, value);
	case OPTION_BYTES:
		return set_bytes(p, o, value);
	case OPTION_TEXT:
		if (!*value)
			return options_usage_error(p->command, "--%s takes %s, not an empty text",
						   o->name, o->value_name);
		if (!is_choice(o, value))
			return unknown_choice(p->command, o, value);
		*(const char **)((char *)p->values + o->offset) = value;
		return 0;
	case OPTION_FLAG:
		break;
	}
	return 0;
}

/* ---- words ---- */

static const struct option_spec *find_in(const struct option_spec *o, const char *name, char letter)
{
	for (; o && o->name; o++)
		if (name ? !strcmp(o->name, name) : o->letter && o->letter == letter)
			return o;
	return NULL;
}

const struct option_spec *options_find(const struct command *command, const char *name)
{
	const struct option_spec *o = find_in(command->options, name, 0);

	return o ? o : find_in(options_common, name, 0);
}

const struct option_spec *options_find_letter(const struct command *command, char letter)
{
	const struct option_spec *o = find_in(command->options, NULL, letter);

	return o ? o : find_in(options_common, NULL, letter);
}

static void set_flag(struct parser *p, const struct option_spec *o)
{
	if (o == &options_common[0])
		p->wants_help = true;
	else if (o == &options_common[1])
		p->wants_all_help = true;
	else if (o == &options_common[2])
		p->verbose++;
	else
		*(bool *)((char *)p->values + o->offset) = true;
}

/* Takes the value from the next word when it is not in this one. */
static int take_option(struct parser *p, const struct option_spec *o, const char *value)
{
	if (o->kind == OPTION_FLAG) {
		set_flag(p, o);
		return 0;
	}
	if (!value) {
		if (p->at == p->argc)
			return options_usage_error(p->command, "--%s needs a %s", o->name,
						   o->value_name);
		value = p->argv[p->at++];
	}
	return set_value(p, o, value);
}

static int take_long(struct parser *p, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t nr = equals ? (size_t)(equals - word) : strlen(word);
	CLEANUP(cleanup_free) char *name = strndup(word + 2, nr - 2);
	const struct option_spec *o = name ? options_find(p->command, name) : NULL;

	if (!o)
		return unknown_option(p->command, word);
	if (equals && o->kind == OPTION_FLAG)
		return options_usage_error(p->command, "--%s takes no value", o->name);
	return take_option(p, o, equals ? equals + 1 : NULL);
}

/* -q, -o FILE, -oFILE, -qv */
static int take_letters(struct parser *p, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		const struct option_spec *o = options_find_letter(p->command, *c);
		int status;

		if (!o)
			return unknown_option(p->command, word);
		status = take_option(p, o, o->kind != OPTION_FLAG && c[1] ? c + 1 : NULL);
		if (status || o->kind != OPTION_FLAG)
			return status;
	}
	return 0;
}

/* Operands gather at the front of argv: what stood there has been read. */
static void take_rest(struct parser *p)
{
	while (p->at < p->argc)
		p->argv[1 + p->operands++] = p->argv[p->at++];
}

static int take_words(struct parser *p)
{
	while (p->at < p->argc) {
		char *word = p->argv[p->at++];
		int status = 0;

		if (!strcmp(word, "--")) {
			take_rest(p);
		} else if (word[0] == '-' && word[1] == '-') {
			status = take_long(p, word);
		} else if (word[0] == '-' && word[1]) {
			status = take_letters(p, word);
		} else {
			p->argv[1 + p->operands++] = word;
			if (p->command->stops_at_operand)
				take_rest(p);
		}
		if (status)
			return status;
	}
	return 0;
}

int options_parse(const struct command *command, int argc, char **argv, void *values,
		  int *ret_operands)
{
	struct parser p = {
		.command = command, .argv = argv, .argc = argc, .at = 1, .values = values};
	int status = take_words(&p);

	if (status)
		return status;
	if (p.wants_help || p.wants_all_help) {
		options_print_help(stdout, command, p.wants_all_help);
		return CLI_DONE;
	}
	if (p.verbose)
		log_set_level(p.verbose > 1 ? LOG_DEBUG : LOG_INFO);
	if (p.operands < command->min_operands)
		return options_usage_error(command, "missing %s: gpuprof %s %s", command->operand,
					   command->name, command->usage);
	if (command->max_operands >= 0 && p.operands > command->max_operands)
		return unexpected_operand(command, argv[1 + command->max_operands]);
	*ret_operands = p.operands;
	return -1;
}

/* ---- help ---- */

/* Prints `text` from `column` on, wrapped before column 80 and indented to `column`. The cursor is
 * there already. */
static void print_wrapped(FILE *out, size_t column, const char *text)
{
	size_t at = column;

	while (*text) {
		size_t nr = strcspn(text, " ");

		if (at > column && at + 1 + nr >= LINE_WIDTH) {
			(void)fprintf(out, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			(void)fputc(' ', out);
			at++;
		}
		(void)fwrite(text, 1, nr, out);
		at += nr;
		text += nr + strspn(text + nr, " ");
	}
	(void)fputc('\n', out);
}

static void print_option(FILE *out, const struct option_spec *o)
{
	int n = o->letter ? fprintf(out, "  -%c, --%s", o->letter, o->name)
			  : fprintf(out, "      --%s", o->name);

	if (o->value_name)
		n += fprintf(out, " %s", o->value_name);
	if (n > HELP_COLUMN - 2)
		n = fprintf(out, "\n") - 1;
	(void)fprintf(out, "%*s", HELP_COLUMN - n, "");
	print_wrapped(out, HELP_COLUMN, o->help);
}

static void print_first(FILE *out, const struct command *command)
{
	for (size_t i = 0; command->first[i]; i++) {
		const struct option_spec *o = find_in(command->options, command->first[i], 0);

		if (o)
			print_option(out, o);
	}
}

static void print_all(FILE *out, const struct command *command)
{
	for (const struct option_spec *o = command->options; o && o->name; o++) {
		if (!*o->name)
			(void)fprintf(out, "\n%s:\n", o->help);
		else if (!o->hidden)
			print_option(out, o);
	}
	if (command->first)
		(void)fprintf(out, "\neverywhere:\n");
}

/* How many options --help does not show. */
static size_t count_others(const struct command *command)
{
	size_t nr = 0;

	for (const struct option_spec *o = command->options; o && o->name; o++)
		nr += *o->name && !o->hidden;
	for (size_t i = 0; command->first[i]; i++)
		nr--;
	return nr;
}

void options_print_help(FILE *out, const struct command *command, bool all)
{
	const char *about = command->about;

	(void)fprintf(out, "usage: gpuprof %s %s\n\n", command->name, command->usage);
	while (*about) {
		size_t nr = strcspn(about, "\n");
		CLEANUP(cleanup_free) char *line = strndup(about, nr);

		print_wrapped(out, 0, line ? line : "");
		about += nr + (about[nr] == '\n');
	}
	(void)fprintf(out, "\noptions:\n");
	if (command->first && !all)
		print_first(out, command);
	else
		print_all(out, command);
	for (const struct option_spec *o = options_common; o->name; o++)
		print_option(out, o);
	if (command->first && !all)
		(void)fprintf(out, "\n'gpuprof %s --help-all' shows %zu more options.\n",
			      command->name, count_others(command));
}
