/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One thread of the traced process, under ptrace. gpuprof may die after any call; the kernel then
 * continues the thread from its current registers. So stops are inspected but not consumed
 * (WNOWAIT): a signal whose stop was consumed would be lost with gpuprof. All functions must be
 * called from the thread that called tracee_seize(), in a tracer (tracer.h); when that thread ends
 * the kernel releases whatever it still holds.
 */
#ifndef GP_INJECT_TRACEE_H
#define GP_INJECT_TRACEE_H

#include "base/reason.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

enum stop_kind {
	STOP_INTERRUPT = 1, /* our own: no signal, the thread waits in the kernel's signal path */
	STOP_GROUP = 2,	    /* SIGSTOP and the like stopped the process */
	STOP_SIGNAL = 3,    /* a signal is about to be delivered */
	STOP_ENTRY = 4,	    /* before a system call */
	STOP_EXIT = 5,	    /* after a system call */
	STOP_OTHER = 6,
};

struct tracee {
	pid_t pid, tid;
	int mem_fd; /* /proc/PID/mem */
	bool stopped;
	enum stop_kind stop;
	int signal; /* the signal of STOP_SIGNAL */
	uint64_t stopped_since_ns;
	uint64_t stopped_ns; /* the time that it was stopped, in all */
};

struct tracees {
	VEC(struct tracee) items;
};

/* Takes a thread out of the list. False if it is not there. */
bool tracees_take(struct tracees *list, pid_t tid, struct tracee *ret_t);

/* Attaches to the thread without stopping it. If it has another tracer, waits up to half a second:
 * that one may be ending. 0 or -errno. */
int tracee_seize(struct tracee *t, pid_t pid, pid_t tid);
/* Stops the thread in STOP_INTERRUPT or STOP_GROUP. Signals that come first are delivered as usual.
 * 0, -ETIMEDOUT, or -ESRCH if the thread is gone. */
int tracee_stop(struct tracee *t, uint64_t deadline_ns);
/* Waits for any stop. 0, -ETIMEDOUT or -ESRCH. */
int tracee_wait(struct tracee *t, uint64_t deadline_ns);
/* Continues the thread to the next system call entry or exit and delivers a signal (0: none). 0 or
 * -errno. */
int tracee_to_system_call(struct tracee *t, int signal);
/* Continues a stopped thread and requests a stop in the kernel's signal path. 0 or -errno; then
 * call tracee_wait(). */
int tracee_interrupt_on(struct tracee *t);
/* For a thread in STOP_GROUP: leaves it stopped with its process; it stops for us again when that
 * ends. 0 or -errno; then call tracee_wait(). */
int tracee_listen(struct tracee *t);
/* Releases a stopped thread and delivers a signal (0: none). A system call that failed with EINTR
 * because of our stop is restarted. Has no effect on a thread that is gone. */
void tracee_detach(struct tracee *t, int signal);

/* For a thread in STOP_INTERRUPT: makes a system call that our stop interrupted with EINTR restart,
 * even if gpuprof dies now. */
void tracee_undisturb(struct tracee *t);

/* Reads the registers or signal mask of a stopped thread. 0 or -errno (-ESRCH: it is gone). */
int tracee_registers(const struct tracee *t, struct user_regs_struct *ret_registers);
int tracee_set_registers(const struct tracee *t, const struct user_regs_struct *registers);
int tracee_mask(const struct tracee *t, uint64_t *ret_mask);
int tracee_set_mask(const struct tracee *t, uint64_t mask);

/* Whether this system call fails with EINTR, instead of being restarted, when a tracer (or SIGSTOP
 * and SIGCONT) stops it, having done nothing. */
bool call_fails_by_stop(long number);

/* Changes the registers of a thread in STOP_INTERRUPT so that its system call goes on as if
 * undisturbed: an EINTR that only our stop caused becomes a restart. */
void registers_undisturbed(struct user_regs_struct *r);
/* Does the same for a thread that continues without the kernel's restart: the system call
 * instruction runs again. */
void registers_restarted(struct user_regs_struct *r);

/* Reads all bytes or none. 0 or -EFAULT. */
int tracee_read(const struct tracee *t, uint64_t address, void *data, size_t bytes);
/* Writes memory, also into read-only private mappings, which get their own copy of the page. 0 or
 * -EFAULT. */
int tracee_write(const struct tracee *t, uint64_t address, const void *data, size_t bytes);

#endif /* GP_INJECT_TRACEE_H */
