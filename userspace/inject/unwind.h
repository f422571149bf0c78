/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Unwinds a stopped thread exactly, with the unwind tables of its files.
 */
#ifndef GP_INJECT_UNWIND_H
#define GP_INJECT_UNWIND_H

#include "inject/tracee.h"
#include "inspect/process/process.h"

#include <stdbool.h>
#include <stdint.h>

#define UNWIND_FRAMES_MAX 1024

/* Serves any number of threads of one process. It reads a file's tables at the first frame in it
 * and keeps them. */
struct unwinder;

/* Creates an unwinder and opens nothing yet. `p` is borrowed until unwinder__free(). NULL: out of
 * memory. */
struct unwinder *unwinder__new(const struct target_process *p);
void unwinder__free(struct unwinder *u);

/* Finds the code addresses of the frames, innermost first. Returns their number; *ret_whole: it
 * reached the outermost one. */
int unwinder__frames(struct unwinder *u, const struct tracee *t, const struct user_regs_struct *r,
		     uint64_t ret_addresses[UNWIND_FRAMES_MAX], bool *ret_whole);

/* Does the same, all or nothing: returns their number, or -ENODATA if it did not reach the
 * outermost frame. */
int unwinder__all_frames(struct unwinder *u, const struct tracee *t,
			 const struct user_regs_struct *r,
			 uint64_t ret_addresses[UNWIND_FRAMES_MAX]);

#endif /* GP_INJECT_UNWIND_H */
