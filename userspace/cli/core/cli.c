/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Dispatches `gpuprof WORD ...` to the subcommand. Nothing happens before the word is known.
 */
#include "cli/core/cli.h"

#include "base/log.h"
#include "base/version.h"
#include "cli/core/complete.h"
#include "cli/core/options.h"
#include "cli/core/signals.h"
#include "recording/format.h"
#include "wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_help(FILE *out)
{
	(void)fprintf(out, "usage: gpuprof SUBCOMMAND [options]\n\n"
			   "Profiles running PyTorch and CUDA processes: no restart, no code "
			   "change.\n\nsubcommands:\n");
	for (size_t i = 0; cli_commands[i]; i++)
		(void)fprintf(out, "  %-10s%s\n", cli_commands[i]->name, cli_commands[i]->summary);
	(void)fprintf(
		out, "\n"
		     "start with:\n"
		     "  gpuprof list                                    find processes\n"
		     "  sudo gpuprof top --pid PID                      watch one, live\n"
		     "  sudo gpuprof attach --pid PID --duration 10     profile it for 10 s\n\n"
		     "  gpuprof SUBCOMMAND --help       its options, the most used first\n"
		     "  gpuprof SUBCOMMAND --help-all   all its options\n"
		     "  gpuprof --version               version of gpuprof and its formats\n\n"
		     "exit status: 0 done, 1 failed, 2 wrong usage, 3 done but events were lost\n");
}

static void print_version(void)
{
	(void)printf("gpuprof %s\nrecording format %d, events %d\n", gpuprof_version,
		     FORMAT_VERSION, GP_WIRE_VERSION);
}

static int unknown_subcommand(const char *word)
{
	const char *best = NULL;
	unsigned int least = 3;
	struct stat st;

	if (!stat(word, &st) && S_ISREG(st.st_mode)) {
		log_err("'%s' is a file, not a subcommand; 'gpuprof table %s' reads a recording",
			word, word);
		return CLI_USAGE;
	}
	for (size_t i = 0; cli_commands[i]; i++) {
		unsigned int d = options_distance(word, cli_commands[i]->name);

		if (d < least) {
			least = d;
			best = cli_commands[i]->name;
		}
	}
	if (best)
		log_err("unknown subcommand '%s' (did you mean '%s'?); try 'gpuprof --help'", word,
			best);
	else
		log_err("unknown subcommand '%s'; try 'gpuprof --help'", word);
	return CLI_USAGE;
}

static int show_help(const char *name)
{
	const struct command *c = name ? cli_find(name) : NULL;

	if (name && !c)
		return unknown_subcommand(name);
	if (c)
		options_print_help(stdout, c, false);
	else
		print_help(stdout);
	return CLI_DONE;
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
	return !strcmp(word, a) || !strcmp(word, b);
}

/* Takes the options before the subcommand. Returns how many words were -v or -vv. */
static int take_verbose(int argc, char **argv)
{
	unsigned int verbose = 0;
	int nr = 0;

	while (nr + 1 < argc) {
		const char *word = argv[nr + 1];

		if (is_one_of(word, "-v", "--verbose"))
			verbose++;
		else if (!strcmp(word, "-vv"))
			verbose += 2;
		else
			break;
		nr++;
	}
	if (verbose)
		log_set_level(verbose > 1 ? LOG_DEBUG : LOG_INFO);
	return nr;
}

/* Opens the standard streams that the caller closed. Otherwise a file that we open would get such
 * a number, and the table would be printed into the recording. */
static void fill_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
}

int cli_main(int argc, char **argv)
{
	int skip = take_verbose(argc, argv);
	const char *word = argc > skip + 1 ? argv[skip + 1] : NULL;
	const struct command *c = word ? cli_find(word) : NULL;

	fill_standard_streams();
	if (c && c->ends_in_order)
		signals_ask(false);
	else
		signals_end();
	if (!word) {
		print_help(stderr);
		return CLI_USAGE;
	}
	if (c)
		return c->run(argc - skip - 1, argv + skip + 1);
	if (is_one_of(word, "-h", "--help") || !strcmp(word, "help"))
		return show_help(argc > skip + 2 ? argv[skip + 2] : NULL);
	if (is_one_of(word, "-V", "--version")) {
		print_version();
		return CLI_DONE;
	}
	if (!strcmp(word, "__complete"))
		return complete_print(argc - skip - 2, argv + skip + 2);
	if (word[0] == '-') {
		log_err("unknown option '%s' before the subcommand; try 'gpuprof --help'", word);
		return CLI_USAGE;
	}
	return unknown_subcommand(word);
}
