/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See link_closer.h.
 */
#include "probe/link_closer.h"

#include "base/shield.h"
#include "base/thread.h"

#include <stdlib.h>
#include <unistd.h>

struct link_closer {
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;	/* of what follows */
	pthread_cond_t changed; /* one more, or leaving */
	VEC(int) fds;
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
	vec_done(&c->fds);
	(void)pthread_cond_destroy(&c->changed);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Children that it has forked have its probes as well. */
static int close_one(void *arg)
{
	const int *fd = arg;

	return close(*fd);
}

static void *work(void *arg)
{
	struct link_closer *c = arg;

	(void)pthread_mutex_lock(&c->lock);
	while (c->fds.nr || !c->leaving) {
		int fd;

		if (!c->fds.nr) {
			(void)pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		fd = c->fds.items[--c->fds.nr];
		(void)pthread_mutex_unlock(&c->lock);
		(void)shield_run(close_one, &fd);
		(void)pthread_mutex_lock(&c->lock);
	}
	(void)pthread_mutex_unlock(&c->lock);
	return NULL;
}

static bool start(struct link_closer *c)
{
	c->has_thread = c->has_thread || !thread_start(&c->thread, work, c);
	return c->has_thread;
}

void link_closer__take(struct link_closer *c, struct link_set *set)
{
	if (set->fds.nr && start(c)) {
		(void)pthread_mutex_lock(&c->lock);
		while (set->fds.nr && !vec_push(&c->fds, set->fds.items[set->fds.nr - 1]))
			set->fds.nr--;
		(void)pthread_cond_signal(&c->changed);
		(void)pthread_mutex_unlock(&c->lock);
	}
	link_set__done(set);
}
