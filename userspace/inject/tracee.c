/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The ptrace calls. One PTRACE_SETREGS sets all registers; a killed tracer either finishes it or
 * never begins, so a thread never runs with half of them.
 */
#include "inject/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "common/clock.h"
#include "inject/ptrace_error.h"
#include "inject/tracer.h"

#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516
#define SYS_RESTART_SYSCALL   219
#define GET_SYSCALL_INFO      0x420e
#define SYSCALL_INFO_ENTRY    1
#define MASK_BYTES	      8
#define TRAP_EVENT_STOP	      128
#define ENDING_PAUSE_NS	      5000000L
#define ENDING_TRIES	      100

static long trace(int request, pid_t tid, void *address, void *data)
{
	long ret;

	tracer_pulse();
	ret = ptrace(request, tid, address, data);
	return ret < 0 ? -errno : ret;
}

static void *as_data(uint64_t n)
{
	return (void *)(uintptr_t)n;
}

bool tracees_take(struct tracees *list, pid_t tid, struct tracee *ret_t)
{
	for (size_t i = 0; i < list->items.nr; i++) {
		if (list->items.items[i].tid != tid)
			continue;
		*ret_t = list->items.items[i];
		list->items.items[i] = list->items.items[--list->items.nr];
		return true;
	}
	return false;
}

/* Attaches to the thread. A killed tracer releases its threads a moment after its end can be seen.
 */
static long seize(pid_t tid)
{
	static const struct timespec pause = {.tv_nsec = ENDING_PAUSE_NS};
	long err = trace(PTRACE_SEIZE, tid, NULL, as_data(PTRACE_O_TRACESYSGOOD));

	for (int i = 0; err == -EPERM && i < ENDING_TRIES && tracer_of(tid); i++) {
		(void)nanosleep(&pause, NULL);
		err = trace(PTRACE_SEIZE, tid, NULL, as_data(PTRACE_O_TRACESYSGOOD));
	}
	return err;
}

int tracee_seize(struct tracee *t, pid_t pid, pid_t tid)
{
	long err = seize(tid);
	int mem_fd = t->mem_fd;

	if (err)
		return (int)err;
	*t = (struct tracee){.pid = pid, .tid = tid, .mem_fd = mem_fd};
	return 0;
}

/* Tells the stop before a system call from the one after it. Without PTRACE_GET_SYSCALL_INFO (Linux
 * before 5.3) the result register decides: before the call it is -ENOSYS, which no call that we
 * wait for returns. */
static enum stop_kind system_call_edge(const struct tracee *t)
{
	struct user_regs_struct r;
	struct {
		uint8_t op;
		uint8_t rest[87];
	} info = {0};

	if (trace(GET_SYSCALL_INFO, t->tid, as_data(sizeof(info)), &info) > 0)
		return info.op == SYSCALL_INFO_ENTRY ? STOP_ENTRY : STOP_EXIT;
	if (!tracee_registers(t, &r) && (int64_t)r.rax == -ENOSYS)
		return STOP_ENTRY;
	return STOP_EXIT;
}

static void classify(struct tracee *t, int status)
{
	int sig = status & 0x7f;

	t->signal = 0;
	if (status >> 8 == TRAP_EVENT_STOP) {
		t->stop = sig == SIGTRAP ? STOP_INTERRUPT : STOP_GROUP;
	} else if (status >> 8) {
		t->stop = STOP_OTHER;
	} else if (status == (SIGTRAP | 0x80)) {
		t->stop = system_call_edge(t);
	} else {
		t->stop = STOP_SIGNAL;
		t->signal = sig;
	}
}

static int check_for_stop(struct tracee *t, int *ret_status)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)t->tid, &info,
		   WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD))
		return errno == EINTR ? 0 : -ESRCH;
	if (!info.si_pid)
		return 0;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
		/* The process cannot end until its threads' ends have been noted. The first
		 * thread's is left alone: it may be a child of ours whose status is needed
		 * elsewhere. */
		if (t->tid != t->pid)
			(void)waitid(P_PID, (id_t)t->tid, &info,
				     WEXITED | WNOHANG | __WALL | __WNOTHREAD);
		return -ESRCH;
	}
	*ret_status = info.si_status;
	return 1;
}

