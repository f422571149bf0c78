/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names of threads. A program may have any number of threads one after another: a thread that no
 * event of a whole recording names is forgotten.
 */
#include "capture/process/threads.h"

#include <stdio.h>
#include <string.h>

static uint64_t thread_key(uint32_t process, uint32_t tid)
{
	return (uint64_t)process << 32 | tid;
}

static void names_done(struct thread_names *n)
{
	hash__done(&n->index_of);
	vec_done(&n->items);
}

int threads__set(struct threads *t, uint32_t process, const struct gp_ev_thread *thread)
{
	uint64_t key = thread_key(process, thread->head.tid);
	const uint64_t *known = hash__find(&t->now.index_of, key);

	if (known) {
		t->now.items.items[*known] = *thread;
		return 0;
	}
	if (hash__set(&t->now.index_of, key, t->now.items.nr))
		return -ENOMEM;
	if (vec_push(&t->now.items, *thread)) {
		(void)hash__delete(&t->now.index_of, key, NULL);
		return -ENOMEM;
	}
	return 0;
}

const struct gp_ev_thread *threads__find(struct threads *t, uint32_t process, uint32_t tid)
{
	uint64_t key = thread_key(process, tid);
	const uint64_t *known = hash__find(&t->now.index_of, key);

	if (known)
		return &t->now.items.items[*known];
	known = hash__find(&t->before.index_of, key);
	if (!known || threads__set(t, process, &t->before.items.items[*known]))
		return NULL;
	return &t->now.items.items[t->now.items.nr - 1];
}

int threads__look(struct threads *t, uint32_t process, pid_t pid, uint32_t tid, uint64_t now_ns)
{
	struct gp_ev_thread ev = {
		.head = {.kind = GP_EV_THREAD, .tid = tid, .time_ns = now_ns},
	};
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", (int)pid, tid);
	f = fopen(path, "re");
	if (f) {
		if (fgets(ev.comm, sizeof(ev.comm), f))
			ev.comm[strcspn(ev.comm, "\n")] = '\0';
		(void)fclose(f);
	}
	return threads__set(t, process, &ev);
}

void threads__poll(struct threads *t)
{
	names_done(&t->before);
	t->before = t->now;
	t->now = (struct thread_names){0};
}

void threads__done(struct threads *t)
{
	names_done(&t->now);
	names_done(&t->before);
}
