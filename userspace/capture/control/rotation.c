/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One recording ends and the next begins while events flow: from then on what ended before goes
 * into the one, what ended after into the other, until everything that was on its way then has
 * come.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "capture/control/budget_windows.h"
#include "capture/control/gpu_windows.h"
#include "capture/control/pause.h"
#include "capture/private.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* Collectors have CUPTI tell what GPUs did once a second. */
#define GPU_LATE_NS (2 * SECOND_NS)

static bool any_gpu(const struct capture *c)
{
	for (size_t i = 0; i < c->processes.nr; i++) {
		const struct traced_process *m = c->processes.items[i];

		/* Records that are off now may be of work that runs still. */
		if (!m->end && m->collector &&
		    (collector_client__active(m->collector) &
		     (GP_FEATURE_CUPTI | GP_FEATURE_CUPTI_HELD)))
			return true;
	}
	return false;
}

int capture__rotate(struct capture *c, struct reason *why)
{
	if (c->schedule_runner)
		return reason_set(why, -EBUSY,
				  "a capture by steps goes by its schedule: it writes a recording "
				  "for each cycle");
	if (!c->options.recording_path)
		return reason_set(why, -EINVAL, "the capture writes one recording only");
	if (!c->started || c->stopped)
		return reason_set(why, -EINVAL, "the capture does not run");
	c->rotate_asked = true;
	return 0;
}

static void end_now(struct capture *c, uint64_t now_ns)
{
	struct segments *s = &c->segments;
	int err;

	/* Whether or not it can be told. */
	err = c->gpu_windows ? gpu_windows_split(c, now_ns) : 0;
	if (!s->now)
		return;
	if (!err && !s->now->broken)
		err = (c->windows ? budget_windows_split : pause_split)(c, now_ns);
	(void)capture_note_error(c, s->now, err);
	sampling_end(c, s->now, now_ns);
	s->closing = TAKE(s->now);
	s->closing->end_ns = now_ns;
	c->closing_until_ns = any_gpu(c) ? now_ns + GPU_LATE_NS : 0;
}

static void rotate(struct capture *c)
{
	struct reason why = {0};
	uint64_t now_ns;
	int err;

	c->rotate_asked = false;
	probe_session__renew_samples(c->probes);
	now_ns = clock_now_ns();
	end_now(c, now_ns);
	err = capture_open_recording(c, &why);
	if (err && !c->options.outlive_disk) {
		c->failed = err;
		log_err("%s", why.text);
	} else if (err) {
		log_info("%s", why.text);
	} else {
		(void)capture_note_error(c, c->segments.now, capture_begin_recording(c, now_ns));
	}
}

void rotation_poll(struct capture *c)
{
	struct segments *s = &c->segments;

	if (c->schedule_runner)
		return;
	/* All that ended before the border has been drained: that was the drain before this turn.
	 */
	if (s->closing && clock_now_ns() >= c->closing_until_ns)
		(void)capture_end_recording(c, &s->closing);
	if (c->rotate_asked && !s->closing && !c->failed)
		rotate(c);
}
