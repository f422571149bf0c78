/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Triggers see each event on its way into a recording. Steps are those of the first process.
 */
#include "capture/control/triggers.h"

#include "capture/control/control.h"
#include "capture/policy/step_finder.h"
#include "capture/process/process_record.h"
#include "capture/process/python_threads.h"
#include "common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIGGER_STEPS 100 /* that the median is of */
#define STEPS_LEAST   20  /* before a step can be slow */
#define MEDIAN_EVERY  10

struct triggers {
	struct control *control;
	const struct capture_triggers *options;
	struct step_finder *finder;
	uint64_t step_ns;  /* when the step that runs began; 0: steps are not known yet */
	uint64_t steps_nr; /* that have ended */
	uint64_t recent_ns[TRIGGER_STEPS];
	uint64_t usual_ns; /* their median, brought up to date now and then; 0: too few yet */
	uint64_t alive_ns; /* the last sign of life */
	uint32_t alive_tid;
	bool hang_emitted;
	bool fired;
	struct gp_ev_trigger last;
	/* State of the triggers that fired: the last request that was refused, whether the ops in
	 * which it was have ended, and when they are no longer waited for (0: none was refused). */
	struct gp_ev_head refused;
	bool unwound;
	uint64_t unwind_until_ns;
};

struct triggers *triggers__new(struct control *control)
{
	struct triggers *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->control = control;
	t->options = &control->options->triggers;
	t->finder = step_finder__new();
	if (t->finder)
		return t;
	free(t);
	return NULL;
}

static void triggers_free(void *self)
{
	struct triggers *t = self;

	step_finder__free(t->finder);
	free(t);
}

static int fire(struct triggers *t, struct gp_ev_trigger ev)
{
	struct traced_process *m =
		process_table__find(&t->control->processes->table, ev.head.process);
	struct segment *to = t->control->recordings->segments.current;
	uint16_t number = 0;
	int err;

	ev.head.kind = GP_EV_TRIGGER;
	ev.step_nr = t->steps_nr;
	if (!t->fired || !capture_trigger_is_asked_for(&t->last) ||
	    capture_trigger_is_asked_for(&ev))
		t->last = ev;
	t->fired = true;
	if (!to || to->broken)
		return 0;
	err = m ? process_record__emit(m, to, &number) : 0;
	if (!err)
		err = recording_writer__event_of(to->writer, number, &ev, sizeof(ev));
	return err == -ENOSPC ? 0 : recording_set__note_error(t->control->recordings, to, err);
}

/* ---- steps ---- */

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void update_median(struct triggers *t)
{
	size_t nr = t->steps_nr < TRIGGER_STEPS ? (size_t)t->steps_nr : TRIGGER_STEPS;
	uint64_t sorted[TRIGGER_STEPS];

	if (t->steps_nr < STEPS_LEAST || (t->usual_ns && t->steps_nr % MEDIAN_EVERY))
		return;
	memcpy(sorted, t->recent_ns, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), compare);
	t->usual_ns = sorted[nr / 2];
}

static int end_step(struct triggers *t, const struct gp_ev_op *op, uint64_t time_ns)
{
	uint64_t start_ns = t->step_ns, took_ns = time_ns - start_ns;
	double bound_ns = t->options->slow_step * (double)t->usual_ns;
	struct gp_ev_trigger ev = {
		.head = {.process = op->head.process, .tid = op->head.tid, .time_ns = time_ns},
		.start_ns = start_ns,
		.bound_ns = (uint64_t)bound_ns,
		.usual_ns = t->usual_ns,
		.what = GP_TRIGGER_SLOW_STEP,
	};
	bool slow = t->options->slow_step > 0 && t->usual_ns && (double)took_ns > bound_ns;

	t->step_ns = time_ns;
	t->hang_emitted = false;
	if (!start_ns)
		return 0;
	t->recent_ns[t->steps_nr++ % TRIGGER_STEPS] = took_ns;
	update_median(t);
	return slow ? fire(t, ev) : 0;
}

