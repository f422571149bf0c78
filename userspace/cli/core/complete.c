/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Prints candidates for shell completion, from the option tables. It reads words as
 * options_parse() does but accepts mistakes: the line is not finished yet.
 */
#include "cli/core/complete.h"

#include "base/cleanup.h"
#include "cli/core/cli.h"
#include "cli/core/options.h"
#include "inspect/process/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void offer(const char *candidate, const char *typed)
{
	if (!strncmp(candidate, typed, strlen(typed)))
		(void)puts(candidate);
}

static bool is_profilable(pid_t pid)
{
	struct target_process *p;
	bool is;

	if (target_process__new(pid, NULL, &p))
		return false;
	is = target_process__is_profilable(p);
	target_process__free(p);
	return is;
}

/* Offers PIDs for a list "1,2,": the text before the last comma stays. */
static void offer_pids(const char *typed)
{
	const char *comma = strrchr(typed, ',');
	int kept = comma ? (int)(comma - typed) + 1 : 0;
	CLEANUP(cleanup_free) pid_t *all = NULL;
	size_t nr = 0;

	(void)target_scan(&all, &nr);
	for (size_t i = 0; i < nr; i++) {
		char candidate[256];

		(void)snprintf(candidate, sizeof(candidate), "%.*s%d", kept, typed, (int)all[i]);
		if (!strncmp(candidate, typed, strlen(typed)) && is_profilable(all[i]))
			(void)puts(candidate);
	}
}

static void offer_kind(enum option_complete what, const char *typed)
{
	switch (what) {
	case COMPLETE_FILE:
		(void)puts(":files");
		break;
	case COMPLETE_COMMAND:
		(void)puts(":commands");
		break;
	case COMPLETE_PID:
		offer_pids(typed);
		break;
	case COMPLETE_NOTHING:
		break;
	}
}

static void offer_value(const struct option_spec *o, const char *typed)
{
	for (size_t i = 0; o->choices && o->choices[i]; i++)
		offer(o->choices[i], typed);
	offer_kind(o->complete, typed);
}

static void offer_options(const struct command *c, const char *typed)
{
	const struct option_spec *tables[] = {c->options, options_common};

	for (size_t t = 0; t < 2; t++)
		for (const struct option_spec *o = tables[t]; o && o->name; o++) {
			char candidate[64];

			(void)snprintf(candidate, sizeof(candidate), "--%s", o->name);
			if (!o->hidden)
				offer(candidate, typed);
		}
}

static void offer_subcommands(const char *typed)
{
	for (size_t i = 0; cli_commands[i]; i++)
		offer(cli_commands[i]->name, typed);
	offer("help", typed);
	if (typed[0] == '-') {
		offer("--help", typed);
		offer("--version", typed);
	}
}

/* The option that takes the next word as its value, NULL if none does. */
static const struct option_spec *waits_for_value(const struct command *c, const char *word)
{
	const struct option_spec *o = NULL;

	if (word[0] == '-' && word[1] == '-')
		o = options_find(c, word + 2);
	else if (word[0] == '-' && word[1] && !word[2])
		o = options_find_letter(c, word[1]);
	return o && o->kind != OPTION_FLAG ? o : NULL;
}

/* Where `typed` is "--name=value" in one word: the option, and the value in *ret_value. */
static const struct option_spec *joined_value(const struct command *c, const char *typed,
					      const char **ret_value)
{
	const char *equals = strchr(typed, '=');
	char name[64];

	if (strncmp(typed, "--", 2) || !equals || equals - typed - 2 >= (int)sizeof(name))
		return NULL;
	(void)snprintf(name, sizeof(name), "%.*s", (int)(equals - typed - 2), typed + 2);
	*ret_value = equals + 1;
	return options_find(c, name);
}

static void offer_operand(const struct command *c, int operands, const char *typed)
{
	for (size_t i = 0; !operands && c->words && c->words[i]; i++)
		offer(c->words[i], typed);
	offer_kind(c->complete, typed);
}

static void offer_word(const struct command *c, const struct option_spec *value_of, int operands,
		       const char *typed)
{
	const char *value = NULL;
	const struct option_spec *joined = joined_value(c, typed, &value);

	if (value_of)
		offer_value(value_of, typed);
	else if (joined)
		offer_value(joined, value);
	else if (typed[0] == '-')
		offer_options(c, typed);
	else if (c->max_operands >= 0 && operands >= c->max_operands)
		offer_options(c, typed);
	else
		offer_operand(c, operands, typed);
}

int complete_print(int nr, char **words)
{
	const char *typed = nr > 0 ? words[nr - 1] : "";
	const struct command *c = nr > 1 ? cli_find(words[0]) : NULL;
	const struct option_spec *value_of = NULL;
	int operands = 0;

	if (nr <= 1 || !strcmp(words[0], "help")) {
		offer_subcommands(typed);
		return CLI_DONE;
	}
	for (int i = 1; c && i < nr - 1; i++) {
		if (value_of && !strcmp(words[i], "="))
			continue;
		if (!value_of && !strcmp(words[i], "--") && c->stops_at_operand)
			continue;
		if (!value_of && words[i][0] != '-')
			operands++;
		value_of = value_of ? NULL : waits_for_value(c, words[i]);
		/* The rest belongs to the program that will run. */
		if (operands && c->stops_at_operand) {
			(void)puts(":files");
			return CLI_DONE;
		}
	}
	if (value_of && !strcmp(typed, "="))
		typed = "";
	if (c)
		offer_word(c, value_of, operands, typed);
	return CLI_DONE;
}
