/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Tries sleeping threads first: they are rarely inside the allocator and lose no work. An unsafe
 * thread is released at once and tried again in the next round, when it is elsewhere in its code.
 */
#include "inject/safe_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "common/clock.h"
#include "inject/ptrace_error.h"
#include "inject/safe_point.h"
#include "inject/seccomp.h"
#include "inject/threads.h"
#include "inspect/access/process_file.h"
#include "inspect/access/status.h"

#define STOP_LIMIT_NS	  500000000u
#define THREADS_PER_ROUND 64

struct candidate {
	pid_t tid;
	char state;
	bool restarts; /* its system call restarts by itself after a stop */
};

struct candidates {
	VEC(struct candidate) items;
};

int target_view__read(const struct target_process *p, const char *never_use, struct reason *why,
		      struct target_view *ret_view)
{
	struct target_view *v = ret_view;
	char path[32];
	int err;

	*v = (struct target_view){
		.p = p, .memory = {.pid = p->pid, .mem_fd = -1}, .never_use = never_use};
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", p->pid);
	v->memory.mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (v->memory.mem_fd < 0)
		return ptrace_error_reason(p->pid, -errno, why);
	v->unwinder = unwinder__new(p);
	if (!v->unwinder)
		return reason_set(why, -ENOMEM, "out of memory");
	err = memory_map__read(p->pid, &v->map);
	if (err)
		return reason_set(why, err, "cannot read the mappings of process %d: %s", p->pid,
				  strerror(-err));
	return c_library__read(p, &v->map, &v->memory, why, &v->c);
}

void target_view__done(struct target_view *v)
{
	if (v->memory.mem_fd >= 0)
		(void)close(v->memory.mem_fd);
	v->memory.mem_fd = -1;
	unwinder__free(v->unwinder);
	v->unwinder = NULL;
	c_library__done(&v->c);
	memory_map__done(&v->map);
}

void safe_thread__done(struct safe_thread *b)
{
	free(b->saved);
	b->saved = NULL;
	vec_done(&b->late.items);
}

/* Returns the thread's id in its own PID namespace; `tid` if it cannot be read. */
static pid_t thread_ns_tid(pid_t pid, pid_t tid)
{
	long inner = status_read_number(pid, tid, "NSpid", STATUS_LAST);

	return inner < 0 ? tid : (pid_t)inner;
}

static void cleanup_candidates(struct candidates *c)
{
	vec_done(&c->items);
}

/* Returns the system call that a sleeping thread is in; -1: unknown. */
static long thread_system_call(pid_t pid, pid_t tid)
{
	char CLEANUP(cleanup_free) *text = NULL;
	char path[64];
	size_t bytes;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	if (file_read(path, 4096, &text, &bytes) || text[0] < '0' || text[0] > '9')
		return -1;
	return atol(text);
}

/* Threads whose call fails with EINTR when stopped come last: we restart the call, but only while
 * we live. */
static int order(const struct candidate *c)
{
	if (c->state != 'S')
		return 1;
	return c->restarts ? 0 : 2;
}

static int compare_candidate(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (order(x) != order(y))
		return order(x) - order(y);
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int list_threads(pid_t pid, struct candidates *ret_list)
{
	CLEANUP(cleanup_thread_ids) struct thread_ids list = {0};
	int err = threads_list(pid, &list);

	ret_list->items.nr = 0;
	for (size_t i = 0; !err && i < list.ids.nr; i++) {
		struct candidate c = {.tid = list.ids.items[i]};

		c.state = thread_state(pid, c.tid);
		if (c.state == 'S')
			c.restarts = !call_fails_by_stop(thread_system_call(pid, c.tid));
		if (c.state)
			err = vec_push(&ret_list->items, c);
	}
	if (ret_list->items.nr)
		qsort(ret_list->items.items, ret_list->items.nr, sizeof(struct candidate),
		      compare_candidate);
	return err;
}

/* Releases threads that stopped only now. */
static void release_late(struct safe_thread *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->late.items.nr; i++) {
		struct tracee t = b->late.items.items[i];
		int err = tracee_wait(&t, 0);

		if (err == -ETIMEDOUT)
			b->late.items.items[kept++] = t;
		else if (!err)
			tracee_detach(&t, t.signal);
	}
	b->late.items.nr = kept;
}

