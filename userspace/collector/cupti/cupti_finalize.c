/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "collector/cupti/cupti_finalize.h"

#include "collector/runtime/compat.h"

#include <pthread.h>

static struct {
	uint32_t graphs_seen;
	uint32_t asked;		 /* `thread` calls CUDA for that, and it has not been done yet */
	bool unsubscribed, done; /* in that call: the latter unless CUPTI has refused */
	pthread_t thread;
	void *subscriber;
	struct cupti_library library;
} taker;

static bool is_asked_for(void)
{
	return __atomic_load_n(&taker.asked, __ATOMIC_ACQUIRE) &&
	       pthread_equal(taker.thread, pthread_self());
}

void cupti_finalize__on_call(void *arg, uint32_t domain, uint32_t cbid, const void *data)
{
	const struct cupti_callback_data *d = data;

	if (domain != CUPTI_DOMAIN_DRIVER || d->site != CUPTI_SITE_EXIT || !is_asked_for())
		return;
	__atomic_store_n(&taker.asked, 0, __ATOMIC_RELAXED);
	taker.unsubscribed = true;
	(void)taker.library.call.cuptiUnsubscribe(taker.subscriber);
	taker.done = !taker.library.call.cuptiFinalize();
}

void cupti_finalize__begin(const struct cupti_library *l, void *subscriber)
{
	taker.library = *l;
	taker.subscriber = subscriber;
	taker.unsubscribed = taker.done = false;
	__atomic_store_n(&taker.asked, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&taker.graphs_seen, 0, __ATOMIC_RELEASE);
}

void cupti_finalize__note_graphs(void)
{
	__atomic_store_n(&taker.graphs_seen, 1, __ATOMIC_RELEASE);
}

void cupti_finalize__forget(void)
{
	__atomic_store_n(&taker.asked, 0, __ATOMIC_RELAXED);
}

/* How it may end; GP_CUPTI_DOWN: it may be taken down. */
static enum gp_cupti_end best_end(void)
{
	if (taker.library.version < CUPTI_VERSION_12_6)
		return GP_CUPTI_LEFT_OLD;
	if (taker.library.version < CUPTI_VERSION_13_0 &&
	    __atomic_load_n(&taker.graphs_seen, __ATOMIC_ACQUIRE))
		return GP_CUPTI_LEFT_GRAPHS;
	return GP_CUPTI_DOWN;
}

/* By a call of CUDA of our own. */
static bool take_down(void)
{
	const struct cupti_functions *call = &taker.library.call;
	int version;

	if (!taker.library.driver_version)
		return false;
	(void)call->cuptiEnableDomain(1, taker.subscriber, CUPTI_DOMAIN_DRIVER);
	taker.thread = pthread_self();
	__atomic_store_n(&taker.asked, 1, __ATOMIC_RELEASE);
	(void)taker.library.driver_version(&version);
	__atomic_store_n(&taker.asked, 0, __ATOMIC_RELAXED);
	if (!taker.unsubscribed)
		(void)call->cuptiEnableDomain(0, taker.subscriber, CUPTI_DOMAIN_DRIVER);
	return taker.done;
}

enum gp_cupti_end cupti_finalize__give_back(enum gp_cupti_end held)
{
	enum gp_cupti_end end = best_end();

	if (end == GP_CUPTI_DOWN)
		end = held;
	if (end == GP_CUPTI_DOWN && !take_down())
		end = GP_CUPTI_LEFT_REFUSED;
	if (!taker.unsubscribed)
		(void)taker.library.call.cuptiUnsubscribe(taker.subscriber);
	return end;
}
