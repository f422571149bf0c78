/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The schedule moves on with each step that the finder sees. Recordings begin and end there, as far
 * as all that a step needs is collected by then: a step that comes too early is passed over.
 */
#include "capture/control/schedule_runner.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "capture/control/control.h"
#include "capture/policy/step_finder.h"
#include "capture/process/features.h"
#include "common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define NEVER	   UINT64_MAX
#define GPU_END_NS (10 * SECOND_NS) /* a GPU's last events are not waited for longer */

struct schedule_runner {
	struct control *control;
	struct segments *segments; /* the capture's open recordings */
	struct schedule schedule;
	struct step_finder *finder;
	uint64_t step;	/* of the schedule, the one that runs */
	uint64_t shift; /* the program's steps are so many more, as gpuprof was too slow for them */
	uint64_t first_ns;	  /* when step 0 began; 0: steps are not known yet */
	uint64_t all_on_since_ns; /* everything has been collected since; UINT64_MAX: is not */
	uint64_t file_since_ns;	  /* there has been a recording to write to since */
	bool wants_all;
	bool recording; /* a cycle's active steps run */
	bool over;
	uint64_t draining_asked_ns; /* when collectors were asked for the last events of a cycle */
	bool drained;		    /* and those have been taken */
};

struct schedule_runner *schedule_runner__new(struct control *control)
{
	struct schedule_runner *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->control = control;
	s->segments = &control->recordings->segments;
	s->schedule = control->options->schedule;
	s->all_on_since_ns = NEVER;
	s->finder = step_finder__new();
	if (s->finder)
		return s;
	free(s);
	return NULL;
}

static void schedule_free(void *self)
{
	struct schedule_runner *s = self;

	step_finder__free(s->finder);
	free(s);
}

/* ---- what is collected ---- */

/* Whether steps can be found without the operators. */
static bool can_mute(const struct schedule_runner *s)
{
	return features_show_steps(s->control->processes) && step_finder__by_annotations(s->finder);
}

static void want_all(struct schedule_runner *s, bool all)
{
	if (all == s->wants_all || (!all && !can_mute(s)))
		return;
	s->wants_all = all;
	s->all_on_since_ns = NEVER;
	features_set(s->control->processes, all ? ~0U : GP_FEATURE_STEPS, all);
}

/* ---- recordings ---- */

static int open_file(struct schedule_runner *s, uint64_t since_ns)
{
	struct reason why = {0};
	int err;

	if (s->segments->current)
		return 0;
	err = recording_set__open(s->control->recordings, &why);
	if (err)
		log_err("%s", why.text);
	s->file_since_ns = since_ns;
	return err;
}

static int begin_cycle(struct schedule_runner *s, uint64_t time_ns)
{
	struct segment *now = s->segments->current;
	const char *marker = step_finder__marker(s->finder);
	int err = recording_set__begin(s->control->recordings, time_ns);

	s->recording = true;
	now->late_steps_nr = s->shift;
	err = err ?: recording_set__write_number(now, "steps", s->step + s->shift);
	if (marker && *marker)
		err = err ?: recording_writer__meta(now->writer, "steps_marker", marker);
	return err;
}

/* The cycle's last events are still on their way; CUPTI reports them when it is stopped. */
static int begin_draining(struct schedule_runner *s, uint64_t time_ns)
{
	int err;

	s->segments->draining = TAKE(s->segments->current);
	s->segments->draining->end_ns = time_ns;
	s->drained = false;
	s->draining_asked_ns = clock_now_ns();
	s->recording = false;
	err = recording_set__write_number(s->segments->draining, "steps_nr", s->schedule.active);
	features_set(s->control->processes,
		     s->wants_all ? ~(uint32_t)(GP_FEATURE_CUPTI | GP_FEATURE_CUPTI_HELD)
				  : GP_FEATURE_STEPS,
		     s->wants_all);
	if (s->wants_all)
		s->all_on_since_ns = NEVER;
	return err;
}