/* Stops one thread. -EBUSY: not this one now; other errors end the search. */
static int stop_thread(struct target_view *v, pid_t tid, struct safe_thread *b, struct tracee *t,
		       struct reason *why)
{
	int err;

	/* A thread that did not stop in time for an earlier request is still ours. */
	if (!tracees_take(&b->late, tid, t)) {
		*t = v->memory;
		err = tracee_seize(t, v->p->pid, tid);
		if (err == -ESRCH)
			return -EBUSY;
		if (err)
			return ptrace_error_reason(v->p->pid, err, why);
	}
	err = tracee_stop(t, clock_now_ns() + STOP_LIMIT_NS);
	b->stops++;
	if (err == -ETIMEDOUT) {
		err = vec_push(&b->late.items, *t);
		return err ? err : -EBUSY;
	}
	if (err)
		return -EBUSY;
	if (t->stop == STOP_GROUP) {
		tracee_detach(t, 0);
		return -EBUSY;
	}
	return 0;
}

/* Whether the thread that a dead gpuprof sent through the code at a place has left it: it is gone,
 * or nothing on its stack leads there. `held` is the thread that is stopped already. */
static bool place_is_free(struct target_view *v, const struct safe_thread *b, uint64_t at,
			  pid_t owner)
{
	struct safe_thread other = {0};
	struct user_regs_struct r;
	struct tracee t;
	bool is_in;

	if (owner == b->thread.tid)
		return !thread_is_in(&b->thread, v->unwinder, &v->map, &v->c, &b->registers, at,
				     at + remote_place_bytes());
	if (!thread_state(v->p->pid, owner))
		return true;
	if (stop_thread(v, owner, &other, &t, NULL)) {
		safe_thread__done(&other);
		return false;
	}
	is_in = tracee_registers(&t, &r) ||
		thread_is_in(&t, v->unwinder, &v->map, &v->c, &r, at, at + remote_place_bytes());
	tracee_detach(&t, 0);
	return !is_in;
}

/* Reads what the file has at a place whose old content is unknown. Zeros fill such gaps. */
static void original_bytes(const struct target_view *v, uint64_t at, unsigned char *bytes,
			   size_t nr)
{
	const struct mapping *m = memory_map__find(&v->map, at);

	memset(bytes, 0, nr);
	for (size_t i = 0; m && i < v->p->libraries_nr; i++) {
		const struct target_library *l = &v->p->libraries[i];
		int CLEANUP(cleanup_fd) fd = -1;
		struct stat st;

		if (l->inode != m->inode || l->device != m->device)
			continue;
		fd = process_file_open(l->open_path, &st);
		if (fd < 0 || st.st_ino != l->inode ||
		    pread(fd, bytes, nr, (off_t)(m->offset + (at - m->start))) < 0)
			memset(bytes, 0, nr);
		return;
	}
}

static int find_place(struct target_view *v, struct safe_thread *b, struct reason *why)
{
	size_t bytes = remote_place_bytes();

	free(b->saved);
	b->saved = malloc(bytes);
	if (!b->saved)
		return reason_set(why, -ENOMEM, "out of memory");
	for (size_t i = 0; i < v->c.places.nr; i++) {
		const struct range *r = &v->c.places.items[i];
		const struct mapping *m = memory_map__find(&v->map, r->start);
		pid_t owner;

		/* The mapping may have changed since the range was noted. */
		if (r->end - r->start < bytes || !m || m->end != r->end || !m->executable ||
		    m->writable || !m->private)
			continue;
		if (tracee_read(&b->thread, r->start, b->saved, bytes))
			continue;
		if (remote_place_is_left(b->saved, &owner)) {
			if (!place_is_free(v, b, r->start, owner))
				continue;
			original_bytes(v, r->start, b->saved, bytes);
		}
		b->place = r->start;
		return 0;
	}
	return reason_set(why, -ENOSYS, "process %d has no room for %zu bytes in its code",
			  v->p->pid, bytes);
}

/* Tries one thread: 0: `b` has it. -EBUSY: try another; *ret_safety tells why. */
static int try_thread(struct target_view *v, pid_t tid, struct safe_thread *b,
		      enum safety *ret_safety, struct reason *why)
{
	int err = stop_thread(v, tid, b, &b->thread, why);

