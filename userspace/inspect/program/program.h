/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Recognises what a process runs by its arguments. The process may have overwritten them, with a
 * title for example.
 */
#ifndef GP_INSPECT_PROGRAM_PROGRAM_H
#define GP_INSPECT_PROGRAM_PROGRAM_H

#include "inspect/process/process.h"

#include <stdbool.h>

enum target_program {
	PROGRAM_OTHER,
	PROGRAM_LAUNCHER,	  /* torchrun, accelerate, deepspeed, mpirun, raylet... */
	PROGRAM_FORKSERVER,	  /* of Python's multiprocessing; its forks have its arguments */
	PROGRAM_RESOURCE_TRACKER, /* the same */
	PROGRAM_SPAWNED,	  /* a child that multiprocessing started by exec */
	PROGRAM_COMPILE_WORKER,	  /* of torch.compile; its forks have its arguments */
	PROGRAM_RAY,		  /* a worker that Ray has given a title: "ray::Actor.method" */
};

enum target_program target_program_of(const struct target_arguments *a);

/* Whether the process is a Python interpreter whose first argument does not say so: most often it
 * is a title. */
bool target_process__has_title(const struct target_process *p);

#endif /* GP_INSPECT_PROGRAM_PROGRAM_H */
