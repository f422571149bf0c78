/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Stops all threads outside of the given libraries. A thread inside them is released at once and
 * tried again. A stopped thread holds none of their locks, nor one of the allocator's, so the
 * threads inside can leave without it. A thread of a tracer process does the work; when that ends
 * the kernel releases whatever is still stopped.
 */
#include "inject/quiesce.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/thread.h"
#include "common/clock.h"
#include "inject/injection_lock.h"
#include "inject/ptrace_error.h"
#include "inject/safe_point.h"
#include "inject/safe_thread.h"
#include "inject/threads.h"
#include "inject/tracer.h"
#include "inspect/elf/elf.h"

#define MS_NS	      1000000ULL
#define STOP_LIMIT_NS (5 * MS_NS)
#define WAIT_NS	      (5 * MS_NS)
#define LATE_LIMIT_NS (50 * MS_NS)
#define PAUSE_NS      50000L
#define WATCH_NS      500000L
#define ROUNDS_MIN    3
#define JOIN_TURN_S   1
#define EXTRA_MS      10000 /* for reading the process, and for fn */

/* A thread that was found in a waiting function at each look so far. */
struct waiter {
	pid_t tid;
	uint64_t since_ns;
};

struct job {
	const struct target_process *p;
	const struct quiesce_options *options;
	quiesce_fn fn;
	void *arg;
	struct reason *why;
	struct quiesce_result result;
	int err;
	struct target_view view;
	struct range_list libraries, waiting;
	VEC(struct tracee) held;
	struct tracees late; /* threads that were asked to stop and have not yet */
	VEC(pid_t) own;	     /* threads that are not to be stopped */
	VEC(struct waiter) waiters;
	pid_t within; /* the last thread that could not be held; 0: none yet */
};

/* ---- where not to be ---- */

static bool begins_as_one(const char *name, const char *const *beginnings)
{
	for (; *beginnings; beginnings++)
		if (!strncmp(name, *beginnings, strlen(*beginnings)))
			return true;
	return false;
}

/* The mappings are sorted. */
static int note_libraries(struct job *j)
{
	const struct memory_map *map = &j->view.map;
	int err = 0;

	for (size_t i = 0; !err && i < map->maps.nr; i++) {
		const struct mapping *m = &map->maps.items[i];
		struct range r = {m->start, m->end};

		if (m->executable && begins_as_one(m->name, j->options->libraries))
			err = vec_push(&j->libraries.ranges, r);
	}
	return err;
}

struct functions {
	struct job *j;
	uint64_t base;
};

static int note_function(const struct elf_symbol *sym, void *arg)
{
	const struct functions *f = arg;
	uint64_t at = f->base + sym->address;

	if (f->j->options->not_waiting && strstr(sym->name, f->j->options->not_waiting))
		return 0;
	for (const char *const *part = f->j->options->waiting; *part; part++)
		if (strstr(sym->name, *part))
			return vec_push(&f->j->waiting.ranges,
					((struct range){at, at + sym->bytes}));
	return 0;
}

