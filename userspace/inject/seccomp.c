/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Evaluates classic BPF with only the system call's number and the architecture known: a jump on
 * anything unknown goes both ways.
 */
#include "inject/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "inject/seccomp_trial.h"
#include "inspect/access/status.h"
#include "inspect/process/process.h"

#define GET_FILTER  0x420c
#define STEPS_MAX   200000u
#define FILTERS_MAX 64
#define WORDS	    BPF_MEMWORDS

struct value {
	bool known;
	uint32_t n;
};

struct state {
	struct value a, x, memory[WORDS];
};

struct evaluation {
	const struct sock_filter *filter;
	size_t nr;
	uint32_t number;
	uint32_t steps;
	uint32_t worst;
};

/* Keeps the more severe action, in the kernel's order: the smaller signed number is worse. */
static void note_action(struct evaluation *e, uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	if ((int32_t)action < (int32_t)e->worst)
		e->worst = action;
}

static struct value load_data(const struct evaluation *e, uint32_t offset)
{
	if (offset == offsetof(struct seccomp_data, nr))
		return (struct value){true, e->number};
	if (offset == offsetof(struct seccomp_data, arch))
		return (struct value){true, AUDIT_ARCH_X86_64};
	return (struct value){0};
}

static struct value calculate(uint16_t code, struct value a, struct value b)
{
	struct value v = {.known = a.known && (b.known || BPF_OP(code) == BPF_NEG)};

	switch (BPF_OP(code)) {
	case BPF_ADD:
		v.n = a.n + b.n;
		break;
	case BPF_SUB:
		v.n = a.n - b.n;
		break;
	case BPF_MUL:
		v.n = a.n * b.n;
		break;
	case BPF_DIV:
		v.known = v.known && b.n;
		v.n = v.known ? a.n / b.n : 0;
		break;
	case BPF_AND:
		v.n = a.n & b.n;
		break;
	case BPF_OR:
		v.n = a.n | b.n;
		break;
	case BPF_XOR:
		v.n = a.n ^ b.n;
		break;
	case BPF_LSH:
		v.n = b.n < 32 ? a.n << b.n : 0;
		break;
	case BPF_RSH:
		v.n = b.n < 32 ? a.n >> b.n : 0;
		break;
	case BPF_NEG:
		v.n = 0u - a.n;
		break;
	default:
		v.known = false;
		break;
	}
	return v;
}

static bool jump_holds(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	default:
		return a & b;
	}
}

static struct value load(const struct evaluation *e, const struct state *s,
			 const struct sock_filter *i)
{
	switch (BPF_MODE(i->code)) {
	case BPF_ABS:
		return load_data(e, i->k);
	case BPF_IMM:
		return (struct value){true, i->k};
	case BPF_MEM:
		return i->k < WORDS ? s->memory[i->k] : (struct value){0};
	case BPF_LEN:
		return (struct value){true, sizeof(struct seccomp_data)};
	default:
		return (struct value){0};
	}
}

static void step(const struct evaluation *e, struct state *s, const struct sock_filter *i)
{
	struct value operand = BPF_SRC(i->code) == BPF_X ? s->x : (struct value){true, i->k};

	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
		s->a = load(e, s, i);
		break;
	case BPF_LDX:
		s->x = load(e, s, i);
		break;
	case BPF_ST:
		if (i->k < WORDS)
			s->memory[i->k] = s->a;
		break;
	case BPF_STX:
		if (i->k < WORDS)
			s->memory[i->k] = s->x;
		break;
	case BPF_ALU:
		s->a = calculate(i->code, s->a, operand);
		break;
	default: /* BPF_MISC */
		if (BPF_MISCOP(i->code) == BPF_TAX)
			s->x = s->a;
		else
			s->a = s->x;
		break;
	}
}

static void evaluate(struct evaluation *e, size_t at, struct state s);

/* Follows a jump and returns where to continue; evaluates a second way on the spot. */
static size_t jump(struct evaluation *e, size_t at, const struct state *s)
{
	const struct sock_filter *i = &e->filter[at];
	struct value operand = BPF_SRC(i->code) == BPF_X ? s->x : (struct value){true, i->k};

	if (BPF_OP(i->code) == BPF_JA)
		return i->k < e->nr ? at + 1 + i->k : e->nr;
	if (s->a.known && operand.known)
		return at + 1 + (jump_holds(i->code, s->a.n, operand.n) ? i->jt : i->jf);
	if (i->jt != i->jf)
		evaluate(e, at + 1 + i->jt, *s);
	return at + 1 + i->jf;
}

