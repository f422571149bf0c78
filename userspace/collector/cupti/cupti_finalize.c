/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector's thread enables callbacks for the driver's API, makes one harmless call, and
 * finalizes CUPTI in the callback at the exit of that call.
 */
#include "collector/cupti/cupti_finalize.h"

#include "collector/runtime/compat.h"

#include <pthread.h>

static struct {
	uint32_t graphs_seen;
	uint32_t asked;		 /* `thread` makes the call, and has not finalized yet */
	bool unsubscribed, done; /* in that call; done: CUPTI did not refuse */
	pthread_t thread;
	void *subscriber;
	struct cupti_library library;
} finalizer;

static bool is_asked_for(void)
{
	return __atomic_load_n(&finalizer.asked, __ATOMIC_ACQUIRE) &&
	       pthread_equal(finalizer.thread, pthread_self());
}

void cupti_finalize__on_call(void *arg, uint32_t domain, uint32_t cbid, const void *data)
{
	const struct cupti_callback_data *d = data;

	if (domain != CUPTI_DOMAIN_DRIVER || d->site != CUPTI_SITE_EXIT || !is_asked_for())
		return;
	__atomic_store_n(&finalizer.asked, 0, __ATOMIC_RELAXED);
	finalizer.unsubscribed = true;
	(void)finalizer.library.call.cuptiUnsubscribe(finalizer.subscriber);
	finalizer.done = !finalizer.library.call.cuptiFinalize();
}

void cupti_finalize__begin(const struct cupti_library *l, void *subscriber)
{
	finalizer.library = *l;
	finalizer.subscriber = subscriber;
	finalizer.unsubscribed = finalizer.done = false;
	__atomic_store_n(&finalizer.asked, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&finalizer.graphs_seen, 0, __ATOMIC_RELEASE);
}

void cupti_finalize__note_graphs(void)
{
	__atomic_store_n(&finalizer.graphs_seen, 1, __ATOMIC_RELEASE);
}

void cupti_finalize__forget(void)
{
	__atomic_store_n(&finalizer.asked, 0, __ATOMIC_RELAXED);
}

/* The best way to end that is safe; GP_CUPTI_DOWN: finalizing is. */
static enum gp_cupti_end best_end(void)
{
	if (finalizer.library.version < CUPTI_VERSION_12_6)
		return GP_CUPTI_LEFT_OLD;
	if (finalizer.library.version < CUPTI_VERSION_13_0 &&
	    __atomic_load_n(&finalizer.graphs_seen, __ATOMIC_ACQUIRE))
		return GP_CUPTI_LEFT_GRAPHS;
	return GP_CUPTI_DOWN;
}

/* Finalizes CUPTI in a CUDA call of our own. False: CUPTI or the driver refused. */
static bool finalize(void)
{
	const struct cupti_functions *call = &finalizer.library.call;
	int version;

	if (!finalizer.library.driver_version)
		return false;
	(void)call->cuptiEnableDomain(1, finalizer.subscriber, CUPTI_DOMAIN_DRIVER);
	finalizer.thread = pthread_self();
	__atomic_store_n(&finalizer.asked, 1, __ATOMIC_RELEASE);
	(void)finalizer.library.driver_version(&version);
	__atomic_store_n(&finalizer.asked, 0, __ATOMIC_RELAXED);
	if (!finalizer.unsubscribed)
		(void)call->cuptiEnableDomain(0, finalizer.subscriber, CUPTI_DOMAIN_DRIVER);
	return finalizer.done;
}

enum gp_cupti_end cupti_finalize__give_back(enum gp_cupti_end held)
{
	enum gp_cupti_end end = best_end();

	if (end == GP_CUPTI_DOWN)
		end = held;
	if (end == GP_CUPTI_DOWN && !finalize())
		end = GP_CUPTI_LEFT_REFUSED;
	if (!finalizer.unsubscribed)
		(void)finalizer.library.call.cuptiUnsubscribe(finalizer.subscriber);
	return end;
}
