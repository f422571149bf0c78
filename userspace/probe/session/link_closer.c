/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See link_closer.h.
 */
#include "probe/session/link_closer.h"

#include "base/thread.h"

#include <stdlib.h>

struct link_closer {
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;	/* protects the members below */
	pthread_cond_t changed; /* a set was added, or the thread is to end */
	struct link_set waiting;
	bool leaving;
};

struct link_closer *link_closer__new(void)
{
	struct link_closer *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	(void)pthread_mutex_init(&c->lock, NULL);
	(void)pthread_cond_init(&c->changed, NULL);
	return c;
}

void link_closer__free(struct link_closer *c)
{
	if (!c)
		return;
	(void)pthread_mutex_lock(&c->lock);
	c->leaving = true;
	(void)pthread_cond_signal(&c->changed);
	(void)pthread_mutex_unlock(&c->lock);
	if (c->has_thread)
		(void)pthread_join(c->thread, NULL);
	link_set__done(&c->waiting);
	(void)pthread_cond_destroy(&c->changed);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

static void *work(void *arg)
{
	struct link_closer *c = arg;

	(void)pthread_mutex_lock(&c->lock);
	while (c->waiting.fds.nr || !c->leaving) {
		struct link_set now = c->waiting;

		if (!now.fds.nr) {
			(void)pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		c->waiting = (struct link_set){0};
		(void)pthread_mutex_unlock(&c->lock);
		link_set__done(&now);
		(void)pthread_mutex_lock(&c->lock);
	}
	(void)pthread_mutex_unlock(&c->lock);
	return NULL;
}

static bool start(struct link_closer *c)
{
	c->has_thread = c->has_thread || !thread_start(&c->thread, "gp-closer", work, c);
	return c->has_thread;
}

void link_closer__take(struct link_closer *c, struct link_set *set)
{
	if (set->fds.nr && start(c)) {
		(void)pthread_mutex_lock(&c->lock);
		while (set->fds.nr && !vec_push(&c->waiting.fds, set->fds.items[set->fds.nr - 1]))
			set->fds.nr--;
		(void)pthread_cond_signal(&c->changed);
		(void)pthread_mutex_unlock(&c->lock);
	}
	link_set__done(set);
}
