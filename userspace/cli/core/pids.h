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

/* Chooses the processes that `list` names, or every process with PyTorch or CUDA whose command
 * line contains the shell pattern `name`. Exactly one of the two must not be NULL. Logs what is
 * wrong. Returns CLI_DONE, CLI_USAGE or CLI_FAILED. */
int pids_choose(const struct command *command, const char *list, const char *name,
		struct pids *pids);

/* Refuses processes without PyTorch or CUDA, unless `wait`: a wrong --pid, such as that of a shell
 * around the training, would show nothing. Refuses processes in a sandbox in any case. Logs which
 * and why. Returns CLI_DONE or CLI_FAILED. */
int pids_check(const struct pids *pids, bool wait);

#endif /* GP_CLI_CORE_PIDS_H */
