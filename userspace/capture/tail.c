/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "capture/tail.h"

#include "wire.h"

#include <string.h>

#define HELD_MAX (64 << 20)

/* 0: it has none. */
static uint32_t correlation_of(const void *event)
{
	switch (((const struct gp_ev_head *)event)->kind) {
	case GP_EV_API:
		return ((const struct gp_ev_api *)event)->correlation_id;
	case GP_EV_KERNEL:
		return ((const struct gp_ev_kernel *)event)->correlation_id;
	case GP_EV_GPU_MEMORY:
		return ((const struct gp_ev_gpu_memory *)event)->correlation_id;
	case GP_EV_SYNC:
		return ((const struct gp_ev_sync *)event)->correlation_id;
	case GP_EV_CUDA_EVENT:
		return ((const struct gp_ev_cuda_event *)event)->correlation_id;
	default:
		return 0;
	}
}

static uint64_t key_of(const void *event)
{
	const struct gp_ev_head *head = event;

	return (uint64_t)head->process << 32 | correlation_of(event);
}

/* Of what is on a CPU. What is on a GPU may begin later than its call. */
static bool began_later(const void *event, uint64_t end_ns)
{
	switch (((const struct gp_ev_head *)event)->kind) {
	case GP_EV_API:
		return ((const struct gp_ev_api *)event)->start_ns > end_ns;
	case GP_EV_OVERHEAD:
		return ((const struct gp_ev_overhead *)event)->start_ns > end_ns;
	default:
		return false;
	}
}

bool tail__keep(struct tail *t, const void *event, size_t bytes, uint64_t end_ns)
{
	uint64_t nr = bytes;

	if (t->held.nr > HELD_MAX)
		return false;
	if (began_later(event, end_ns))
		return !correlation_of(event) || !hash__set(&t->late, key_of(event), 1);
	buf__add(&t->held, &nr, sizeof(nr));
	buf__add(&t->held, event, bytes);
	buf__add(&t->held, (const char[8]){0}, -bytes & 7);
	return !buf__error(&t->held);
}

int tail__each(const struct tail *t, tail_fn fn, void *arg)
{
	int err = 0;

	for (size_t at = 0; at < t->held.nr && !err;) {
		uint64_t bytes;

		memcpy(&bytes, t->held.bytes + at, sizeof(bytes));
		at += sizeof(bytes);
		if (!correlation_of(t->held.bytes + at) ||
		    !hash__find(&t->late, key_of(t->held.bytes + at)))
			err = fn(t->held.bytes + at, bytes, arg);
		at += (bytes + 7) & ~7ULL;
	}
	return err;
}

void tail__done(struct tail *t)
{
	buf__done(&t->held);
	hash__done(&t->late);
}