static void evaluate(struct evaluation *e, size_t at, struct state s)
{
	while (at < e->nr && e->steps++ < STEPS_MAX) {
		const struct sock_filter *i = &e->filter[at];

		if (BPF_CLASS(i->code) == BPF_RET) {
			if (BPF_RVAL(i->code) == BPF_K)
				note_action(e, i->k);
			else
				note_action(e, s.a.known ? s.a.n : SECCOMP_RET_KILL_PROCESS);
			return;
		}
		if (BPF_CLASS(i->code) == BPF_JMP) {
			at = jump(e, at, &s);
		} else {
			step(e, &s, i);
			at++;
		}
	}
	note_action(e, SECCOMP_RET_KILL_PROCESS);
}

uint32_t seccomp_worst_action(const struct sock_filter *filter, size_t nr, uint32_t number)
{
	struct evaluation e = {
		.filter = filter, .nr = nr, .number = number, .worst = SECCOMP_RET_ALLOW};

	/* The kernel starts with accumulator and index zero. */
	evaluate(&e, 0, (struct state){.a = {true, 0}, .x = {true, 0}});
	return e.worst;
}

struct needed {
	uint32_t number;
	const char *name;
	bool must_work; /* must be allowed: it may not even fail with an errno */
};

/* System calls of injection, of dlopen, and of the collector in the process: its thread, its shared
 * memory ring, its sleeps. */
static const struct needed needed[] = {
	{SYS_rt_sigprocmask, "rt_sigprocmask", true},
	{SYS_mmap, "mmap", true},
	{SYS_mprotect, "mprotect", true},
	{SYS_munmap, "munmap", true},
	{SYS_memfd_create, "memfd_create", false},
	{SYS_close, "close", true},
	{SYS_getpid, "getpid", false},
	{SYS_openat, "openat", true},
	{SYS_read, "read", true},
	{SYS_futex, "futex", true},
	{SYS_open, "open", false},
	{SYS_pread64, "pread64", false},
	{SYS_fstat, "fstat", false},
	{SYS_newfstatat, "newfstatat", false},
	{SYS_lseek, "lseek", false},
	{SYS_brk, "brk", false},
	{SYS_madvise, "madvise", false},
	{SYS_readlink, "readlink", false},
	{SYS_getcwd, "getcwd", false},
	{SYS_clone, "clone", false},
	{435, "clone3", false},
	{SYS_set_robust_list, "set_robust_list", false},
	{334, "rseq", false},
	{SYS_gettid, "gettid", false},
	{SYS_exit, "exit", false},
	{SYS_write, "write", false},
	{SYS_ftruncate, "ftruncate", false},
	{SYS_fallocate, "fallocate", false},
	{SYS_fcntl, "fcntl", false},
	{324, "membarrier", false},
	{SYS_rt_sigaction, "rt_sigaction", false},
	{SYS_sched_getaffinity, "sched_getaffinity", false},
	{318, "getrandom", false},
	{SYS_prctl, "prctl", false},
	{SYS_poll, "poll", false},
	{SYS_ppoll, "ppoll", false},
	{SYS_nanosleep, "nanosleep", false},
	{SYS_clock_nanosleep, "clock_nanosleep", false},
	{SYS_clock_gettime, "clock_gettime", false},
	{SYS_sched_yield, "sched_yield", false},
	{SYS_process_vm_readv, "process_vm_readv", false},
	{SYS_restart_syscall, "restart_syscall", false},
	{SYS_rt_sigreturn, "rt_sigreturn", true},
};

/* Additional calls for a file in a folder, where memory files are refused. */
static const struct needed for_files[] = {{SYS_unlinkat, "unlinkat", true}};

/* A list of calls to check. */
struct calls {
	const struct needed *items;
	size_t nr;
};

static const struct calls for_all = {needed, sizeof(needed) / sizeof(*needed)};