int tracee_wait(struct tracee *t, uint64_t deadline_ns)
{
	struct timespec pause = {.tv_nsec = 20000};
	int status = 0, found;

	while (!(found = check_for_stop(t, &status))) {
		tracer_pulse();
		if (clock_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		(void)nanosleep(&pause, NULL);
		if (pause.tv_nsec < 1000000)
			pause.tv_nsec *= 2;
	}
	if (found < 0)
		return found;
	t->stopped = true;
	t->stopped_since_ns = clock_now_ns();
	classify(t, status);
	return 0;
}

static int resume(struct tracee *t, int request, int signal)
{
	int err;

	if (!t->stopped)
		return -EINVAL;
	err = (int)trace(request, t->tid, NULL, as_data((uint64_t)signal));
	t->stopped = false;
	t->stopped_ns += clock_now_ns() - t->stopped_since_ns;
	return err;
}

int tracee_stop(struct tracee *t, uint64_t deadline_ns)
{
	int err;

	tracer_stops();
	err = (int)trace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
	while (!err) {
		err = tracee_wait(t, deadline_ns);
		if (err || t->stop == STOP_INTERRUPT || t->stop == STOP_GROUP)
			return err;
		err = resume(t, PTRACE_CONT, t->signal);
	}
	return err;
}

int tracee_to_system_call(struct tracee *t, int signal)
{
	return resume(t, PTRACE_SYSCALL, signal);
}

int tracee_interrupt_on(struct tracee *t)
{
	int err = (int)trace(PTRACE_INTERRUPT, t->tid, NULL, NULL);

	return err ? err : resume(t, PTRACE_CONT, 0);
}

int tracee_listen(struct tracee *t)
{
	return resume(t, PTRACE_LISTEN, 0);
}

void tracee_undisturb(struct tracee *t)
{
	struct user_regs_struct before, r;

	if (!t->stopped || t->stop != STOP_INTERRUPT || tracee_registers(t, &before))
		return;
	r = before;
	registers_undisturbed(&r);
	if (r.rax != before.rax)
		(void)tracee_set_registers(t, &r);
}

void tracee_detach(struct tracee *t, int signal)
{
	if (!t->stopped)
		return;
	tracee_undisturb(t);
	(void)resume(t, PTRACE_DETACH, signal);
}

int tracee_registers(const struct tracee *t, struct user_regs_struct *ret_registers)
{
	struct user_regs_struct r;
	int err = (int)trace(PTRACE_GETREGS, t->tid, NULL, &r);

	if (!err)
		*ret_registers = r;
	return err;
}

int tracee_set_registers(const struct tracee *t, const struct user_regs_struct *registers)
{
	struct user_regs_struct r = *registers;

	return (int)trace(PTRACE_SETREGS, t->tid, NULL, &r);
}

int tracee_mask(const struct tracee *t, uint64_t *ret_mask)
{
	return (int)trace(PTRACE_GETSIGMASK, t->tid, as_data(MASK_BYTES), ret_mask);
}

int tracee_set_mask(const struct tracee *t, uint64_t mask)
{
	return (int)trace(PTRACE_SETSIGMASK, t->tid, as_data(MASK_BYTES), &mask);
}

bool call_fails_by_stop(long number)
{
	static const uint16_t numbers[] = {
		0,   /* read: a socket with a timeout */
		1,   /* write: the same */
		43,  /* accept */
		44,  /* sendto */
		45,  /* recvfrom */
		46,  /* sendmsg */
		47,  /* recvmsg */
		65,  /* semop */
		128, /* rt_sigtimedwait */
		208, /* io_getevents */
		220, /* semtimedop */
		232, /* epoll_wait */
		281, /* epoll_pwait */
		288, /* accept4 */
		299, /* recvmmsg */
		307, /* sendmmsg */
		333, /* io_pgetevents */
		426, /* io_uring_enter */
		441, /* epoll_pwait2 */
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i] == number)
			return true;
	return false;
}

void registers_undisturbed(struct user_regs_struct *r)
{
	if ((int64_t)r->orig_rax >= 0 && (int64_t)r->rax == -EINTR &&
	    call_fails_by_stop((long)r->orig_rax))
		r->rax = (uint64_t)-ERESTARTNOHAND;
}

void registers_restarted(struct user_regs_struct *r)
{
	registers_undisturbed(r);
	if ((int64_t)r->orig_rax < 0)
		return;
	switch ((int64_t)r->rax) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
		r->rax = r->orig_rax;
		r->rip -= 2;
		break;
	case -ERESTART_RESTARTBLOCK:
		r->rax = SYS_RESTART_SYSCALL;
		r->rip -= 2;
		break;
	default:
		break;
	}
	r->orig_rax = (uint64_t)-1;
}

int tracee_read(const struct tracee *t, uint64_t address, void *data, size_t bytes)
{
	return file_read_all_at(t->mem_fd, address, data, bytes) == (ssize_t)bytes ? 0 : -EFAULT;
}

/* Writes with ptrace, which works where /proc/PID/mem is restricted (proc_mem.force_override). */
static int poke(const struct tracee *t, uint64_t address, const char *data, size_t bytes)
{
	uint64_t word;
	size_t part;

	for (size_t done = 0; done < bytes; done += part) {
		part = bytes - done < sizeof(word) ? bytes - done : sizeof(word);
		if (part < sizeof(word) && tracee_read(t, address + done, &word, sizeof(word)))
			return -EFAULT;
		memcpy(&word, data + done, part);
		if (trace(PTRACE_POKEDATA, t->tid, as_data(address + done), as_data(word)))
			return -EFAULT;
	}
	return 0;
}

int tracee_write(const struct tracee *t, uint64_t address, const void *data, size_t bytes)
{
	size_t done = 0;
	ssize_t n;

	if (address > INT64_MAX || bytes > INT64_MAX - address)
		return -EFAULT;
	while (done < bytes) {
		n = pwrite(t->mem_fd, (const char *)data + done, bytes - done,
			   (off_t)(address + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return poke(t, address + done, (const char *)data + done, bytes - done);
		done += (size_t)n;
	}
	return 0;
}
