/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The processes that --pid or --name choose.
 */
#ifndef GP_CLI_PIDS_H
#define GP_CLI_PIDS_H

#include "cli/options.h"

#include <sys/types.h>

struct pids {
	pid_t *items;
	size_t nr;
	size_t cap;
};

/* From "PID[,PID...]", or else every process with PyTorch or CUDA in it that has the shell pattern
 * `name` in its command line; exactly one of the two is to be not NULL. Logs a mistake as
 * `command`'s. Returns CLI_DONE, CLI_USAGE or CLI_FAILED. */
int pids__choose(struct pids *p, const struct command *command, const char *list, const char *name);

/* A wrong --pid, such as that of a shell around the training, shows nothing: warns of processes
 * without PyTorch. */
void pids__warn_of_others(const struct pids *p);

/* For CLEANUP, too. */
void pids__done(struct pids *p);

#endif /* GP_CLI_PIDS_H */
