/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A pause counts from when everything is known to be off until it is asked to be on again: no
 * recorded event lies in it.
 */
#include "capture/control/pause.h"

#include "capture/control/control.h"
#include "capture/process/features.h"
#include "common/clock.h"

#include <stdlib.h>

#define CPU_FEATURES                                                                               \
	(uint32_t)(GP_FEATURE_OPS | GP_FEATURE_STEPS | GP_FEATURE_SHAPES | GP_FEATURE_MEMORY)

struct pause {
	struct control *control;
	uint64_t since_ns[2]; /* of each enum capture_side bit; 0: it is not paused, or not yet */
};

struct pause *pause__new(struct control *control)
{
	struct pause *p = calloc(1, sizeof(*p));

	if (p)
		p->control = control;
	return p;
}

static uint32_t features_of(uint32_t what)
{
	return (what & CAPTURE_CPU ? CPU_FEATURES : 0) |
	       (what & CAPTURE_GPU ? (uint32_t)(GP_FEATURE_CUPTI | GP_FEATURE_CUPTI_HELD) : 0);
}

static int write_pause(struct pause *p, int side, uint64_t now_ns)
{
	struct gp_ev_pause ev = {
		.head = {.kind = GP_EV_PAUSE, .flags = (__u8)(1U << side), .time_ns = now_ns},
		.start_ns = p->since_ns[side],
	};

	if (!side)
		p->control->paused_ns += now_ns - ev.start_ns;
	p->since_ns[side] = 0;
	return recording_set__put(p->control->recordings, &ev, sizeof(ev));
}

static int pause_switch_sides(void *self, uint32_t what, bool on, struct reason *why)
{
	struct pause *p = self;
	uint32_t off = on ? p->control->off & ~what : p->control->off | what;

	(void)why;
	if (off == p->control->off)
		return 0;
	for (int i = 0; i < 2; i++)
		if ((p->control->off & ~off & 1U << i) && p->since_ns[i] &&
		    !p->control->run->failed)
			(void)write_pause(p, i, clock_now_ns());
	p->control->off = off;
	p->control->switching = true;
	features_set(p->control->processes,
		     ~features_of(p->control->off) & ~(uint32_t)GP_FEATURE_STEPS,
		     !(p->control->off & CAPTURE_CPU));
	return 0;
}

static void pause_poll(void *self)
{
	struct pause *p = self;
	struct control *control = p->control;
	uint64_t now = clock_now_ns();

	if (!control->off && !control->switching)
		return;
	control->switching = !features_follow(control->processes);
	if (control->switching)
		return;
	for (int i = 0; i < 2; i++)
		if ((control->off & 1U << i) && !p->since_ns[i])
			p->since_ns[i] = now;
}

static int pause_end(void *self)
{
	struct pause *p = self;
	int err = 0;

	for (int i = 0; i < 2 && !err; i++)
		if (p->since_ns[i])
			err = write_pause(p, i, p->control->run->end_ns);
	return err;
}

/* What is paused is written as far as it goes, and goes on. */
static int pause_flush(void *self, uint64_t now_ns)
{
	struct pause *p = self;
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		if (!p->since_ns[i])
			continue;
		err = write_pause(p, i, now_ns);
		p->since_ns[i] = now_ns;
	}
	return err;
}

static int pause_split(void *self, uint64_t now_ns)
{
	const struct pause *p = self;
	const struct segment *now = p->control->recordings->segments.current;

	return now && !now->broken ? pause_flush(self, now_ns) : 0;
}

/* Pauses that are over are in control->paused_ns. */
static void pause_status(const void *self, uint64_t now_ns, struct capture_status *status)
{
	const struct pause *p = self;

	if (p->since_ns[0])
		status->running_ns -= now_ns - p->since_ns[0];
}

const struct controller_ops pause_ops = {
	.free = free,
	.poll = pause_poll,
	.split = pause_split,
	.flush = pause_flush,
	.end = pause_end,
	.switch_sides = pause_switch_sides,
	.status = pause_status,
};
