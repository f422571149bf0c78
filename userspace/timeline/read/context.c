/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Questions of every reader of events: which process and thread an event is of, and whether it lies
 * in the window. Keeps texts. A process or thread that nothing describes is made up from its
 * events.
 */
#include "timeline/read/context.h"

#include <errno.h>

#include "base/banned.h"

#define PROCESS_NR 65536

/* Gives processes without a description pids that no process has. */
#define UNKNOWN_PID -1000

const char *build_intern(struct build *b, const char *text)
{
	const char *kept = intern__str(b->t->private->intern, text ? text : "");

	if (!kept)
		b->err = -ENOMEM;
	return kept;
}

/* No pid is that large. */
#define ROW_PID_STEP 10000000

static int64_t row_pid(struct build *b, int32_t pid)
{
	const uint64_t *known = hash__find(&b->context.pids, (uint32_t)pid);
	uint64_t nr = known ? *known : 0;

	if (hash__set(&b->context.pids, (uint32_t)pid, nr + 1))
		b->err = -ENOMEM;
	return pid + (int64_t)nr * ROW_PID_STEP;
}

static int add_process(struct build *b, uint32_t index, const struct recording_process *p)
{
	struct tl_process out = {
		.pid = p ? p->pid : UNKNOWN_PID - (int32_t)index,
		.rank = p ? p->rank : -1,
		.comm = build_intern(b, p ? p->comm : "?"),
		.cmdline = build_intern(b, p ? p->cmdline : ""),
	};

	out.row_pid = row_pid(b, out.pid);
	if (b->err)
		return b->err;
	b->context.process_of[index] = (uint32_t)b->t->processes.nr;
	return vec_push(&b->t->processes, out);
}

int build_processes(struct build *b, const struct recording *rec)
{
	b->context.last_thread = TL_NONE;
	b->context.process_of = malloc(PROCESS_NR * sizeof(*b->context.process_of));
	if (!b->context.process_of)
		return -ENOMEM;
	for (size_t i = 0; i < PROCESS_NR; i++)
		b->context.process_of[i] = TL_NONE;
	for (size_t i = 0; i < recording__processes(rec); i++) {
		const struct recording_process *p = recording__process_at(rec, i);
		int err;

		if (!p || p->index >= PROCESS_NR || b->context.process_of[p->index] != TL_NONE)
			continue;
		err = add_process(b, p->index, p);
		if (err)
			return err;
	}
	return 0;
}

uint32_t build_process_of(struct build *b, const struct gp_ev_head *head)
{
	if (b->context.process_of[head->process] != TL_NONE)
		return b->context.process_of[head->process];
	b->counts[TL_PROCESS_UNKNOWN]++;
	if (add_process(b, head->process, NULL)) {
		b->err = -ENOMEM;
		return TL_NONE;
	}
	return b->context.process_of[head->process];
}

uint32_t build_thread_of(struct build *b, const struct gp_ev_head *head)
{
	uint64_t key = (uint64_t)head->process << 32 | head->tid;
	struct tl_thread thread = {.tid = head->tid};
	uint64_t *known;

	if (build_process_of(b, head) == TL_NONE)
		return TL_NONE;
	if (b->context.last_thread != TL_NONE && b->context.last_thread_key == key)
		return b->context.last_thread;
	known = hash__find(&b->context.thread_of, key);
	b->context.last_thread_key = key;
	if (known) {
		b->context.last_thread = (uint32_t)*known;
		return b->context.last_thread;
	}
	thread.process = b->context.process_of[head->process];
	thread.comm = build_intern(b, "");
	b->context.last_thread = (uint32_t)b->t->threads.nr;
	if (b->err || vec_push(&b->t->threads, thread) ||
	    hash__set(&b->context.thread_of, key, b->context.last_thread)) {
		b->err = -ENOMEM;
		b->context.last_thread = TL_NONE;
	}
	return b->context.last_thread;
}

void build_extend_time(struct build *b, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns < b->context.first_ns)
		b->context.first_ns = from_ns;
	if (to_ns > b->context.last_ns)
		b->context.last_ns = to_ns;
}

bool build_in_window(const struct build *b, uint64_t from_ns, uint64_t to_ns)
{
	return from_ns >= b->context.window_start_ns && to_ns <= b->context.window_end_ns &&
	       (!b->windows.exact || timeline__in_windows(b->t, from_ns, to_ns));
}

/* Recordings by steps hold more than their window: see FORMAT.md. */
void build_limits(struct build *b)
{
	uint64_t realtime_ns;

	b->context.first_ns = UINT64_MAX;
	b->context.window_end_ns = UINT64_MAX;
	if (!recording__meta(b->t->recording, "steps"))
		return;
	recording__window(b->t->recording, &b->context.window_start_ns, &b->context.window_end_ns,
			  &realtime_ns);
	if (b->context.window_end_ns <= b->context.window_start_ns)
		b->context.window_end_ns = UINT64_MAX;
}
