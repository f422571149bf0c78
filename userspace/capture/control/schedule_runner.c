/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A schedule over the steps of a process.
 */
#include "capture/control/schedule_runner.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "capture/collector/features.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define NEVER	   UINT64_MAX
#define GPU_END_NS (10 * SECOND_NS) /* a GPU's last events are not waited for longer */

struct schedule_runner *schedule_runner__new(const struct schedule *schedule)
{
	struct schedule_runner *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->schedule = *schedule;
	s->all_on_since_ns = NEVER;
	s->finder = step_finder__new();
	if (s->finder)
		return s;
	free(s);
	return NULL;
}

void schedule_runner__free(struct schedule_runner *s)
{
	if (!s)
		return;
	step_finder__free(s->finder);
	buf__done(&s->held);
	free(s);
}

/* ---- what is collected ---- */

/* Whether the leading process's steps can be seen without its operators. */
static bool can_rest(const struct capture *c)
{
	return c->processes.nr && c->processes.items[0]->collector &&
	       (collector_client__active(c->processes.items[0]->collector) &
		(GP_FEATURE_OPS | GP_FEATURE_STEPS)) &&
	       step_finder__by_annotations(c->schedule_runner->finder);
}

static void want_all(struct capture *c, bool all)
{
	struct schedule_runner *s = c->schedule_runner;

	if (all == s->wants_all || (!all && !can_rest(c)))
		return;
	s->wants_all = all;
	s->all_on_since_ns = NEVER;
	set_features(c, all ? ~0U : GP_FEATURE_STEPS, all);
}

/* ---- recordings ---- */

static int open_file(struct capture *c, uint64_t since_ns)
{
	struct reason why = {0};
	int err;

	if (c->segments.now)
		return 0;
	err = capture_open_recording(c, &why);
	if (err)
		log_err("%s", why.text);
	c->schedule_runner->file_since_ns = since_ns;
	return err;
}

static int begin_recording(struct capture *c, uint64_t time_ns)
{
	struct schedule_runner *s = c->schedule_runner;
	struct segment *now = c->segments.now;
	const char *marker = step_finder__marker(s->finder);
	int err = capture_begin_recording(c, time_ns);

	s->recording = true;
	now->late_steps_nr = s->shift;
	err = err ?: capture_write_number(now, "steps", s->step + s->shift);
	if (marker && *marker)
		err = err ?: recording_writer__meta(now->writer, "steps_marker", marker);
	return err;
}

/* Its last events are still on their way; a GPU tells them when it is told to stop. */
static int begin_closing(struct capture *c, uint64_t time_ns)
{
	struct schedule_runner *s = c->schedule_runner;
	int err;

	c->segments.closing = TAKE(c->segments.now);
	c->segments.closing->end_ns = time_ns;
	s->closing_drained = false;
	s->closing_asked_ns = clock_now_ns();
	s->recording = false;
	err = capture_write_number(c->segments.closing, "steps_nr", s->schedule.active);
	set_features(c,
		     s->wants_all ? ~(uint32_t)(GP_FEATURE_CUPTI | GP_FEATURE_CUPTI_HELD)
				  : GP_FEATURE_STEPS,
		     s->wants_all);
	if (s->wants_all)
		s->all_on_since_ns = NEVER;
	return err;
}

static int finish_closing(struct capture *c)
{
	int err = capture_end_recording(c, &c->segments.closing);

	if (c->schedule_runner->wants_all)
		set_features(c, ~0U, true);
	return err;
}

/* ---- steps ---- */

static bool is_record(enum schedule_action a)
{
	return a == SCHEDULE_RECORD || a == SCHEDULE_RECORD_AND_SAVE;
}

/* Collection begins one step ahead of what needs it. */
static bool needs_all(const struct schedule_runner *s)
{
	return schedule_action(&s->schedule, s->step) != SCHEDULE_NONE ||
	       schedule_action(&s->schedule, s->step + 1) != SCHEDULE_NONE;
}

/* All that happens from here on will be in the file. */
static bool is_ready(const struct capture *c, uint64_t time_ns)
{
	return !c->segments.closing && c->schedule_runner->all_on_since_ns <= time_ns &&
	       c->segments.now && c->schedule_runner->file_since_ns <= time_ns;
}

/* For timeline/: it cannot find a cycle in a few turns. */
static int put_step(struct capture *c, uint32_t tid, uint64_t time_ns)
{
	struct gp_ev_step ev = {
		.head = {.kind = GP_EV_STEP, .tid = tid, .time_ns = time_ns},
		.cycle_nr = step_finder__cycle(c->schedule_runner->finder),
	};

	return ev.cycle_nr ? recording_writer__event(c->segments.now->writer, &ev, sizeof(ev)) : 0;
}

/* A step ends and the next begins. */
static int boundary(struct capture *c, uint32_t tid, uint64_t time_ns)
{
	struct schedule_runner *s = c->schedule_runner;
	enum schedule_action ended = schedule_action(&s->schedule, s->step);
	int err = s->recording ? put_step(c, tid, time_ns) : 0;

	if (s->recording && ended == SCHEDULE_RECORD_AND_SAVE)
		err = err ?: begin_closing(c, time_ns);
	if (s->first_ns)
		s->step++;
	else
		s->first_ns = time_ns;
	if (is_record(schedule_action(&s->schedule, s->step)) && !s->recording) {
		if (is_ready(c, time_ns)) {
			err = err ?: begin_recording(c, time_ns);
			err = err ?: put_step(c, tid, time_ns);
		} else {
			/* As if this one had not been. */
			s->step--;
			s->shift++;
		}
	}
	s->over = schedule_is_over(&s->schedule, s->step + 1) && !s->recording;
	want_all(c, needs_all(s));
	if (s->wants_all && needs_all(s) && !s->over)
		err = err ?: open_file(c, clock_now_ns());
	return err;
}

void schedule_runner_op(struct capture *c, uint32_t process, const struct gp_ev_op *op)
{
	struct schedule_runner *s = c->schedule_runner;
	uint64_t time_ns;
	int err = 0;

	if (process || s->over)
		return;
	if (step_finder__op(s->finder, op, names__text(&c->names, op->name_id), &time_ns) &&
	    time_ns > s->first_ns)
		err = boundary(c, op->head.tid, time_ns);
	if (!err && step_finder__failed(s->finder))
		err = -ENOMEM;
	if (err && !c->failed)
		c->failed = err;
}

void schedule_runner_poll(struct capture *c)
{
	struct schedule_runner *s = c->schedule_runner;
	uint64_t now = clock_now_ns();
	bool follow = collect_follows(c), closing = c->segments.closing;

	if (closing && s->closing_drained && !c->failed)
		c->failed = finish_closing(c);
	else if (closing && (follow || now - s->closing_asked_ns > GPU_END_NS))
		s->closing_drained = true;
	else if (!closing && s->wants_all && s->all_on_since_ns == NEVER && follow)
		s->all_on_since_ns = now;
}

int schedule_runner_start(struct capture *c)
{
	struct schedule_runner *s = c->schedule_runner;

	s->wants_all = true;
	s->all_on_since_ns = c->start_ns;
	if (schedule_action(&s->schedule, 0) == SCHEDULE_NONE)
		return 0;
	return open_file(c, c->start_ns);
}

int schedule_runner_stop(struct capture *c)
{
	int err = c->segments.closing ? finish_closing(c) : 0;

	if (err || !c->schedule_runner->recording)
		return err;
	c->segments.now->end_ns = c->end_ns;
	return capture_end_recording(c, &c->segments.now);
}