/* Whether the thread has by now left every op in which its request was refused. */
static bool has_unwound(const struct gp_ev_head *refused, const struct gp_ev_op *op)
{
	return op->head.process == refused->process && op->head.tid == refused->tid &&
	       !op->parent && !(op->head.flags & GP_OP_ASYNC) &&
	       op->head.time_ns >= refused->time_ns;
}

static int triggers_on_op(void *self, const struct gp_ev_op *op, const char *name)
{
	struct triggers *t = self;
	uint64_t time_ns;

	t->unwound |= t->unwind_until_ns && has_unwound(&t->refused, op);
	if (op->head.process || t->control->off)
		return 0;
	if (step_finder__op(t->finder, op, name, &time_ns) && time_ns > t->step_ns)
		return end_step(t, op, time_ns);
	return step_finder__failed(t->finder) ? -ENOMEM : 0;
}

/* ---- others ---- */

static int triggers_on_event(void *self, const void *event)
{
	struct triggers *t = self;
	const struct gp_ev_head *head = event;
	const struct gp_ev_memory *m = event;

	if (head->kind != GP_EV_CLOCK && head->time_ns > t->alive_ns) {
		t->alive_ns = head->time_ns;
		t->alive_tid = head->tid;
		t->hang_emitted &= t->step_ns != 0;
	}
	if (!t->options->oom || head->kind != GP_EV_MEMORY || !(head->flags & GP_MEMORY_OOM))
		return 0;
	t->refused = *head;
	t->unwound = false;
	if (!t->unwind_until_ns)
		t->unwind_until_ns = clock_now_ns() + CAPTURE_TRIGGER_LATE_NS;
	return fire(t, (struct gp_ev_trigger){
			       .head = *head,
			       .bytes = m->bytes > 0 ? (__u64)m->bytes : 0,
			       .what = GP_TRIGGER_OOM,
		       });
}

static void triggers_poll(void *self)
{
	struct triggers *t = self;
	uint64_t now_ns = clock_now_ns(), since_ns;
	struct gp_ev_trigger ev = {.what = GP_TRIGGER_HANG, .bound_ns = t->options->hang_ns};

	/* What is switched off cannot be seen to go on. */
	if (t->control->off || t->control->switching) {
		t->step_ns = 0;
		t->alive_ns = now_ns;
	}
	since_ns = t->step_ns ? t->step_ns : t->alive_ns;
	if (!since_ns)
		t->alive_ns = since_ns = now_ns;
	if (!t->options->hang_ns || t->hang_emitted || now_ns - since_ns < t->options->hang_ns ||
	    now_ns < since_ns)
		return;
	t->hang_emitted = true;
	ev.head.time_ns = now_ns;
	ev.start_ns = since_ns;
	ev.usual_ns = t->usual_ns;
	if (!fire(t, ev))
		(void)python_threads_write(t->control->processes, now_ns);
}

void triggers__fire(struct triggers *t, enum gp_trigger what)
{
	struct gp_ev_trigger ev = {
		.head.time_ns = clock_now_ns(),
		.what = what,
	};

	if (t->control->run->started && !t->control->run->stopped)
		(void)fire(t, ev);
}

bool triggers__take(struct triggers *t, struct gp_ev_trigger *ret_trigger)
{
	if (!t->fired)
		return false;
	if (t->unwind_until_ns && !t->unwound && !t->control->run->stopped &&
	    clock_now_ns() < t->unwind_until_ns)
		return false;
	t->fired = false;
	t->unwind_until_ns = 0;
	*ret_trigger = t->last;
	return true;
}

const struct controller_ops triggers_ops = {
	.free = triggers_free,
	.on_event = triggers_on_event,
	.on_op = triggers_on_op,
	.poll = triggers_poll,
};
