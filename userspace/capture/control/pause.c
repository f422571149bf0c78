/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A pause counts from when everything is known to be off to when it is asked to be on again:
 * nothing that was recorded lies in it.
 */
#include "capture/control/pause.h"

#include "capture/collector/features.h"
#include "capture/control/budget_windows.h"
#include "capture/control/gpu_windows.h"

#include <errno.h>
#include <time.h>

#define CPU_FEATURES                                                                               \
	(uint32_t)(GP_FEATURE_OPS | GP_FEATURE_STEPS | GP_FEATURE_SHAPES | GP_FEATURE_MEMORY)

static uint32_t features_of(uint32_t what)
{
	return (what & CAPTURE_CPU ? CPU_FEATURES : 0) |
	       (what & CAPTURE_GPU ? (uint32_t)(GP_FEATURE_CUPTI | GP_FEATURE_CUPTI_HELD) : 0);
}

static int write_pause(struct capture *c, int side, uint64_t now_ns)
{
	struct segment *to = c->segments.now;
	struct gp_ev_pause ev = {
		.head = {.kind = GP_EV_PAUSE, .flags = (__u8)(1U << side), .time_ns = now_ns},
		.start_ns = c->paused_since_ns[side],
	};

	if (!side)
		c->paused_ns += now_ns - ev.start_ns;
	c->paused_since_ns[side] = 0;
	if (!to || to->broken)
		return 0;
	return capture_note_error(c, to, recording_writer__event(to->writer, &ev, sizeof(ev)));
}

int capture__switch(struct capture *c, uint32_t what, bool on, struct reason *why)
{
	uint32_t off = on ? c->off & ~what : c->off | what;

	if (c->schedule_runner)
		return reason_set(why, -EBUSY,
				  "a capture by steps goes by its schedule; it cannot be switched");
	if (!c->started || c->stopped)
		return reason_set(why, -EINVAL, "the capture does not run");
	if (c->windows)
		return budget_windows_switch(c, what, on, why);
	if (off == c->off)
		return 0;
	for (int i = 0; i < 2; i++)
		if ((c->off & ~off & 1U << i) && c->paused_since_ns[i] && !c->failed)
			(void)write_pause(c, i, clock_now_ns());
	c->off = off;
	c->switching = true;
	set_features(c, ~features_of(c->off) & ~(uint32_t)GP_FEATURE_STEPS,
		     !(c->off & CAPTURE_CPU));
	return 0;
}

void pause_poll(struct capture *c)
{
	uint64_t now = clock_now_ns();

	c->switching = !collect_follows(c);
	if (c->switching)
		return;
	for (int i = 0; i < 2; i++)
		if ((c->off & 1U << i) && !c->paused_since_ns[i])
			c->paused_since_ns[i] = now;
}

int pause_end(struct capture *c)
{
	int err = 0;

	for (int i = 0; i < 2 && !err; i++)
		if (c->paused_since_ns[i])
			err = write_pause(c, i, c->end_ns);
	return err;
}

int pause_split(struct capture *c, uint64_t now_ns)
{
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		if (!c->paused_since_ns[i])
			continue;
		err = write_pause(c, i, now_ns);
		c->paused_since_ns[i] = now_ns;
	}
	return err;
}

uint64_t pause_total_ns(const struct capture *c, uint64_t now_ns)
{
	uint64_t open_ns = c->paused_since_ns[0] ? now_ns - c->paused_since_ns[0] : 0;

	return c->paused_ns + open_ns;
}

int capture__flush(struct capture *c, struct reason *why)
{
	uint64_t now_ns = clock_now_ns();
	int err;

	if (c->schedule_runner)
		return reason_set(why, -EBUSY,
				  "a capture by steps writes a recording for each "
				  "cycle; read those");
	err = c->failed;
	if (!err && !c->windows)
		err = pause_split(c, now_ns);
	if (!err && c->gpu_windows)
		err = gpu_windows_flush(c, now_ns);
	err = err ?: capture_flush_recordings(c);
	return err ? reason_set(why, err, "cannot write '%s'", c->options.output_path) : 0;
}
