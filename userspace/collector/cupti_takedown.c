/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Who changes `state` from WAITING gives CUPTI back: a thread of the target, or the collector's
 * when none has come in time, or the one that ends the process, which leaves it as it is.
 */
#include "collector/cupti_takedown.h"

#include "collector/clock.h"
#include "collector/compat.h"
#include "collector/cupti_noise.h"

#include <errno.h>

#define CALL_TRIES 1000 /* of 1 ms, for a call to come by */
#define MORE_TRIES 5000 /* of 1 ms, for what has begun */
#define EXIT_TRIES 2000 /* of 1 ms */

enum state { NOTHING = 0, WAITING = 1, AT_WORK = 2, DONE = 3 };

static struct {
	uint32_t state; /* enum state */
	uint32_t graphs_seen;
	void *subscriber;
	struct cupti_library library;
} taker;

static uint32_t state_now(void)
{
	return __atomic_load_n(&taker.state, __ATOMIC_ACQUIRE);
}

static bool change(uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&taker.state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Until it is another, or no longer. */
static void wait_while(enum state state, int tries)
{
	for (int i = 0; i < tries && state_now() == state; i++)
		clock_sleep_ms();
}

static bool may_be_taken_down(void)
{
	return taker.library.version >= CUPTI_VERSION_12_6 &&
	       !__atomic_load_n(&taker.graphs_seen, __ATOMIC_ACQUIRE);
}

void cupti_takedown__on_call(void *arg, uint32_t domain, uint32_t cbid, const void *data)
{
	const struct cupti_callback_data *d = data;
	int saved = errno;

	if (domain != CUPTI_DOMAIN_RUNTIME && domain != CUPTI_DOMAIN_DRIVER)
		return;
	if (d->function_name && cupti_is_of_graphs(d->function_name))
		cupti_takedown__note_graphs();
	if (d->site != CUPTI_SITE_EXIT || !change(WAITING, AT_WORK))
		return;
	(void)taker.library.call.cuptiUnsubscribe(taker.subscriber);
	if (may_be_taken_down())
		(void)taker.library.call.cuptiFinalize();
	__atomic_store_n(&taker.state, DONE, __ATOMIC_RELEASE);
	errno = saved;
}

void cupti_takedown__begin(const struct cupti_library *l, void *subscriber)
{
	taker.library = *l;
	taker.subscriber = subscriber;
	taker.state = NOTHING;
	__atomic_store_n(&taker.graphs_seen, 0, __ATOMIC_RELEASE);
}

void cupti_takedown__note_graphs(void)
{
	__atomic_store_n(&taker.graphs_seen, 1, __ATOMIC_RELEASE);
}

static void look(uint32_t enable)
{
	const struct cupti_functions *call = &taker.library.call;

	(void)call->cuptiEnableDomain(enable, taker.subscriber, CUPTI_DOMAIN_RUNTIME);
	(void)call->cuptiEnableDomain(enable, taker.subscriber, CUPTI_DOMAIN_DRIVER);
}

void cupti_takedown__look(void)
{
	if (may_be_taken_down())
		look(1);
}

/* No call of CUDA in all that time: nothing to speed up either. */
static void let_go(void)
{
	look(0);
	(void)taker.library.call.cuptiUnsubscribe(taker.subscriber);
}

bool cupti_takedown__give_back(void)
{
	if (!may_be_taken_down()) {
		let_go();
		return true;
	}
	__atomic_store_n(&taker.state, WAITING, __ATOMIC_RELEASE);
	wait_while(WAITING, CALL_TRIES);
	if (change(WAITING, NOTHING)) {
		let_go();
		return true;
	}
	wait_while(AT_WORK, MORE_TRIES);
	return state_now() != AT_WORK;
}

bool cupti_takedown__is_at_work(void)
{
	return state_now() == AT_WORK;
}

void cupti_takedown__exit(void)
{
	if (!change(WAITING, NOTHING))
		wait_while(AT_WORK, EXIT_TRIES);
}

void cupti_takedown__forget(void)
{
	taker.state = NOTHING;
}
