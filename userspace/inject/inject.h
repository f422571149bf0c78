/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Injects a shared library into a running process and removes it again. Nothing has to exist in the
 * process's file system; if the process is refused memory files that hold code, an unlinked file in
 * one of its folders takes their place. The calls run on a safe thread: one that holds no lock that
 * dlopen needs. Afterwards its system call, registers, vector state, signals and stack are as
 * before. gpuprof may be killed at any instruction: the process goes on.
 *
 * x86-64 with glibc. If gpuprof is killed halfway, this can stay in the process: 1 MiB of address
 * space (some KiB of memory), a descriptor and the library, all inert and reused by the next
 * injection where possible. If it is killed in the first moments of a stop, the thread sees EINTR
 * from epoll_wait() and the few other calls that fail so after SIGSTOP and SIGCONT, too; such
 * threads are chosen last.
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
	const char *name; /* the library's soname, at most 24 letters, by which it is found again */
	/* Name of the library's own threads. They may have to wait for the calls, so they are never
	 * used as the safe thread. NULL: it has none. */
	const char *thread_name;
	uint32_t safe_point_limit_ms; /* to find a safe moment; 0: 2000 */
	uint32_t call_limit_ms;	      /* for the calls in the process; 0: 10000 */
	struct tracer_meanwhile meanwhile;
};

struct inject_result {
	int returned; /* InitializeInjection's result: enum gp_collector_start */
	bool reused;  /* the library was there already */
	/* Where its file was created, and why not in memory; "": in memory. */
	char folder[16], refusal[80];
	pid_t tid;	    /* the safe thread */
	uint32_t stops;	    /* how often threads were stopped to find a safe moment */
	uint64_t waited_us; /* until a safe moment was found */
	uint64_t held_us;   /* how long the safe thread was kept from its own work */
};

/* Loads the library (an ELF image of `bytes`) into the process and calls its exported int
 * InitializeInjection(void). If it is loaded already, only makes the call. 0, or -errno with a
 * reason: -EPERM (no right, yama, already traced, seccomp), -ESRCH (gone, zombie), -ENOSYS (no
 * glibc, 32-bit, other machine), -EAGAIN (no safe moment in time, stopped process), -ENOEXEC (the
 * image, or the loader refuses it), -ETIMEDOUT (a call takes longer than the limit; its thread was
 * released and finishes alone), -EBUSY (another gpuprof holds the lock). */
int inject_library(const struct target_process *p, const void *image, size_t bytes,
		   const struct inject_options *options, struct reason *why,
		   struct inject_result *ret_result);

/* Removes the library; the caller knows that it is inert (no callback registered, its threads
 * ended). *ret_left: it had to stay, inert (a thread may still return to its code, or the loader
 * keeps it). 0, -ENOENT if it is not there, or as above. */
int inject_remove(const struct target_process *p, const struct inject_options *options,
		  struct reason *why, struct inject_result *ret_result, bool *ret_left);

#endif /* GP_INJECT_INJECT_H */
