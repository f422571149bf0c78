/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Chooses the processes of a command line: by PID, or by a pattern.
 */
#ifndef GP_CLI_CORE_PIDS_H
#define GP_CLI_CORE_PIDS_H

#include "cli/core/options.h"

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

/* Either that or else every process with PyTorch or CUDA in it that has the shell pattern `name` in
 * its command line; exactly one of the two is to be not NULL. Logs what is wrong. Returns CLI_DONE,
 * CLI_USAGE or CLI_FAILED. */
int pids_choose(const struct command *command, const char *list, const char *name,
		struct pids *pids);

/* A wrong --pid, such as that of a shell around the training, shows nothing: refuses processes
 * without PyTorch or CUDA, unless they are to be waited for, and those of a sandbox in any case.
 * Logs which and why. Returns CLI_DONE or CLI_FAILED. */
int pids_check(const struct pids *pids, bool wait);

#endif /* GP_CLI_CORE_PIDS_H */
