/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The steps of remote work. Registers are restored in the raw form in which the kernel left them,
 * while the thread is in the kernel's signal path. So the kernel itself restarts the interrupted
 * system call, or fails it with EINTR if a held-back signal has a handler, as it would without us.
 * The trampolines' contexts hold the form that needs no kernel (registers_restarted()).
 */
#include "inject/remote.h"

#include <cpuid.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "common/clock.h"
#include "inject/trampoline.h"

#define PAGE	      4096u
#define STACK_BYTES   (1u << 20)
#define DATA_BYTES    (64u << 10)
#define SCRATCH_BYTES (PAGE + STACK_BYTES + DATA_BYTES)
#define RED_ZONE      128u
#define SYSCALL_BYTES 2u
#define CR4_OSXSAVE   (1u << 27)

/* Offsets in the data block. */
#define DATA_RUN    0u		/* the runner's block with the register state, up to 48 KiB */
#define DATA_CALLS  (48u << 10) /* the program */
#define DATA_STRING (52u << 10) /* two strings of 1 KiB */
#define STRING_MAX  1024u

extern const unsigned char gp_caller_begin[], gp_caller_syscall[], gp_caller_context[],
	gp_caller_end[];
extern const unsigned char gp_runner_begin[], gp_runner_entry[], gp_runner_marker[],
	gp_runner_context[], gp_runner_end[];

#define CALLER_BYTES   ((size_t)(gp_caller_end - gp_caller_begin))
#define CALLER_OWNER   16u
#define CALLER_SYSCALL ((size_t)(gp_caller_syscall - gp_caller_begin))
#define CALLER_CONTEXT ((size_t)(gp_caller_context - gp_caller_begin))
#define RUNNER_BYTES   ((size_t)(gp_runner_end - gp_runner_begin))
#define RUNNER_ENTRY   ((size_t)(gp_runner_entry - gp_runner_begin))
#define RUNNER_MARKER  ((size_t)(gp_runner_marker - gp_runner_begin))
#define RUNNER_CONTEXT ((size_t)(gp_runner_context - gp_runner_begin))
#define CODE_MAX       2048u

/* A kernel-internal errno: restart with restart_syscall(). */
#define ERESTART_RESTARTBLOCK 516

size_t remote_place_bytes(void)
{
	return CALLER_BYTES;
}

bool remote_place_is_left(const unsigned char *bytes, pid_t *ret_tid)
{
	uint64_t tid;

	if (memcmp(bytes, gp_caller_begin, CALLER_OWNER))
		return false;
	memcpy(&tid, bytes + CALLER_OWNER, sizeof(tid));
	*ret_tid = (pid_t)tid;
	return true;
}

static void put(unsigned char *at, size_t offset, uint64_t value)
{
	memcpy(at + offset, &value, sizeof(value));
}

static void fill_context(unsigned char *at, const struct remote *r)
{
	struct user_regs_struct g = r->original;

	registers_restarted(&g);
	put(at, CTX_MASK, r->mask);
	put(at, CTX_FLAGS, g.eflags);
	put(at, CTX_RIP, g.rip);
	put(at, CTX_RSP, g.rsp);
	put(at, CTX_RAX, g.rax);
	put(at, CTX_RBX, g.rbx);
	put(at, CTX_RCX, g.rcx);
	put(at, CTX_RDX, g.rdx);
	put(at, CTX_RSI, g.rsi);
	put(at, CTX_RDI, g.rdi);
	put(at, CTX_RBP, g.rbp);
	put(at, CTX_R8, g.r8);
	put(at, CTX_R9, g.r9);
	put(at, CTX_R10, g.r10);
	put(at, CTX_R11, g.r11);
	put(at, CTX_R12, g.r12);
	put(at, CTX_R13, g.r13);
	put(at, CTX_R14, g.r14);
	put(at, CTX_R15, g.r15);
}

/* Restores the thread's registers and mask, then the bytes at the place: in this order, because the
 * thread may run on at any moment. */
static void put_back(struct remote *r)
{
	struct user_regs_struct g = r->original;

	registers_undisturbed(&g);
	if (r->was_stopped && (int64_t)g.orig_rax >= 0 && (int64_t)g.rax == -ERESTART_RESTARTBLOCK)
		g.rax = (uint64_t)-EINTR;
	(void)tracee_set_mask(r->t, r->mask);
	if (!tracee_set_registers(r->t, &g))
		(void)tracee_write(r->t, r->place, r->saved, CALLER_BYTES);
}

/* Our stops may have overwritten the kernel's record of a call that restarts with its remaining
 * time; such a call then fails with EINTR. */
static void forget_restart(struct remote *r)
{
	unsigned char context[CTX_BYTES];

	if ((int64_t)r->original.orig_rax < 0 || (int64_t)r->original.rax != -ERESTART_RESTARTBLOCK)
		return;
	r->original.rax = (uint64_t)-EINTR;
	fill_context(context, r);
	(void)tracee_write(r->t, r->place + CALLER_CONTEXT, context, sizeof(context));
	if (r->scratch)
		(void)tracee_write(r->t, r->scratch + RUNNER_CONTEXT, context, sizeof(context));
}

