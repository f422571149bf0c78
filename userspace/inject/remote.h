/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Work done by a borrowed thread of the target: system calls and C calls. The rule that everything
 * here follows: whatever instruction gpuprof is killed at, the thread goes on from where it was, by
 * itself. So the code it is sent through (trampoline.S) already holds the way back before the
 * thread is sent there by one PTRACE_SETREGS, and that code is only taken away once the thread has
 * left it.
 *
 *     remote_begin -> (remote_system_call | remote_run)* -> remote_end
 *
 * Signals are held back meanwhile. If a step fails with -ESRCH the thread is gone; with -ETIMEDOUT
 * it was let go in the middle and ends the work alone. After other failures it is still ours:
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
	uint64_t place;	      /* where the caller lies in the target */
	unsigned char *saved; /* what was there */
	uint64_t scratch;     /* 0: none yet */
	bool was_stopped;     /* the kernel's record of how to restart a call may be gone */
	uint64_t deadline_ns;
};

/* Bytes that the caller needs at `place`. */
size_t remote_place_bytes(void);
/* Whether what lies at a place is a caller that a gpuprof left when it died; then *ret_tid is the
 * thread it was for. */
bool remote_place_is_left(const unsigned char *bytes, pid_t *ret_tid);

/* For a thread in STOP_INTERRUPT at a safe point. `saved` are the bytes to put back at the place in
 * the end: remote_place_bytes() of them, borrowed until then. */
int remote_begin(struct remote *r, struct tracee *t, const struct user_regs_struct *registers,
		 uint64_t place, unsigned char *saved, uint64_t deadline_ns);

/* One system call; *ret_result may be -errno of the target. */
int remote_system_call(struct remote *r, uint64_t number, const uint64_t args[6],
		       int64_t *ret_result);

/* Maps scratch memory: a stack, room for strings and the runner. After it, remote_string() puts
 * text into the target and remote_run() makes C calls. 0, -errno of the target's mmap, or as above.
 */
int remote_scratch(struct remote *r);
/* Where `text` lies in the target now; `slot` is 0 or 1, at most 1000 bytes. 0 or -errno. */
int remote_string(struct remote *r, int slot, const char *text, uint64_t *ret_address);
int remote_run(struct remote *r, struct remote_call *calls, size_t nr);

/* Unmaps the scratch memory, puts everything back and lets the thread go. */
int remote_end(struct remote *r);

#endif /* GP_INJECT_REMOTE_H */
