/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "collector/cupti_takedown.h"

#include "collector/compat.h"

#include <pthread.h>

static struct {
	uint32_t graphs_seen;
	uint32_t asked; /* `thread` calls CUDA for that, and it has not been done yet */
	pthread_t thread;
	void *subscriber;
	struct cupti_library library;
} taker;

static bool may_be_taken_down(void)
{
	return taker.library.version >= CUPTI_VERSION_13_0 ||
	       (taker.library.version >= CUPTI_VERSION_12_6 &&
		!__atomic_load_n(&taker.graphs_seen, __ATOMIC_ACQUIRE));
}

static bool is_asked_for(void)
{
	return __atomic_load_n(&taker.asked, __ATOMIC_ACQUIRE) &&
	       pthread_equal(taker.thread, pthread_self());
}

void cupti_takedown__on_call(void *arg, uint32_t domain, uint32_t cbid, const void *data)
{
	const struct cupti_callback_data *d = data;

	if (domain != CUPTI_DOMAIN_DRIVER || d->site != CUPTI_SITE_EXIT || !is_asked_for())
		return;
	__atomic_store_n(&taker.asked, 0, __ATOMIC_RELAXED);
	(void)taker.library.call.cuptiUnsubscribe(taker.subscriber);
	(void)taker.library.call.cuptiFinalize();
}

void cupti_takedown__begin(const struct cupti_library *l, void *subscriber)
{
	taker.library = *l;
	taker.subscriber = subscriber;
	__atomic_store_n(&taker.asked, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&taker.graphs_seen, 0, __ATOMIC_RELEASE);
}

void cupti_takedown__note_graphs(void)
{
	__atomic_store_n(&taker.graphs_seen, 1, __ATOMIC_RELEASE);
}

void cupti_takedown__forget(void)
{
	__atomic_store_n(&taker.asked, 0, __ATOMIC_RELAXED);
}

void cupti_takedown__give_back(bool all_out)
{
	const struct cupti_functions *call = &taker.library.call;
	int version;

	if (all_out && may_be_taken_down() && taker.library.driver_version) {
		(void)call->cuptiEnableDomain(1, taker.subscriber, CUPTI_DOMAIN_DRIVER);
		taker.thread = pthread_self();
		__atomic_store_n(&taker.asked, 1, __ATOMIC_RELEASE);
		(void)taker.library.driver_version(&version);
		if (!__atomic_exchange_n(&taker.asked, 0, __ATOMIC_RELAXED))
			return;
		(void)call->cuptiEnableDomain(0, taker.subscriber, CUPTI_DOMAIN_DRIVER);
	}
	(void)call->cuptiUnsubscribe(taker.subscriber);
}
