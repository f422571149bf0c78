/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * From a recording on disk to everything that can be made of it: the end of `attach` and `run`, and
 * the whole of `table`.
 */
#ifndef GP_CLI_SHOW_H
#define GP_CLI_SHOW_H

#include <stdbool.h>

struct show_options {
	const char *sort; /* NULL: the default key */
	long limit;	  /* rows, -1: all */
	bool json;
	const char *trace_path;	 /* NULL: none */
	const char *memory_path; /* NULL: none */
};

/* Prints the table to stdout and the losses to stderr, and writes the files. Logs what fails.
 * Returns an enum cli_status: CLI_LOST if events were lost. */
int show_recording(const char *path, const struct show_options *options);

#endif /* GP_CLI_SHOW_H */
