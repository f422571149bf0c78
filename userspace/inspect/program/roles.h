/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds what each process does for its job and how the processes belong together: a launcher, its
 * ranks, their DataLoader workers. Does not read /proc: it works on what was read of each process
 * before. A role that is not proven is marked as a guess.
 */
#ifndef GP_INSPECT_PROGRAM_ROLES_H
#define GP_INSPECT_PROGRAM_ROLES_H

#include "inspect/process/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum process_role {
	PROCESS_ROLE_NONE, /* a program of its own, or unknown */
	PROCESS_ROLE_LAUNCHER,
	PROCESS_ROLE_RANK,
	PROCESS_ROLE_DATALOADER_WORKER,
	PROCESS_ROLE_COMPILE_WORKER,
	PROCESS_ROLE_RAY_WORKER,
	PROCESS_ROLE_FORKSERVER,
	PROCESS_ROLE_RESOURCE_TRACKER,
	PROCESS_ROLE_FORKSERVER_CHILD,
	PROCESS_ROLE_SPAWNED_CHILD, /* multiprocessing started it by exec */
	PROCESS_ROLE_FORKED_CHILD,  /* forked, and has not called exec since */
};

/* No process in the list. */
#define ROLES_NO_PARENT SIZE_MAX

struct process_roles {
	/* The caller fills these in. */
	const struct target_process *process;
	bool has_torch;			      /* or CUDA */
	int32_t rank, local_rank, world_size; /* as its environment had them at exec; -1: not */
	/* Found. */
	enum process_role role;
	bool is_guess;
	bool is_shown; /* it has PyTorch, or stands between one that has and what started that */
	size_t parent; /* index of the parent, which is shown where this is; or ROLES_NO_PARENT */
};

/* Finds the roles of all processes of the machine, sorted by pid. 0 or -ENOMEM. */
int process_roles_find(struct process_roles *list, size_t nr);

#endif /* GP_INSPECT_PROGRAM_ROLES_H */