/* The thread does not finish in time: releases it where it is, to finish alone. */
static int abandon(struct remote *r)
{
	if (!r->t->stopped)
		(void)tracee_stop(r->t, clock_now_ns() + 1000000000u);
	if (r->t->stopped)
		forget_restart(r);
	tracee_detach(r->t, r->t->stop == STOP_SIGNAL ? r->t->signal : 0);
	return -ETIMEDOUT;
}

/* After SIGSTOP the thread stays stopped with its process, until SIGCONT or the deadline. */
static int wait_in_group_stop(struct remote *r)
{
	int err = tracee_listen(r->t);

	r->was_stopped = true;
	return err ? err : tracee_wait(r->t, r->deadline_ns);
}

/* Continues the thread to its next stop of the wanted kind. */
static int go_on(struct remote *r, enum stop_kind wanted)
{
	int err = tracee_to_system_call(r->t, 0);

	while (!err) {
		err = tracee_wait(r->t, r->deadline_ns);
		while (!err && r->t->stop == STOP_GROUP)
			err = wait_in_group_stop(r);
		if (err || r->t->stop == wanted)
			break;
		err = tracee_to_system_call(r->t, r->t->stop == STOP_SIGNAL ? r->t->signal : 0);
	}
	return err == -ETIMEDOUT ? abandon(r) : err;
}

/* Returns a stack address below what the thread may use. */
static uint64_t caller_stack(const struct remote *r)
{
	return (r->original.rsp - RED_ZONE - 64) & ~15ull;
}

int remote_system_call(struct remote *r, uint64_t number, const uint64_t args[6],
		       int64_t *ret_result)
{
	struct user_regs_struct g = r->original;
	int err;

	g.rax = number;
	g.orig_rax = (uint64_t)-1;
	g.rdi = args[0];
	g.rsi = args[1];
	g.rdx = args[2];
	g.r10 = args[3];
	g.r8 = args[4];
	g.r9 = args[5];
	g.rsp = caller_stack(r);
	g.rip = r->place + CALLER_SYSCALL;
	err = tracee_set_registers(r->t, &g);
	if (!err)
		err = go_on(r, STOP_ENTRY);
	if (!err)
		err = go_on(r, STOP_EXIT);
	if (!err)
		err = tracee_registers(r->t, &g);
	if (!err)
		*ret_result = (int64_t)g.rax;
	return err;
}

/* Sends the thread to the way back, then blocks all signals: a handler must neither run on our
 * stack nor be missed by the system call that waits for it. In this order, because only the way
 * back restores the mask. */
static int hold_signals(struct remote *r)
{
	struct user_regs_struct g = r->original;
	int err;

	g.orig_rax = (uint64_t)-1;
	g.rsp = caller_stack(r);
	g.rip = r->place + CALLER_SYSCALL + SYSCALL_BYTES;
	err = tracee_set_registers(r->t, &g);
	if (!err)
		err = tracee_set_mask(r->t, UINT64_MAX);
	return err;
}

int remote_begin(struct remote *r, struct tracee *t, const struct user_regs_struct *registers,
		 uint64_t place, unsigned char *saved, uint64_t deadline_ns)
{
	unsigned char code[CODE_MAX];
	int err;

	*r = (struct remote){.t = t,
			     .original = *registers,
			     .place = place,
			     .saved = saved,
			     .deadline_ns = deadline_ns};
	err = tracee_mask(t, &r->mask);
	if (err)
		return err;
	memcpy(code, gp_caller_begin, CALLER_BYTES);
	put(code, CALLER_OWNER, (uint64_t)t->tid);
	fill_context(code + CALLER_CONTEXT, r);
	err = tracee_write(t, place, code, CALLER_BYTES);
	if (err) {
		(void)tracee_write(t, place, saved, CALLER_BYTES);
		return err;
	}
	return hold_signals(r);
}

static uint64_t data_at(const struct remote *r)
{
	return r->scratch + PAGE + STACK_BYTES;
}

static int scratch_call(struct remote *r, uint64_t number, uint64_t arg0, uint64_t arg1,
			uint64_t arg2, int64_t *ret_result)
{
	const uint64_t args[6] = {
		arg0, arg1, arg2, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, UINT64_MAX, 0};

	return remote_system_call(r, number, args, ret_result);
}

int remote_scratch(struct remote *r)
{
	unsigned char code[CODE_MAX];
	int64_t result;
	int err = scratch_call(r, SYS_mmap, 0, SCRATCH_BYTES, PROT_READ | PROT_WRITE, &result);

	if (err || result < 0)
		return err ? err : (int)result;
	r->scratch = (uint64_t)result;
	err = scratch_call(r, SYS_mprotect, r->scratch, PAGE, PROT_READ | PROT_EXEC, &result);
	if (err || result)
		return err ? err : (int)result;
	memcpy(code, gp_runner_begin, RUNNER_BYTES);
	fill_context(code + RUNNER_CONTEXT, r);
	return tracee_write(r->t, r->scratch, code, RUNNER_BYTES);
}

