/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Runs system calls and C calls on a safe thread of the traced process. One rule holds throughout:
 * whichever instruction gpuprof is killed at, the thread goes on by itself from where it was. So
 * the code in trampoline.S already holds the way back before one PTRACE_SETREGS sends the thread
 * there, and it is only removed once the thread has left it.
 *
 *     remote_begin -> (remote_system_call | remote_run)* -> remote_end
 *
 * Signals are held back meanwhile. After -ESRCH the thread is gone; after -ETIMEDOUT it was
 * released halfway and finishes the work alone. After other failures it is still ours: call
 * remote_end().
 */
#ifndef GP_INJECT_REMOTE_H
#define GP_INJECT_REMOTE_H

#include "inject/c_library.h"
#include "inject/tracee.h"

#define REMOTE_CALLS_MAX 8

/* One C call; `if_call` and `fn_call`, `arg0_call` are 1 + the index of an earlier call. */
struct remote_call {
	int if_call; /* only if that call's result is zero or not (if_want); 0: always */
	bool if_want;
	int fn_call; /* the function is that call's result; 0: fn counts */
	uint64_t fn;
	int arg0_call; /* the first argument is that call's result; 0: arg0 counts */
	uint64_t arg0, arg1;
	bool ret_done; /* set by remote_run() */
	uint64_t ret_result;
};

struct remote {
	struct tracee *t;
	struct user_regs_struct original; /* as the kernel left them at the stop */
	uint64_t mask;
	uint64_t place;	      /* address of the caller code in the process */
	unsigned char *saved; /* the bytes it replaces */
	uint64_t scratch;     /* 0: none yet */
	bool was_stopped;     /* the kernel's record of how to restart a system call may be gone */
	uint64_t deadline_ns;
};

/* How many bytes the caller needs at `place`. */
size_t remote_place_bytes(void);
/* Whether the bytes are a caller that an earlier gpuprof left when it died; *ret_tid is then the
 * thread that it served. */
bool remote_place_is_left(const unsigned char *bytes, pid_t *ret_tid);

/* Begins work on a thread in STOP_INTERRUPT at a safe point. `saved` holds the remote_place_bytes()
 * original bytes of the place, restored in the end and borrowed until then. */
int remote_begin(struct remote *r, struct tracee *t, const struct user_regs_struct *registers,
		 uint64_t place, unsigned char *saved, uint64_t deadline_ns);

/* Makes one system call; *ret_result may be the process's -errno. */
int remote_system_call(struct remote *r, uint64_t number, const uint64_t args[6],
		       int64_t *ret_result);

/* Maps scratch memory: a stack, room for strings, and the runner. Then remote_string() and
 * remote_run() work. 0, the -errno of the process's mmap, or as above. */
int remote_scratch(struct remote *r);
/* Copies `text` into the process and returns its address there; `slot` is 0 or 1, at most 1000
 * bytes. 0 or -errno. */
int remote_string(struct remote *r, int slot, const char *text, uint64_t *ret_address);
int remote_run(struct remote *r, struct remote_call *calls, size_t nr);

/* Unmaps the scratch memory, restores everything and releases the thread. */
int remote_end(struct remote *r);

#endif /* GP_INJECT_REMOTE_H */
