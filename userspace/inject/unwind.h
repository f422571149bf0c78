/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The exact frames of a stopped thread, from the unwind tables of its files.
 */
#ifndef GP_INJECT_UNWIND_H
#define GP_INJECT_UNWIND_H

#include "inject/tracee.h"
#include "inspect/process/process.h"

#include <stdbool.h>
#include <stdint.h>

#define UNWIND_FRAMES_MAX 1024

/* For any number of threads of one process: the tables of a file are read when the first frame in
 * it is met, and kept. */
struct unwinder;

/* Opens nothing yet. `p` is borrowed until unwinder__free(). NULL: out of memory. */
struct unwinder *unwinder__new(const struct target_process *p);
void unwinder__free(struct unwinder *u);

/* The code addresses of frames, innermost first. Returns their number; *ret_whole: the outermost
 * one was reached. */
int unwinder__frames(struct unwinder *u, const struct tracee *t, const struct user_regs_struct *r,
		     uint64_t ret_addresses[UNWIND_FRAMES_MAX], bool *ret_whole);

/* The same, all or nothing: their number, or -ENODATA if the outermost frame was not reached. */
int unwinder__all_frames(struct unwinder *u, const struct tracee *t,
			 const struct user_regs_struct *r,
			 uint64_t ret_addresses[UNWIND_FRAMES_MAX]);

#endif /* GP_INJECT_UNWIND_H */
