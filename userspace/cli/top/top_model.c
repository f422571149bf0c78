/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What `top` shows, and where it comes from. Each interval is a recording of its own, in memory;
 * the totals of the views add up from those, as every other output is made from a recording.
 */
#include "cli/top/top_model.h"

#include "cli/view/loaded_recording.h"
#include "common/clock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int top_add(struct top *top, const struct timeline *t)
{
	struct live_status s;
	uint64_t now = clock_now_ns();
	int err = live_totals__add(top->totals, t);

	for (size_t i = 0; i < t->processes.nr && !err && top->live; i++)
		err = top_facts__watch(&top->facts, &t->processes.items[i].pid, 1);
	top->had_memory = recording__is_on(t->recording, "memory");
	top->had_stacks = t->sampled || recording__meta(t->recording, "stacks");
	if (err || !top->live)
		return err;
	live_capture__status(top->live, &s);
	if (now > top->shown_ns)
		top->events_per_s = (double)(s.events_nr - top->events_nr) * 1e9 /
				    (double)(now - top->shown_ns);
	top->events_nr = s.events_nr;
	top->shown_ns = now;
	return top_facts__give(&top->facts, top->totals);
}

int top_take(struct top *top, struct reason *why)
{
	struct loaded_recording shown;
	int any = 0, got;

	while ((got = live_capture__take(top->live, &shown)) > 0) {
		int err = top_add(top, shown.timeline);

		loaded_recording__done(&shown);
		if (err)
			return reason_set(why, err, "%s", strerror(-err));
		any = 1;
	}
	return got < 0 ? reason_set(why, got, "an interval cannot be read") : any;
}

/* Ends the recording of this interval and begins the next. 0 or -errno with a reason. */
static int cut(struct top *top, struct reason *why)
{
	top->cut_ns = clock_now_ns();
	if (top_facts__read(&top->facts))
		return reason_set(why, -ENOMEM, "out of memory");
	return live_capture__cut(top->live, why);
}

int top_poll(struct top *top, int timeout_ms, struct reason *why)
{
	int here, err;

	if (!top->live || top->over) {
		(void)usleep((useconds_t)timeout_ms * 1000);
		return 0;
	}
	here = live_capture__poll(top->live, timeout_ms, why);
	if (here < 0)
		return here;
	if (!here) {
		top->over = true;
		err = live_capture__stop(top->live, why);
		return err ? err : top_take(top, why);
	}
	if (!top->paused && (double)(clock_now_ns() - top->cut_ns) >= top->view.interval_s * 1e9) {
		err = cut(top, why);
		if (err)
			return err;
	}
	return top_take(top, why);
}

void top_header_of(const struct top *top, struct top_header *ret_header)
{
	struct top_header h = {.totals = top->totals, .has_memory = top->capture.memory};

	if (top->live) {
		struct live_status s;

		live_capture__status(top->live, &s);
		h.facts = &top->facts;
		h.uptime_ns = clock_now_ns() - top->start_ns;
		h.events_per_s = top->events_per_s;
		h.lost_nr = s.lost_nr;
	} else {
		h.uptime_ns = top->totals->wall_ns[TOTALS_SUM];
		h.lost_nr = live_totals__lost(top->totals);
	}
	*ret_header = h;
}

bool top_has(const struct top *top, enum totals_view view)
{
	if (view == TOTALS_MEMORY)
		return top->capture.memory;
	return view != TOTALS_LINES || top->view.sampled || top->capture.stacks;
}

bool top_had(const struct top *top, enum totals_view view)
{
	if (view == TOTALS_MEMORY)
		return top->had_memory;
	return view == TOTALS_LINES ? top->had_stacks : top->totals->wall_ns[TOTALS_SUM] > 0;
}

int top_want(struct top *top, enum totals_view view, struct reason *why)
{
	struct capture_options wanted = top->capture;
	int err;

	if (!top->live || top->over || top_has(top, view))
		return 0;
	if (top->view.sampled)
		return reason_set(why, -EOPNOTSUPP, "samples have no memory in them");
	if (view == TOTALS_MEMORY)
		wanted.memory = true;
	else
		wanted.stacks = GP_STACK_WANT_PYTHON;
	top->paused = false;
	err = live_capture__change(top->live, &wanted, why);
	if (!err)
		top->capture = wanted;
	top->cut_ns = clock_now_ns();
	return err;
}

int top_pause(struct top *top, bool paused, struct reason *why)
{
	int err = top->live && !top->over ? live_capture__pause(top->live, paused, why) : -EINVAL;

	if (err)
		return err;
	top->paused = paused;
	top->cut_ns = clock_now_ns();
	return 0;
}