int remote_string(struct remote *r, int slot, const char *text, uint64_t *ret_address)
{
	uint64_t at = data_at(r) + DATA_STRING + (uint64_t)slot * STRING_MAX;
	size_t bytes = strlen(text) + 1;
	int err;

	if (bytes > STRING_MAX)
		return -ENAMETOOLONG;
	err = tracee_write(r->t, at, text, bytes);
	if (!err)
		*ret_address = at;
	return err;
}

/* Whether the CPU has xsave, and how much room its whole state takes. */
static bool has_xsave(uint32_t *ret_bytes)
{
	uint32_t a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & CR4_OSXSAVE))
		return false;
	if (!__get_cpuid_count(13, 0, &a, &b, &c, &d))
		return false;
	*ret_bytes = b;
	return true;
}

static uint64_t result_at(const struct remote *r, int call)
{
	return data_at(r) + DATA_CALLS + (uint64_t)(call - 1) * CALL_BYTES + CALL_RESULT;
}

static int write_program(struct remote *r, const struct remote_call *calls, size_t nr)
{
	unsigned char program[REMOTE_CALLS_MAX * CALL_BYTES] = {0};
	unsigned char run[RUN_AREA] = {0};
	uint32_t area = 512;
	bool xsave = has_xsave(&area);
	int err;

	if (nr > REMOTE_CALLS_MAX)
		return -EINVAL;
	if (RUN_AREA + area > DATA_CALLS)
		return -E2BIG;
	for (size_t i = 0; i < nr; i++) {
		const struct remote_call *c = &calls[i];
		unsigned char *at = program + i * CALL_BYTES;

		put(at, CALL_IF, c->if_call ? result_at(r, c->if_call) : 0);
		put(at, CALL_WANT, c->if_want);
		put(at, CALL_FN, c->fn);
		put(at, CALL_FN_AT, c->fn_call ? result_at(r, c->fn_call) : 0);
		put(at, CALL_ARG0, c->arg0);
		put(at, CALL_ARG0_AT, c->arg0_call ? result_at(r, c->arg0_call) : 0);
		put(at, CALL_ARG1, c->arg1);
	}
	put(run, RUN_COUNT, nr);
	put(run, RUN_NEXT, data_at(r) + DATA_CALLS);
	put(run, RUN_XSAVE, xsave);
	err = tracee_write(r->t, data_at(r) + DATA_CALLS, program, nr * CALL_BYTES);
	return err ? err : tracee_write(r->t, data_at(r) + DATA_RUN, run, sizeof(run));
}

static int read_results(const struct remote *r, struct remote_call *calls, size_t nr)
{
	unsigned char program[REMOTE_CALLS_MAX * CALL_BYTES];
	uint64_t done;
	int err = tracee_read(r->t, data_at(r) + DATA_CALLS, program, nr * CALL_BYTES);

	if (err)
		return err;
	for (size_t i = 0; i < nr; i++) {
		memcpy(&done, program + i * CALL_BYTES + CALL_DONE, sizeof(done));
		memcpy(&calls[i].ret_result, program + i * CALL_BYTES + CALL_RESULT,
		       sizeof(calls[i].ret_result));
		calls[i].ret_done = done;
	}
	return 0;
}

/* Continues to the exit of the marker call. System calls of the C calls pass; their failures are
 * the library's business. */
static int go_to_marker(struct remote *r)
{
	struct user_regs_struct g;
	int err;

	do {
		err = go_on(r, STOP_EXIT);
		if (!err)
			err = tracee_registers(r->t, &g);
	} while (!err && g.rip != r->scratch + RUNNER_MARKER + SYSCALL_BYTES);
	return err;
}

int remote_run(struct remote *r, struct remote_call *calls, size_t nr)
{
	struct user_regs_struct g = r->original;
	int err = write_program(r, calls, nr);

	if (err)
		return err;
	g.orig_rax = (uint64_t)-1;
	g.rip = r->scratch + RUNNER_ENTRY;
	g.rsp = r->scratch + PAGE + STACK_BYTES;
	g.rbx = data_at(r) + DATA_RUN;
	err = tracee_set_registers(r->t, &g);
	if (!err)
		err = go_to_marker(r);
	return err ? err : read_results(r, calls, nr);
}

int remote_end(struct remote *r)
{
	int64_t result;
	int err = 0;

	if (r->scratch)
		err = scratch_call(r, SYS_munmap, r->scratch, SCRATCH_BYTES, 0, &result);
	if (!err)
		err = tracee_interrupt_on(r->t);
	while (!err) {
		err = tracee_wait(r->t, r->deadline_ns);
		if (err || r->t->stop == STOP_INTERRUPT || r->t->stop == STOP_GROUP)
			break;
		err = tracee_to_system_call(r->t, r->t->stop == STOP_SIGNAL ? r->t->signal : 0);
	}
	if (err)
		return err == -ETIMEDOUT ? abandon(r) : err;
	put_back(r);
	tracee_detach(r->t, 0);
	return 0;
}
