/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One recording ends and the next begins while events flow. Events that ended before the border go
 * into the old one, later ones into the new one, until all that was on its way has come.
 */
#include "capture/control/rotation.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "capture/control/control.h"
#include "capture/process/features.h"
#include "common/clock.h"

#include <stdlib.h>

/* Collectors flush CUPTI's buffers once a second. */
#define GPU_LATE_NS (2 * SECOND_NS)

struct rotation {
	struct control *control;
	struct segments *segments;	 /* the capture's open recordings */
	struct controllers *controllers; /* to be split */
	bool asked;
	uint64_t drains_until_ns; /* segments->draining is open at least until then */
};

struct rotation *rotation__new(struct control *control, struct controllers *controllers)
{
	struct rotation *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->control = control;
	r->segments = &control->recordings->segments;
	r->controllers = controllers;
	return r;
}

/* Records that are off now may be of work that runs still. */
static bool any_gpu(const struct rotation *r)
{
	return features_active_nr(r->control->processes, GP_FEATURE_CUPTI | GP_FEATURE_CUPTI_HELD);
}

void rotation__request(struct rotation *r)
{
	r->asked = true;
}

static void end_current(struct rotation *r, uint64_t now_ns)
{
	struct recording_set *recordings = r->control->recordings;
	struct segments *s = r->segments;
	int err = controllers__split(r->controllers, now_ns);

	if (!s->current)
		return;
	(void)recording_set__note_error(recordings, s->current, err);
	s->draining = TAKE(s->current);
	s->draining->end_ns = now_ns;
	r->drains_until_ns = any_gpu(r) ? now_ns + GPU_LATE_NS : 0;
}

static void rotate(struct rotation *r)
{
	struct recording_set *recordings = r->control->recordings;
	struct reason why = {0};
	uint64_t now_ns;
	int err;

	r->asked = false;
	probe_session__renew_samples(r->control->probes);
	now_ns = clock_now_ns();
	end_current(r, now_ns);
	err = recording_set__open(recordings, &why);
	if (err && !r->control->options->outlive_disk) {
		capture_run__fail(r->control->run, err);
		log_err("%s", why.text);
	} else if (err) {
		log_info("%s", why.text);
	} else {
		err = recording_set__begin(recordings, now_ns);
		(void)recording_set__note_error(recordings, r->segments->current, err);
	}
}

static void rotation_poll(void *self)
{
	struct rotation *r = self;
	struct segments *s = r->segments;

	/* All that ended before the border has been drained: that was the drain before this poll.
	 */
	if (s->draining && clock_now_ns() >= r->drains_until_ns)
		(void)recording_set__end(r->control->recordings, &s->draining);
	if (r->asked && !s->draining && !r->control->run->failed)
		rotate(r);
}

const struct controller_ops rotation_ops = {
	.free = free,
	.poll = rotation_poll,
};