	if (err)
		return err;
	err = seccomp_check(v->p, tid, why);
	if (!err &&
	    (memory_map__read(v->p->pid, &v->map) || tracee_registers(&b->thread, &b->registers)))
		err = -EBUSY;
	if (!err) {
		*ret_safety = safe_point_check(&b->thread, v->unwinder, &v->map, &v->c,
					       thread_ns_tid(v->p->pid, tid), &b->registers);
		err = *ret_safety == SAFE ? find_place(v, b, why) : -EBUSY;
	}
	if (err)
		tracee_detach(&b->thread, 0);
	return err;
}

/* Tries each thread once. -EBUSY: none was safe. */
static int try_round(struct target_view *v, uint64_t deadline_ns, struct safe_thread *b,
		     enum safety *ret_safety, char *ret_state, struct reason *why)
{
	CLEANUP(cleanup_candidates) struct candidates list = {0};
	int err = list_threads(v->p->pid, &list);

	if (err)
		return reason_set(why, err, "process %d has ended", v->p->pid);
	err = -EBUSY;
	for (size_t i = 0; err == -EBUSY && i < list.items.nr && i < THREADS_PER_ROUND; i++) {
		char state = list.items.items[i].state;

		*ret_state = state;
		if ((state != 'S' && state != 'R') ||
		    (v->never_use &&
		     thread_is_called(v->p->pid, list.items.items[i].tid, v->never_use)))
			continue;
		err = try_thread(v, list.items.items[i].tid, b, ret_safety, why);
		if (err == -EBUSY && clock_now_ns() >= deadline_ns)
			break;
	}
	return err;
}

static int explain_no_moment(const struct target_view *v, enum safety safety, char state,
			     struct reason *why)
{
	if (!target_process__alive(v->p))
		return reason_set(why, -ESRCH, "process %d has ended", v->p->pid);
	if (state == 'T')
		return reason_set(
			why, -EAGAIN,
			"process %d is stopped; let it go on (kill -CONT %d) and try again",
			v->p->pid, v->p->pid);
	if (state == 't')
		return reason_set(why, -EPERM, "process %d is being debugged; end the debugger",
				  v->p->pid);
	if (state == 'D')
		return reason_set(why, -EAGAIN,
				  "process %d waits in the kernel and cannot be stopped; try again",
				  v->p->pid);
	return reason_set(why, -EAGAIN,
			  "no thread of process %d was at a safe point in time (%s); try again",
			  v->p->pid, safety_text(safety));
}

int safe_thread_take(struct target_view *v, uint64_t deadline_ns, struct reason *why,
		     struct safe_thread *ret_thread)
{
	struct timespec pause = {.tv_nsec = 200000};
	struct safe_thread *b = ret_thread;
	enum safety safety = SAFE;
	char state = 0;
	int err;

	b->thread = v->memory;
	while ((err = try_round(v, deadline_ns, b, &safety, &state, why)) == -EBUSY) {
		release_late(b);
		if (clock_now_ns() >= deadline_ns || !target_process__alive(v->p))
			return explain_no_moment(v, safety, state, why);
		(void)nanosleep(&pause, NULL);
		if (pause.tv_nsec < 5000000)
			pause.tv_nsec += pause.tv_nsec / 4 + 1;
	}
	release_late(b);
	return err;
}

bool any_thread_is_in(struct target_view *v, uint64_t start, uint64_t end)
{
	CLEANUP(cleanup_candidates) struct candidates list = {0};
	bool is_in = list_threads(v->p->pid, &list) != 0;

	for (size_t i = 0; !is_in && i < list.items.nr; i++) {
		struct safe_thread b = {0};
		struct user_regs_struct r;
		struct tracee t;

		if (list.items.items[i].state == 'Z' || list.items.items[i].state == 'X')
			continue;
		if (stop_thread(v, list.items.items[i].tid, &b, &t, NULL)) {
			is_in = thread_state(v->p->pid, list.items.items[i].tid) != 0;
			safe_thread__done(&b);
			continue;
		}
		is_in = memory_map__read(v->p->pid, &v->map) || tracee_registers(&t, &r) ||
			thread_is_in(&t, v->unwinder, &v->map, &v->c, &r, start, end);
		tracee_detach(&t, 0);
	}
	return is_in;
}
