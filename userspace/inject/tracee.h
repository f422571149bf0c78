/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One thread of the target under ptrace. Every function may be the last thing gpuprof does: when it
 * dies the kernel lets the thread go on from the registers it has at that moment. That is why stops
 * are looked at without being consumed (WNOWAIT): a signal whose stop was consumed would be lost
 * with gpuprof. All functions must be called from the thread that called tracee_seize(), in a
 * tracer (tracer.h), and whatever is still held is let go by the kernel when that thread ends.
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
	STOP_INTERRUPT = 1, /* ours: nothing arrived, it waits inside the kernel's signal path */
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
	int signal; /* of STOP_SIGNAL */
	uint64_t stopped_since_ns;
	uint64_t stopped_ns; /* the sum of its stops */
};

struct tracees {
	VEC(struct tracee) items;
};

/* Takes a thread out of the list, if it is there. */
bool tracees_take(struct tracees *list, pid_t tid, struct tracee *ret_t);

/* Takes the thread under ptrace without stopping it. Waits half a second where another has it, who
 * may just be ending. 0 or -errno. */
int tracee_seize(struct tracee *t, pid_t pid, pid_t tid);
/* Stops it. Signals that come first are delivered as usual. STOP_INTERRUPT or STOP_GROUP then.
 * Returns 0, -ETIMEDOUT, or -ESRCH if the thread is gone. */
int tracee_stop(struct tracee *t, uint64_t deadline_ns);
/* Waits until it stops for whatever reason. 0, -ETIMEDOUT or -ESRCH. */
int tracee_wait(struct tracee *t, uint64_t deadline_ns);
/* Lets it go on to the next system call's edge, with a signal to deliver or 0. 0 or -errno. */
int tracee_to_system_call(struct tracee *t, int signal);
/* Asks for a stop inside the kernel's signal path, and lets it go on there: for a thread that is
 * stopped. 0 or -errno; then tracee_wait(). */
int tracee_interrupt_on(struct tracee *t);
/* For a thread in STOP_GROUP: it stays stopped with its process, and stops again for us when that
 * is over. 0 or -errno; then tracee_wait(). */
int tracee_listen(struct tracee *t);
/* Lets a stopped thread go for good, with a signal to deliver or 0. A system call that our stop
 * made fail with EINTR is begun again. Fine on a thread that is gone. */
void tracee_detach(struct tracee *t, int signal);

/* For a thread in STOP_INTERRUPT: a system call that our stop made fail with EINTR is begun again
 * from now on, also if gpuprof dies. */
void tracee_undisturb(struct tracee *t);

/* Registers and signal mask of a stopped thread. 0 or -errno (-ESRCH: it is gone). */
int tracee_registers(const struct tracee *t, struct user_regs_struct *ret_registers);
int tracee_set_registers(const struct tracee *t, const struct user_regs_struct *registers);
int tracee_mask(const struct tracee *t, uint64_t *ret_mask);
int tracee_set_mask(const struct tracee *t, uint64_t mask);

/* Whether a system call fails with EINTR instead of going on when a tracer (or SIGSTOP and SIGCONT)
 * stops it, having done nothing by then. */
bool call_fails_by_stop(long number);

/* The registers of a thread in STOP_INTERRUPT as they must be set for its system call to go on as
 * if nothing had been: EINTR that only our stop caused becomes a restart. */
void registers_undisturbed(struct user_regs_struct *r);
/* The same for a thread that goes on without the kernel's help: the system call's instruction is
 * run again. */
void registers_restarted(struct user_regs_struct *r);

/* All or nothing. 0 or -EFAULT. */
int tracee_read(const struct tracee *t, uint64_t address, void *data, size_t bytes);
/* Also into read-only private mappings, which get a page of their own. 0 or -EFAULT. */
int tracee_write(const struct tracee *t, uint64_t address, const void *data, size_t bytes);

#endif /* GP_INJECT_TRACEE_H */
