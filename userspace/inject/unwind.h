/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The exact frames of a stopped thread, from the unwind tables of its files.
 */
#ifndef GP_INJECT_UNWIND_H
#define GP_INJECT_UNWIND_H

#include "inject/tracee.h"
#include "target/process.h"

#define UNWIND_FRAMES_MAX 1024

/* For several threads of a process at about the same moment: its files are opened once. */
struct unwinder;

/* NULL: out of memory, or no file can be read. */
struct unwinder *unwinder__new(const struct target_process *p);
void unwinder__free(struct unwinder *u);

/* The code addresses of frames, innermost first. Returns their number; *ret_whole: the outermost
 * one was reached. */
int unwinder__frames(struct unwinder *u, const struct tracee *t, const struct user_regs_struct *r,
		     uint64_t ret_addresses[UNWIND_FRAMES_MAX], bool *ret_whole);

/* Those of one thread: their number, or -errno if the outermost frame was not reached. */
int unwind_thread(const struct tracee *t, const struct target_process *p,
		  const struct user_regs_struct *r, uint64_t ret_addresses[UNWIND_FRAMES_MAX]);

#endif /* GP_INJECT_UNWIND_H */