/* Checks one call against the filters' action: 0, or -EPERM with a reason. */
static int check_call(pid_t pid, const struct needed *call, uint32_t action, struct reason *why)
{
	if (action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG)
		return 0;
	if (action == SECCOMP_RET_ERRNO && !call->must_work)
		return 0;
	return reason_set(why, -EPERM,
			  "process %d has a seccomp filter that %s %s(); use --no-inject", pid,
			  action == SECCOMP_RET_ERRNO ? "refuses" : "may kill it for", call->name);
}

static int check_filter(pid_t pid, const struct calls *calls, const struct sock_filter *filter,
			size_t nr, struct reason *why)
{
	int err = 0;

	for (size_t i = 0; i < calls->nr && !err; i++)
		err = check_call(pid, &calls->items[i],
				 seccomp_worst_action(filter, nr, calls->items[i].number), why);
	return err;
}

/* Checks filters that cannot be read, because of `err`, if they are those of gpuprof's own
 * container. */
static int check_unread(const struct target_process *p, const struct calls *calls, pid_t tid,
			int err, struct reason *why)
{
	uint32_t numbers[SECCOMP_TRIAL_MAX], actions[SECCOMP_TRIAL_MAX];

	if (!seccomp_trial_fits(p, tid))
		return reason_set(why, -EPERM,
				  "process %d has a seccomp filter that cannot be read (%s); run "
				  "gpuprof in its container, or on the host as root with "
				  "CAP_SYS_ADMIN, or use --no-inject",
				  p->pid, strerror(-err));
	for (size_t i = 0; i < calls->nr; i++)
		numbers[i] = calls->items[i].number;
	err = seccomp_trial(numbers, calls->nr, actions);
	if (err)
		return reason_set(why, -EPERM,
				  "cannot try what the seccomp filter of process %d does: %s",
				  p->pid, strerror(-err));
	for (size_t i = 0; i < calls->nr && !err; i++)
		err = check_call(p->pid, &calls->items[i], actions[i], why);
	return err;
}

static int read_filter(pid_t tid, unsigned long index, struct sock_filter **ret_filter,
		       size_t *ret_nr)
{
	struct sock_filter *filter;
	long nr = ptrace(GET_FILTER, tid, (void *)index, NULL);

	if (nr <= 0)
		return nr ? -errno : -EINVAL;
	filter = calloc((size_t)nr, sizeof(*filter));
	if (!filter)
		return -ENOMEM;
	if (ptrace(GET_FILTER, tid, (void *)index, filter) != nr) {
		free(filter);
		return -EINVAL;
	}
	*ret_filter = filter;
	*ret_nr = (size_t)nr;
	return 0;
}

/* Reads the thread's seccomp mode: 0 none, 1 strict, 2 filter; -1: it cannot be read. */
static int read_mode(pid_t pid, pid_t tid)
{
	CLEANUP(cleanup_free) char *text = NULL;
	long mode;

	if (status_read(pid, tid, &text))
		return -1;
	return status_number(text, "Seccomp", 0, &mode) ? (int)mode : 0;
}

static int check(const struct target_process *p, const struct calls *calls, pid_t tid,
		 struct reason *why)
{
	int mode = read_mode(p->pid, tid), err;

	if (!mode)
		return 0;
	if (mode != SECCOMP_MODE_FILTER)
		return reason_set(why, -EPERM,
				  "process %d is in seccomp's strict mode; use --no-inject",
				  p->pid);
	for (unsigned long i = 0; i < FILTERS_MAX; i++) {
		struct sock_filter CLEANUP(cleanup_free) *filter = NULL;
		size_t nr = 0;

		err = read_filter(tid, i, &filter, &nr);
		if (err == -ENOENT && i)
			return 0;
		if (err)
			return check_unread(p, calls, tid, err, why);
		err = check_filter(p->pid, calls, filter, nr, why);
		if (err)
			return err;
	}
	return reason_set(why, -EPERM, "process %d has too many seccomp filters; use --no-inject",
			  p->pid);
}

int seccomp_check(const struct target_process *p, pid_t tid, struct reason *why)
{
	return check(p, &for_all, tid, why);
}

int seccomp_check_files(const struct target_process *p, pid_t tid, struct reason *why)
{
	static const struct calls calls = {for_files, sizeof(for_files) / sizeof(*for_files)};

	return check(p, &calls, tid, why);
}
