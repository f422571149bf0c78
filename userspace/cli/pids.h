/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Lists of processes on the command line.
 */
#ifndef GP_CLI_PIDS_H
#define GP_CLI_PIDS_H

#include "cli/options.h"

#include <stddef.h>
#include <sys/types.h>

#define PIDS_MAX 1024

/* A vector; all zero is an empty one. */
struct pids {
	pid_t *items;
	size_t nr;
	size_t cap;
};

/* For CLEANUP. */
void cleanup_pids(struct pids *p);

/* Appends what "PID[,PID...]" names. Returns CLI_DONE, or CLI_USAGE: the mistake was logged. */
int pids_parse(const struct command *command, const char *text, struct pids *pids);

#endif /* GP_CLI_PIDS_H */
