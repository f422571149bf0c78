/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parses the options of the subcommands, from tables. --help and the shell completion come from the
 * same rows. Every subcommand also takes -h/--help, --help-all and -v/--verbose.
 */
#ifndef GP_CLI_CORE_OPTIONS_H
#define GP_CLI_CORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What an option's value becomes in the structure that options_parse() fills. */
enum option_kind {
	OPTION_FLAG,	/* no value; bool */
	OPTION_TEXT,	/* const char *, into argv */
	OPTION_NUMBER,	/* long, within min..max */
	OPTION_SECONDS, /* double, more than 0; 5m and 2h too */
	OPTION_BYTES,	/* uint64_t, at least min; 64M and 1G too */
	OPTION_PERCENT, /* double, more than 0 and at most 100 */
};

/* What a shell offers for a value or an operand. */
enum option_complete {
	COMPLETE_NOTHING,
	COMPLETE_FILE,
	COMPLETE_PID, /* processes that have PyTorch or CUDA in them */
	COMPLETE_COMMAND,
};

/* A row that begins a group of options in --help-all. */
#define OPTION_HEADING(text)                                                                       \
	{                                                                                          \
		.name = "", .help = (text), .hidden = true                                         \
	}

/* One row; a table ends with a row without name. */
struct option_spec {
	const char *name; /* without the dashes */
	char letter;	  /* 0: none */
	enum option_kind kind;
	size_t offset; /* of the field: offsetof(struct ..., field) */
	const char *value_name;
	const char *help; /* one sentence; wrapped when printed */
	/* NULL, or the values to offer, NULL-terminated. Without known() no others are taken. */
	const char *const *choices;
	/* Whether a value is allowed; `rule` says what it must be: "a FILE that ends in .html". */
	bool (*known)(const char *value);
	const char *rule;
	enum option_complete complete;
	long min, max; /* of OPTION_NUMBER, both 0: any; min of OPTION_BYTES */
	bool hidden;   /* not in --help, completion or manual */
};

struct command {
	const char *name;
	const char *summary; /* for `gpuprof --help`, lower case */
	const char *usage;   /* after the name: "--pid PID[,PID...] [options]" */
	const char *about;   /* paragraphs of --help, each one line */
	const struct option_spec *options;
	/* The options that --help shows, in its order; NULL-terminated. NULL: all. */
	const char *const *first;
	const char *operand; /* "the recording": what is missing where too few are given */
	int min_operands, max_operands; /* max -1: any number */
	enum option_complete complete;	/* of the operands */
	const char *const *words; /* what the first operand may be, NULL-terminated; or NULL */
	bool stops_at_operand;	  /* what follows the first operand belongs to it (run) */
	bool ends_in_order;	  /* it ends by itself once signals_asked() */
	int (*run)(int argc, char **argv);
};

/*
 * Parses argv[1..argc) by command->options into *values, which holds the defaults. Afterwards the
 * operands are argv[1..1 + *ret_operands). Returns -1 to go on, or the exit status to end with:
 * CLI_DONE (help was printed) or CLI_USAGE (the mistake was logged).
 */
int options_parse(const struct command *command, int argc, char **argv, void *values,
		  int *ret_operands);

/* Logs "MESSAGE; try 'gpuprof NAME --help'" and returns CLI_USAGE. */
int options_usage_error(const struct command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Whether an operand looks like what --pid takes. */
bool options_is_pids(const char *word);

/* Prints what --help does: the command and the options that people use first. With `all` what
 * --help-all prints: every option that is not hidden, by groups. */
void options_print_help(FILE *out, const struct command *command, bool all);

/* The option named --NAME or -LETTER, or NULL. Those that every subcommand has count. */
const struct option_spec *options_find(const struct command *command, const char *name);
const struct option_spec *options_find_letter(const struct command *command, char letter);

/* The options that every subcommand has. */
extern const struct option_spec options_common[];

/* How many letters must change to make one of the other; at most 99. */
unsigned int options_distance(const char *a, const char *b);

#endif /* GP_CLI_CORE_OPTIONS_H */
