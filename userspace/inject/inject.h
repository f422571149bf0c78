/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Puts a shared library into a running process and takes it out again. Nothing has to exist in the
 * target's file system; where the target is refused memory files that hold code, a file without a
 * name in one of its folders takes their place. One thread of the target is borrowed for a moment,
 * at a point where it holds no lock that dlopen needs; its system call, registers, vector state,
 * signals and stack are as before when it goes on. gpuprof may be killed at any instruction: the
 * target goes on.
 *
 * x86-64 with glibc. What can be left in the target: after a kill of gpuprof in the middle, 1 MiB
 * of address space (some KiB of memory), a descriptor and the library, all inert and taken up by
 * the next injection where possible. If gpuprof is killed in the first moments of a stop, the
 * thread sees EINTR from epoll_wait() and the few other calls that fail so after SIGSTOP and
 * SIGCONT, too; such threads are borrowed last.
 */
#ifndef GP_INJECT_INJECT_H
#define GP_INJECT_INJECT_H

#include "base/reason.h"
#include "inject/tracer.h"
#include "inspect/process/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inject_options {
	const char *name; /* the library's soname, at most 24 letters: so it is found again */
	/* Threads of this name are the library's own, which may have to wait for what is called:
	 * they are not borrowed. NULL: it has none. */
	const char *thread_name;
	uint32_t safe_point_limit_ms; /* to look for a safe moment; 0: 2000 */
	uint32_t call_limit_ms;	      /* for the calls in the target; 0: 10000 */
	struct tracer_meanwhile meanwhile;
};

struct inject_result {
	int returned; /* by InitializeInjection: enum gp_collector_start */
	bool reused;  /* the library was there already */
	/* Where its file was made, and why not in memory; "": it was. */
	char folder[16], refusal[80];
	pid_t tid;	    /* the thread that was borrowed */
	uint32_t stops;	    /* how often a thread was stopped to look for a safe moment */
	uint64_t waited_us; /* until the safe moment was found */
	uint64_t held_us;   /* how long the borrowed thread was kept from its own work */
};

/* Puts the library (an ELF image of `bytes`) into the process and calls its exported
 * int InitializeInjection(void). If it is loaded already, only the call is made. Returns 0, or
 * -errno with a reason: -EPERM (no right, yama, already traced, seccomp), -ESRCH (gone, zombie),
 * -ENOSYS (no glibc, 32-bit, other machine), -EAGAIN (no safe moment in time, stopped process),
 * -ENOEXEC (the image, or the target's loader refuses it), -ETIMEDOUT (a call in the target takes
 * longer than the limit; its thread was let go and ends the work alone), -EBUSY (another gpuprof is
 * at it). */
int inject_library(const struct target_process *p, const void *image, size_t bytes,
		   const struct inject_options *options, struct reason *why,
		   struct inject_result *ret_result);

/* Takes the library out again; the caller knows that it is inert (no callback registered, its
 * threads ended). *ret_left: it had to stay, inert (a thread may still return to its code, or the
 * loader keeps it). Returns 0, -ENOENT if it is not there, or as above. */
int inject_remove(const struct target_process *p, const struct inject_options *options,
		  struct reason *why, struct inject_result *ret_result, bool *ret_left);

#endif /* GP_INJECT_INJECT_H */