static int finish_draining(struct schedule_runner *s)
{
	int err = recording_set__end(s->control->recordings, &s->segments->draining);

	if (s->wants_all)
		features_set(s->control->processes, ~0U, true);
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
static bool is_ready(const struct schedule_runner *s, uint64_t time_ns)
{
	return !s->segments->draining && s->all_on_since_ns <= time_ns && s->segments->current &&
	       s->file_since_ns <= time_ns;
}

/* For timeline/: it cannot find a cycle in a few turns. */
static int put_step(struct schedule_runner *s, uint32_t tid, uint64_t time_ns)
{
	struct gp_ev_step ev = {
		.head = {.kind = GP_EV_STEP, .tid = tid, .time_ns = time_ns},
		.cycle_nr = step_finder__cycle(s->finder),
	};

	return ev.cycle_nr ? recording_writer__event(s->segments->current->writer, &ev, sizeof(ev))
			   : 0;
}

/* A step ends and the next begins. */
static int boundary(struct schedule_runner *s, uint32_t tid, uint64_t time_ns)
{
	enum schedule_action ended = schedule_action(&s->schedule, s->step);
	int err = s->recording ? put_step(s, tid, time_ns) : 0;

	if (s->recording && ended == SCHEDULE_RECORD_AND_SAVE)
		err = err ?: begin_draining(s, time_ns);
	if (s->first_ns)
		s->step++;
	else
		s->first_ns = time_ns;
	if (is_record(schedule_action(&s->schedule, s->step)) && !s->recording) {
		if (is_ready(s, time_ns)) {
			err = err ?: begin_cycle(s, time_ns);
			err = err ?: put_step(s, tid, time_ns);
		} else {
			/* As if this one had not been. */
			s->step--;
			s->shift++;
		}
	}
	s->over = schedule_is_over(&s->schedule, s->step + 1) && !s->recording;
	want_all(s, needs_all(s));
	if (s->wants_all && needs_all(s) && !s->over)
		err = err ?: open_file(s, clock_now_ns());
	return err;
}

static int schedule_on_op(void *self, const struct gp_ev_op *op, const char *name)
{
	struct schedule_runner *s = self;
	uint64_t time_ns;
	int err = 0;

	if (op->head.process || s->over)
		return 0;
	if (step_finder__op(s->finder, op, name, &time_ns) && time_ns > s->first_ns)
		err = boundary(s, op->head.tid, time_ns);
	if (!err && step_finder__failed(s->finder))
		err = -ENOMEM;
	capture_run__fail(s->control->run, err);
	return 0;
}

static void schedule_poll(void *self)
{
	struct schedule_runner *s = self;
	uint64_t now = clock_now_ns();
	bool follow = features_follow(s->control->processes), drains = s->segments->draining;

	if (drains && s->drained)
		capture_run__fail(s->control->run, finish_draining(s));
	else if (drains && (follow || now - s->draining_asked_ns > GPU_END_NS))
		s->drained = true;
	else if (!drains && s->wants_all && s->all_on_since_ns == NEVER && follow)
		s->all_on_since_ns = now;
}

static int schedule_start(void *self)
{
	struct schedule_runner *s = self;
	s->wants_all = true;
	s->all_on_since_ns = s->control->run->start_ns;
	if (schedule_action(&s->schedule, 0) == SCHEDULE_NONE)
		return 0;
	return open_file(s, s->control->run->start_ns);
}

static int schedule_switch_sides(void *self, uint32_t sides, bool on, struct reason *why)
{
	(void)self;
	(void)sides;
	(void)on;
	return reason_set(why, -EBUSY,
			  "a capture by steps goes by its schedule; it cannot be switched");
}

static int schedule_may_flush(const void *self, struct reason *why)
{
	(void)self;
	return reason_set(why, -EBUSY,
			  "a capture by steps writes a recording for each cycle; read those");
}

static void schedule_status(const void *self, uint64_t now_ns, struct capture_status *status)
{
	const struct schedule_runner *s = self;

	(void)now_ns;
	status->over = s->over && !s->segments->draining;
	status->steps_nr = s->step + s->shift;
	status->late_steps_nr = s->shift;
	status->steps_by = step_finder__marker(s->finder);
}

const struct controller_ops schedule_runner_ops = {
	.free = schedule_free,
	.start = schedule_start,
	.on_op = schedule_on_op,
	.poll = schedule_poll,
	.switch_sides = schedule_switch_sides,
	.may_flush = schedule_may_flush,
	.status = schedule_status,
};