static int compare_range(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts ranges and removes duplicates: aliases have the same range. */
static void sort_out(struct range_list *list)
{
	struct range *r = list->ranges.items;
	size_t kept = 0;

	if (!list->ranges.nr)
		return;
	qsort(r, list->ranges.nr, sizeof(*r), compare_range);
	for (size_t i = 1; i < list->ranges.nr; i++) {
		if (r[i].start >= r[kept].end)
			r[++kept] = r[i];
		else if (r[i].end > r[kept].end)
			r[kept].end = r[i].end;
	}
	list->ranges.nr = kept + 1;
}

/* A file that cannot be read has no known waiting functions. */
static int note_waiting(struct job *j)
{
	int err = 0;

	for (size_t i = 0; !err && i < j->p->libraries_nr; i++) {
		const struct target_library *l = &j->p->libraries[i];
		struct functions f = {j, l->base};
		CLEANUP(cleanup_elf) struct elf_file *elf = NULL;
		struct reason why;

		if (!begins_as_one(file_base_name(l->path), j->options->libraries) ||
		    elf_file__open(l->open_path, &why, &elf))
			continue;
		err = elf_file__each_symbol(elf, "", note_function, &f);
	}
	sort_out(&j->waiting);
	return err;
}

static int read_target(struct job *j)
{
	int err = target_view__read(j->p, j->options->thread_name, j->why, &j->view);

	if (err)
		return err;
	err = note_libraries(j);
	if (!err && j->options->waiting)
		err = note_waiting(j);
	return err ? reason_set(j->why, err, "out of memory") : 0;
}

/* ---- threads ---- */

static bool is_among(const struct tracee *items, size_t nr, pid_t tid)
{
	for (size_t i = 0; i < nr; i++)
		if (items[i].tid == tid)
			return true;
	return false;
}

static bool is_own(const struct job *j, pid_t tid)
{
	for (size_t i = 0; i < j->own.nr; i++)
		if (j->own.items[i] == tid)
			return true;
	return false;
}

/* Whether no thread with this number can be stopped: it has ended, and may stay listed until others
 * have been waited for. */
static bool has_ended(char state)
{
	return !state || state == 'Z' || state == 'X';
}

/* Stops a thread. 0; -ESRCH: it is gone; -EBUSY: it has not stopped yet; or another error, which
 * ends everything. */
static int stop(struct job *j, pid_t tid, struct tracee *t)
{
	int err;

	if (!tracees_take(&j->late, tid, t)) {
		*t = j->view.memory;
		err = tracee_seize(t, j->p->pid, tid);
		/* A thread that is just ending cannot be traced by anybody. */
		if (err == -EPERM && has_ended(thread_state(j->p->pid, tid)))
			err = -ESRCH;
		if (err)
			return err == -ESRCH ? err : ptrace_error_reason(j->p->pid, err, j->why);
	}
	err = tracee_stop(t, clock_now_ns() + STOP_LIMIT_NS);
	j->result.stops++;
	if (err == -ETIMEDOUT)
		return vec_push(&j->late.items, *t) ?: -EBUSY;
	if (!err && t->stop == STOP_GROUP) {
		tracee_detach(t, 0);
		return reason_set(j->why, -EAGAIN, "process %d is stopped", j->p->pid);
	}
	if (!err)
		tracee_undisturb(t);
	return err;
}

/* Whether the thread has been in a waiting function for long enough to be really waiting: such a
 * function can also return at once. */
static bool waits(struct job *j, pid_t tid)
{
	struct waiter new = {tid, clock_now_ns()};

	for (size_t i = 0; i < j->waiters.nr; i++)
		if (j->waiters.items[i].tid == tid)
			return new.since_ns - j->waiters.items[i].since_ns >= WAIT_NS;
	(void)vec_push(&j->waiters, new);
	return false;
}

static void forget_waiter(struct job *j, pid_t tid)
{
	for (size_t i = 0; i < j->waiters.nr; i++)
		if (j->waiters.items[i].tid == tid)
			j->waiters.items[i] = j->waiters.items[--j->waiters.nr];
}

static enum whereabouts where_is(struct job *j, const struct tracee *t)
{
	struct user_regs_struct r;

	if (tracee_registers(t, &r))
		return WHERE_WITHIN;
	return thread_whereabouts(t, j->view.unwinder, &j->view.map, &j->view.c, &r, &j->libraries,
				  &j->waiting);
}

/* Stops a thread and holds it, or finds that it is the libraries' own. -EBUSY: not yet. */
static int take_thread(struct job *j, pid_t tid)
{
	enum whereabouts where;
	struct tracee t;
	int err = stop(j, tid, &t);

	if (err)
		return err == -ESRCH ? 0 : err;
	where = where_is(j, &t);
	if (where != WHERE_WAITING)
		forget_waiter(j, tid);
	if (where != WHERE_OUTSIDE && where != WHERE_OWN)
		j->within = tid;
	if (where == WHERE_OUTSIDE || (where == WHERE_WAITING && waits(j, tid))) {
		err = vec_push(&j->held, t);
		if (!err) {
			j->result.held_nr++;
			j->result.waiting_nr += where == WHERE_WAITING;
			return 0;
		}
	}
	tracee_detach(&t, 0);
	if (err)
		return err;
	return where == WHERE_OWN ? vec_push(&j->own, tid) : -EBUSY;
}

/* Tries one thread that is not held yet. 0: it is held now, or need not be. */
static int try_to_hold(struct job *j, pid_t tid, char state)
{
	if (thread_is_called(j->p->pid, tid, j->options->thread_name))
		return vec_push(&j->own, tid);
	/* It stops as soon as the kernel lets it. */
	if (state == 'D') {
		j->within = tid;
		return -EBUSY;
	}
	return take_thread(j, tid);
}

/* Tries each thread that is not held yet. 0: there was none. Ends early when the time is over and
 * some take long to stop. */
static int take_all(struct job *j, uint64_t end_ns)
{
	CLEANUP(cleanup_thread_ids) struct thread_ids list = {0};
	int err = threads_list(j->p->pid, &list), ret = 0;

	if (err)
		return reason_set(j->why, err, "process %d has ended", j->p->pid);
	for (size_t i = 0; i < list.ids.nr; i++) {
		pid_t tid = list.ids.items[i];
		char state;

		if (is_own(j, tid) || is_among(j->held.items, j->held.nr, tid))
			continue;
		state = thread_state(j->p->pid, tid);
		if (has_ended(state))
			continue;
		/* The threads held now may have created others meanwhile. */
		ret = -EBUSY;
		err = try_to_hold(j, tid, state);
		if (err && err != -EBUSY)
			return err;
		if (j->late.items.nr && clock_now_ns() >= end_ns)
			break;
	}
	return ret;
}

static void let_go(struct job *j)
{
	for (size_t i = 0; i < j->held.nr; i++)
		tracee_detach(&j->held.items[i], 0);
	j->held.nr = 0;
}

/* Lets threads that stop only now go on undisturbed; the end of our thread releases the rest. */
static void let_go_late(struct job *j)
{
	uint64_t end_ns = clock_now_ns() + LATE_LIMIT_NS;

	for (size_t i = 0; i < j->late.items.nr; i++)
		if (!tracee_wait(&j->late.items.items[i], end_ns))
			tracee_detach(&j->late.items.items[i], j->late.items.items[i].signal);
	j->late.items.nr = 0;
}

/* Raises our priority where that is allowed. Threads stop within microseconds and are held
 * meanwhile, so our own sleeps must not be prolonged. */
static void make_haste(void)
{
	static const struct sched_param first = {.sched_priority = 1};

	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	(void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
}

/* Holds all threads: 0; -EBUSY: not within the window. */
static int take_all_in_time(struct job *j)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t end_ns = clock_now_ns() + j->options->window_ms * MS_NS;
	int err;

	for (int round = 0; (err = take_all(j, end_ns)) == -EBUSY; round++) {
		/* With hundreds of threads a single round takes as long as the window. */
		if ((round >= ROUNDS_MIN || j->late.items.nr) && clock_now_ns() >= end_ns)
			return err;
		(void)nanosleep(&pause, NULL);
	}
	return err;
}

/* Waits until the thread that was inside is held outside; holds no thread before from_ns. */
static int watch(struct job *j, uint64_t from_ns, uint64_t end_ns)
{
	static const struct timespec pause = {.tv_nsec = WATCH_NS};
	pid_t tid = j->within;
	int err;

	while (clock_now_ns() < end_ns) {
		(void)nanosleep(&pause, NULL);
		if (clock_now_ns() < from_ns)
			continue;
		err = tid ? try_to_hold(j, tid, thread_state(j->p->pid, tid)) : 0;
		if (err != -EBUSY)
			return err;
	}
	return reason_set(j->why, -EAGAIN,
			  "no moment was found in which no thread of process %d is within %s",
			  j->p->pid, j->options->libraries[0]);
}

static int hold(struct job *j)
{
	uint64_t end_ns, begin_ns, took_ns;
	int err;

	make_haste();
	end_ns = clock_now_ns() + j->options->search_ms * MS_NS;
	do {
		begin_ns = clock_now_ns();
		err = take_all_in_time(j);
		if (!err)
			j->result.answer = j->fn(!j->result.waiting_nr, j->arg);
		let_go(j);
		took_ns = clock_now_ns() - begin_ns;
		j->result.held_ns += took_ns;
		if (err != -EBUSY)
			break;
		j->result.held_nr = j->result.waiting_nr = 0;
		err = watch(j, clock_now_ns() + 2 * took_ns, end_ns);
	} while (!err);
	let_go(j);
	let_go_late(j);
	return err;
}

static void *work(void *arg)
{
	struct job *j = arg;
	int CLEANUP(cleanup_fd) lock = -1;

	j->err = injection_lock(j->p, j->why, &lock) ?: read_target(j) ?: hold(j);
	return NULL;
}

static void done(struct job *j)
{
	vec_done(&j->held);
	vec_done(&j->late.items);
	vec_done(&j->own);
	vec_done(&j->waiters);
	vec_done(&j->libraries.ranges);
	vec_done(&j->waiting.ranges);
	target_view__done(&j->view);
}

/* Joins our thread. If the process calls exec meanwhile, it waits until the end of its held threads
 * has been noted, and our thread, in PTRACE_SEIZE, waits for it. (The first thread is left alone:
 * it may be gpuprof's child, whose status is needed elsewhere.) */
static void join(pthread_t thread, pid_t pid)
{
	CLEANUP(cleanup_thread_ids) struct thread_ids list = {0};
	struct timespec until;
	siginfo_t info;

	do {
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += JOIN_TURN_S;
		(void)threads_list(pid, &list);
		for (size_t i = 0; i < list.ids.nr; i++)
			if (list.ids.items[i] != pid && thread_state(pid, list.ids.items[i]) == 'Z')
				(void)waitid(P_PID, (id_t)list.ids.items[i], &info,
					     WEXITED | WNOHANG | __WALL);
	} while (pthread_timedjoin_np(thread, NULL, &until));
}

/* The tracer's results. */
struct outcome {
	struct reason why;
	struct quiesce_result result;
};

static int trace(void *shared, void *arg)
{
	struct outcome *o = shared;
	struct job *j = arg;
	pthread_t thread;
	int err;

	j->why = &o->why;
	j->view.memory.mem_fd = -1;
	err = thread_start(&thread, "gp-hold", work, j);
	if (err)
		return reason_set(j->why, err, "cannot start a thread: %s", strerror(-err));
	join(thread, j->p->pid);
	o->result = j->result;
	done(j);
	return j->err;
}

int quiesce_threads(const struct target_process *p, const struct quiesce_options *options,
		    quiesce_fn fn, void *arg, struct reason *why, struct quiesce_result *ret_result)
{
	struct job j = {.p = p, .options = options, .fn = fn, .arg = arg};
	struct outcome o = {0};
	int err = -ESRCH;

	if (target_process__alive(p))
		err = tracer_run(trace, &j, &o, sizeof(o), options->search_ms + EXTRA_MS,
				 &options->meanwhile);
	*ret_result = o.result;
	if (!err)
		return 0;
	if (!target_process__alive(p))
		return reason_set(why, -ESRCH, "process %d has ended", p->pid);
	if (o.why.text[0])
		return reason_set(why, err, "%s", o.why.text);
	return reason_set(why, err, "cannot hold the threads of process %d: %s", p->pid,
			  strerror(-err));
}
