/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Windows of exact collection. When one is due, the collectors are asked for everything; once all
 * have followed, it waits for a step to begin. It is open from there until it has had its steps, or
 * is asked to close. Events from before and after it are in the file, but not in a window.
 */
#include "capture/control/budget_windows.h"

#include "base/log.h"
#include "capture/control/control.h"
#include "capture/policy/annotation_mute.h"
#include "capture/policy/budget.h"
#include "capture/policy/step_finder.h"
#include "capture/policy/step_times.h"
#include "capture/process/features.h"
#include "common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUDGET_PART   0.95 /* of --overhead: what is charged is an estimate in part */
#define OPEN_POLL_MS  2
#define ALONE_NS      SECOND_NS	      /* a window that need not close is written in such parts */
#define FIND_NS	      (5 * SECOND_NS) /* steps are waited for, before windows are by time */
#define NEAR_POLL_MS  10
#define CLOSE_NS      (10 * SECOND_NS) /* a GPU's last events are not waited for longer */
#define LONG_STEP_NS  (SECOND_NS / 5)  /* such a step is not watched from its middle on */
#define MUTE_FEATURES (uint32_t)(GP_FEATURE_STEPS | GP_FEATURE_CPU_TIME)

enum phase {
	PHASE_MUTED = 0,
	PHASE_OPENING = 1, /* asked for */
	PHASE_WAITING = 2, /* in force, until a step begins */
	PHASE_OPEN = 3,
	PHASE_CLOSING = 4,  /* asked to be off, its last events may still come */
	PHASE_STARTING = 5, /* the same, of what was on when the capture started */
};

/* The window at hand, or the latest. */
struct window {
	uint64_t start_ns, end_ns; /* equal or 0: there is nothing of it yet */
	bool by_time;
	uint32_t steps_nr;
	uint64_t all_steps_nr; /* that there have been at its end */
	bool whole;	       /* it has had all that were planned */
	/* Cost by the account when the window was asked for, was open, and its last step ended. */
	uint64_t asked_cost_ns, open_cost_ns, last_cost_ns;
	uint64_t open_inside_ns, last_inside_ns; /* of that, in the target */
};

struct budget_windows {
	struct control *control;
	struct budget budget;
	struct step_finder *finder;
	struct annotation_mute mute;
	struct step_times times;
	struct window window;
	struct capture_cost cost; /* by the latest account */
	uint64_t inside_ns;	  /* likewise, in the target */
	enum phase phase;
	bool saw_steps; /* between windows; without that they are not counted, nor windows of them
			 */
	bool mark_due;	/* the recording that has begun is to know how many steps there were */
	bool drained;	/* since all is off */
	uint64_t on_asked_ns, on_ns, off_asked_ns, off_ns; /* the latest of each */
	uint64_t asleep_ns; /* since when nothing is wanted, 0: it is, or not all is off yet */
	uint64_t all_steps_nr, windows_steps_nr;
	uint32_t windows_nr;
	uint64_t step_ns, step_length_ns; /* when the step that runs began; the last whole one's */
};

struct budget_windows *budget_windows__new(struct control *control)
{
	struct budget_windows *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->control = control;
	w->finder = step_finder__new();
	if (w->finder)
		return w;
	free(w);
	return NULL;
}

static void budget_free(void *self)
{
	struct budget_windows *w = self;

	step_finder__free(w->finder);
	free(w);
}

/* ---- what is collected ---- */

static void mute_features(struct budget_windows *w)
{
	uint32_t features = annotation_mute__is_blind(&w->mute) ? 0 : MUTE_FEATURES;

	features_set(w->control->processes, w->control->off ? 0 : features | GP_FEATURE_CUPTI_HELD,
		     false);
	for (size_t i = 0; i < w->control->processes->table.nr; i++)
		probe_session__lift(w->control->probes,
				    w->control->processes->table.items[i]->index);
}

static void collect_all(struct budget_windows *w)
{
	for (size_t i = 0; i < w->control->processes->table.nr; i++) {
		struct traced_process *m = w->control->processes->table.items[i];

		if (!m->end)
			probe_session__place(w->control->probes, m->process, m->index);
	}
	features_set(w->control->processes, ~0U, true);
}

/* ---- the account ---- */

static struct budget_account read_account(struct budget_windows *w)
{
	struct budget_account a;
	uint64_t charged;

	w->control->cost.rests = w->phase == PHASE_MUTED && !w->control->off;
	cost_read(w->control, &w->cost, &charged);
	a.now_ns = clock_now_ns();
	a.cpu_ns = w->cost.cpu_ns;
	a.inside_ns = charged + w->cost.collector_ns;
	a.cost_ns = a.inside_ns + w->cost.own_ns;
	return a;
}

/* Brings the budget up to date. What all has cost until now. */
static uint64_t account(struct budget_windows *w)
{
	struct budget_account a = read_account(w);

	w->inside_ns = a.inside_ns;
	(w->asleep_ns ? budget__skip : budget__account)(&w->budget, &a);
	return a.cost_ns;
}

/* ---- windows ---- */

/* The account cannot say more than there was. */
static uint64_t inside_ns(const struct budget_windows *w)
{
	uint64_t ns = w->window.last_inside_ns - w->window.open_inside_ns,
		 most = w->window.end_ns - w->window.start_ns;

	return ns < most ? ns : most;
}

static int put_window(struct budget_windows *w, uint64_t start_ns, uint64_t end_ns,
		      uint64_t cost_ns)
{
	struct gp_ev_window ev = {
		.head = {.kind = GP_EV_WINDOW,
			 .flags = w->window.by_time ? 0 : GP_WINDOW_STEPS,
			 .time_ns = end_ns},
		.start_ns = start_ns,
		.all_steps_nr = w->all_steps_nr,
		.cost_ns = cost_ns,
		.inside_ns = start_ns < end_ns ? inside_ns(w) : 0,
		.steps_nr = w->window.by_time ? 0 : w->window.steps_nr,
	};

	if (start_ns < end_ns) {
		w->windows_nr++;
		w->windows_steps_nr += ev.steps_nr;
		if (!w->window.by_time)
			ev.all_steps_nr = w->window.all_steps_nr;
	}
	if (w->mute.was_muted || !w->saw_steps)
		ev.all_steps_nr = 0;
	return recording_set__put(w->control->recordings, &ev, sizeof(ev));
}

/* The rest that there has been until now, or the sleep; from here on it is the next one's. */
static int put_pause(struct budget_windows *w, uint64_t end_ns)
{
	uint64_t *start_ns = w->asleep_ns ? &w->asleep_ns : &w->off_ns;
	struct gp_ev_pause ev = {
		.head = {.kind = GP_EV_PAUSE,
			 .flags = CAPTURE_CPU | CAPTURE_GPU | (w->asleep_ns ? GP_PAUSE_ASKED : 0),
			 .time_ns = end_ns},
		.start_ns = *start_ns,
	};

	if (*start_ns >= end_ns)
		return 0;
	if (w->asleep_ns)
		w->control->paused_ns += end_ns - *start_ns;
	*start_ns = end_ns;
	return recording_set__put(w->control->recordings, &ev, sizeof(ev));
}

static void ask_on(struct budget_windows *w, uint64_t cost_ns)
{
	w->window.asked_cost_ns = cost_ns;
	w->window.by_time = !w->saw_steps || !step_finder__by_annotations(w->finder) ||
			    budget__is_hopeless(&w->budget);
	log_debug("a window by %s%s: %.3f ms are there, %.3f ms earned in a second, %.3f ms spent "
		  "beside it",
		  w->window.by_time ? "time" : "steps", w->mute.dark ? ", dark" : "",
		  w->budget.tokens_ns / 1e6, w->budget.rate * 1e3, w->budget.rest_rate * 1e3);
	budget__open(&w->budget, w->window.by_time);
	w->on_asked_ns = clock_now_ns();
	capture_run__fail(w->control->run, put_pause(w, w->on_asked_ns));
	w->window.steps_nr = 0;
	w->window.start_ns = w->window.end_ns = 0;
	w->phase = PHASE_OPENING;
	collect_all(w);
}

/* The window by time has lasted until now. */
static void last_until(struct budget_windows *w, uint64_t now_ns, uint64_t cost_ns)
{
	w->window.end_ns = now_ns;
	w->window.last_cost_ns = cost_ns;
	w->window.last_inside_ns = w->inside_ns;
}

static void ask_off(struct budget_windows *w)
{
	w->off_asked_ns = clock_now_ns();
	if (w->window.by_time && w->phase == PHASE_OPEN)
		last_until(w, w->off_asked_ns, account(w));
	w->phase = PHASE_CLOSING;
	w->drained = false;
	mute_features(w);
}

static void open_window(struct budget_windows *w, uint64_t start_ns, uint64_t cost_ns)
{
	w->window.start_ns = w->window.end_ns = start_ns;
	w->window.open_cost_ns = w->window.last_cost_ns = cost_ns;
	w->window.open_inside_ns = w->window.last_inside_ns = w->inside_ns;
	w->window.steps_nr = 0;
	w->window.whole = false;
	w->phase = PHASE_OPEN;
}

/* Steps that the window has had, or nanoseconds. */
static double done(const struct budget_windows *w)
{
	return w->window.by_time ? (double)(w->window.end_ns - w->window.start_ns)
				 : w->window.steps_nr;
}

/* The window need not close: writes what there is of it; the next one begins where it ends. */
static void cut_window(struct budget_windows *w, uint64_t cost_ns)
{
	capture_run__fail(w->control->run, put_window(w, w->window.start_ns, w->window.end_ns,
						      cost_ns - w->window.asked_cost_ns));
	budget__cut(&w->budget, w->window.by_time, done(w),
		    (double)(w->window.last_cost_ns - w->window.open_cost_ns));
	w->window.asked_cost_ns = cost_ns;
	open_window(w, w->window.end_ns, cost_ns);
}

/* All is off, and the last events have been taken. */
static void finish_window(struct budget_windows *w, uint64_t cost_ns)
{
	if (w->window.start_ns < w->window.end_ns)
		capture_run__fail(w->control->run,
				  put_window(w, w->window.start_ns, w->window.end_ns,
					     cost_ns - w->window.asked_cost_ns));
	if (w->phase == PHASE_STARTING)
		budget__closed(&w->budget, true, 0, w->budget.spent_ns);
	else
		budget__closed(&w->budget, w->window.by_time, done(w),
			       w->window.start_ns
				       ? (double)(w->window.last_cost_ns - w->window.open_cost_ns)
				       : 0);
	log_debug("%u steps, %.3f ms; %zu windows say that an operator costs %.0f ns, error %.0f",
		  w->window.steps_nr, (double)(cost_ns - w->window.asked_cost_ns) / 1e6,
		  w->control->cost.steps.pairs_nr, w->cost.op_ns, w->cost.op_error_ns);
	w->off_ns = clock_now_ns();
	w->phase = PHASE_MUTED;
}

/* ---- steps ---- */

/* What the steps up to this one's end have cost, if all were in a window or all out of it. */
static void measure_steps(struct budget_windows *w, uint64_t time_ns, const struct gp_ev_op *op)
{
	struct timed_steps t;
	bool traced, plain;

	if (!step_times__end(&w->times, op, time_ns, &t))
		return;
	traced = w->on_ns && t.from_ns >= w->on_ns &&
		 (w->off_asked_ns < w->on_ns || time_ns <= w->off_asked_ns);
	plain = t.from_ns >= w->off_ns && t.from_ns >= w->mute.seen_ns &&
		(w->on_asked_ns < w->off_ns || time_ns <= w->on_asked_ns);
	if (traced || plain)
		step_cost__steps(&w->control->cost.steps, traced, t.steps_nr, t.cpu_ns, t.ops_nr);
}

/* A step has ended in the window, or time has gone on in one by time. */
static void end_or_cut(struct budget_windows *w, uint64_t cost_ns)
{
	bool over = budget__is_over(&w->budget, done(w));

	w->window.whole = over && !budget__is_over(&w->budget, -1);
	if (over && !budget__may_go_on(&w->budget))
		ask_off(w);
	else if (over || w->window.end_ns - w->window.start_ns >= ALONE_NS)
		cut_window(w, cost_ns);
}

/* A step ends in a window, or the first one begins there. */
static void step_in_window(struct budget_windows *w, uint64_t time_ns)
{
	if (w->phase == PHASE_WAITING) {
		if (time_ns >= w->on_ns)
			open_window(w, time_ns, account(w));
		return;
	}
	w->window.steps_nr++;
	w->window.all_steps_nr = w->all_steps_nr;
	w->window.end_ns = time_ns;
	w->window.last_cost_ns = account(w);
	w->window.last_inside_ns = w->inside_ns;
	if (w->phase == PHASE_CLOSING)
		return;
	end_or_cut(w, w->window.last_cost_ns);
}

static int budget_on_op(void *self, const struct gp_ev_op *op, const char *name)
{
	struct budget_windows *w = self;
	bool known = step_finder__marker(w->finder), follows;
	uint64_t time_ns;

	if (op->head.process)
		return 0;
	step_times__op(&w->times, op);
	if (!step_finder__op(w->finder, op, name, &time_ns) ||
	    !step_finder__by_annotations(w->finder) || time_ns <= w->step_ns)
		return 0;
	w->all_steps_nr += known;
	follows = w->step_ns && w->step_ns >= w->mute.seen_ns;
	w->step_length_ns = follows ? time_ns - w->step_ns : 0;
	w->step_ns = time_ns;
	measure_steps(w, time_ns, op);
	if (w->window.by_time)
		return 0;
	if (w->phase == PHASE_WAITING || w->phase == PHASE_OPEN ||
	    (w->phase == PHASE_CLOSING && w->window.start_ns && !w->window.whole &&
	     time_ns <= w->off_asked_ns))
		step_in_window(w, time_ns);
	return 0;
}

static int budget_on_event(void *self, const void *event)
{
	struct budget_windows *w = self;
	const struct gp_ev_cpu_time *ev = event;

	if (ev->head.kind == GP_EV_CPU_TIME && !ev->head.process)
		step_times__recorded(&w->times, ev);
	return 0;
}

static bool budget_wants_op(const void *self, const struct gp_ev_op *op)
{
	const struct budget_windows *w = self;
	if (event_is_end_alone(op))
		return false;
	return w->on_asked_ns && op->start_ns >= w->on_asked_ns &&
	       (w->on_asked_ns > w->off_asked_ns || op->start_ns <= w->off_asked_ns);
}

/* ---- the course ---- */

/* A window begins where a step does: what is collected before that is paid for nothing. */
static bool is_good_moment(const struct budget_windows *w, uint64_t now)
{
	return w->step_length_ns < LONG_STEP_NS || w->mute.dark ||
	       budget__is_hopeless(&w->budget) || now - w->step_ns > w->step_length_ns / 10 * 9;
}

static void poll_mute(struct budget_windows *w, uint64_t now, uint64_t cost_ns)
{
	bool finds = !w->mute.dark && features_show_steps(w->control->processes) &&
		     !step_finder__by_annotations(w->finder) &&
		     now - w->control->run->start_ns < FIND_NS;
	const struct mute_input in = {
		.now_ns = now,
		.off_ns = w->off_ns,
		.follows = features_follow(w->control->processes),
		.is_over_budget = budget__mute_over_budget(&w->budget),
		.may_open = !finds && budget__may_open(&w->budget) && is_good_moment(w, now),
	};
	enum mute_order order = annotation_mute__poll(&w->mute, &in);

	w->saw_steps |= features_show_steps(w->control->processes);
	if (order == MUTE_ASK)
		mute_features(w);
	else if (order == MUTE_OPEN)
		ask_on(w, cost_ns);
}

static void poll_on(struct budget_windows *w, uint64_t now, uint64_t cost_ns)
{
	if (w->phase == PHASE_OPENING && features_follow(w->control->processes)) {
		w->on_ns = now;
		w->phase = PHASE_WAITING;
		if (w->window.by_time && !budget__is_over(&w->budget, -1))
			open_window(w, now, cost_ns);
	}
	if (w->window.by_time && w->phase == PHASE_OPEN) {
		last_until(w, now, cost_ns);
		end_or_cut(w, cost_ns);
	} else if (budget__is_over(&w->budget, -1)) {
		ask_off(w);
	}
}

/* What there is of a window so far stands in the recording that ends; the rest of the step that
 * runs is in neither. */
static int split_window(struct budget_windows *w, uint64_t now_ns)
{
	uint64_t cost_ns = account(w);
	int err = 0;

	if (w->window.by_time && w->phase == PHASE_OPEN)
		last_until(w, now_ns, cost_ns);
	if (w->window.start_ns < w->window.end_ns)
		err = put_window(w, w->window.start_ns, w->window.end_ns,
				 cost_ns - w->window.asked_cost_ns);
	w->window.asked_cost_ns = cost_ns;
	w->window.start_ns = w->window.end_ns = 0;
	if (w->phase == PHASE_OPEN && w->window.by_time)
		open_window(w, now_ns, cost_ns);
	else if (w->phase == PHASE_OPEN)
		w->phase = PHASE_WAITING;
	return err;
}

static int budget_split(void *self, uint64_t now_ns)
{
	struct budget_windows *w = self;
	const struct segment *now = w->control->recordings->segments.current;
	int err = 0;

	if (!now || now->broken)
		return 0;
	if (w->phase == PHASE_OPEN || w->phase == PHASE_CLOSING)
		err = split_window(w, now_ns);
	if (!err && w->phase == PHASE_MUTED)
		err = put_pause(w, now_ns);
	w->mark_due = true;
	return err ? err : put_window(w, now_ns, now_ns, 0);
}

/* Nothing is wanted, or was not until now. */
static void poll_asleep(struct budget_windows *w, uint64_t now)
{
	w->control->switching = !features_follow(w->control->processes);
	if (w->control->switching || !w->control->off || w->asleep_ns)
		return;
	capture_run__fail(w->control->run, put_pause(w, now));
	w->asleep_ns = now;
}

static int budget_switch_sides(void *self, uint32_t sides, bool on, struct reason *why)
{
	struct budget_windows *w = self;
	uint64_t now = clock_now_ns();

	if (sides != (CAPTURE_CPU | CAPTURE_GPU))
		return reason_set(why, -EBUSY,
				  "a capture with --overhead collects everything in windows; one "
				  "side of it cannot be switched");
	if (on == !w->control->off)
		return 0;
	if (w->asleep_ns) {
		capture_run__fail(w->control->run, put_pause(w, now));
		(void)account(w);
		w->off_ns = now;
		w->asleep_ns = w->step_ns = 0;
		annotation_mute__give_up(&w->mute);
	}
	w->control->off = on ? 0 : sides;
	w->control->switching = true;
	if (w->phase == PHASE_OPENING || w->phase == PHASE_WAITING || w->phase == PHASE_OPEN)
		ask_off(w);
	else
		mute_features(w);
	return 0;
}

static void budget_poll(void *self)
{
	struct budget_windows *w = self;
	uint64_t now = clock_now_ns(), cost_ns = account(w);
	bool off;

	if (w->mark_due && w->control->recordings->segments.current &&
	    w->control->recordings->segments.current->start_ns) {
		now = w->control->recordings->segments.current->start_ns;
		capture_run__fail(w->control->run, put_window(w, now, now, 0));
		w->mark_due = false;
		return;
	}
	if (w->phase == PHASE_MUTED && (w->control->off || w->control->switching)) {
		poll_asleep(w, now);
	} else if (w->phase == PHASE_MUTED) {
		poll_mute(w, now, cost_ns);
	} else if (w->phase != PHASE_CLOSING && w->phase != PHASE_STARTING) {
		poll_on(w, now, cost_ns);
	} else {
		off = features_follow(w->control->processes) || now - w->off_asked_ns > CLOSE_NS;
		if (off && w->drained)
			finish_window(w, cost_ns);
		w->drained = off;
	}
}

static int budget_timeout_ms(const void *self, int timeout_ms)
{
	const struct budget_windows *w = self;
	bool open = w->phase != PHASE_MUTED || w->control->switching;
	int most = open ? OPEN_POLL_MS : w->mute.is_near ? NEAR_POLL_MS : timeout_ms;

	return most < timeout_ms ? most : timeout_ms;
}

static int budget_start(void *self)
{
	struct budget_windows *w = self;
	struct budget_account begin;

	for (size_t i = 0; i < w->control->processes->table.nr; i++)
		if (w->control->processes->table.items[i]->collector)
			collector_client__request(w->control->processes->table.items[i]->collector,
						  GP_FEATURE_CPU_TIME);
	begin = read_account(w);
	budget__init(&w->budget, BUDGET_PART * w->control->options->overhead_pct, &begin);
	budget__open(&w->budget, true);
	w->off_asked_ns = w->control->run->start_ns;
	w->phase = PHASE_STARTING;
	mute_features(w);
	return put_window(w, w->control->run->start_ns, w->control->run->start_ns, 0);
}

static int budget_end(void *self)
{
	struct budget_windows *w = self;
	uint64_t cost_ns = account(w);
	int err;

	if (w->phase == PHASE_OPEN && w->window.by_time)
		last_until(w, w->control->run->end_ns, cost_ns);
	if (w->phase != PHASE_MUTED) {
		if (w->phase != PHASE_CLOSING && w->phase != PHASE_STARTING)
			w->off_asked_ns = w->control->run->end_ns;
		finish_window(w, cost_ns);
	}
	err = put_pause(w, w->control->run->end_ns);
	return err ? err : put_window(w, w->control->run->end_ns, w->control->run->end_ns, 0);
}

static void budget_status(const void *self, uint64_t now_ns, struct capture_status *status)
{
	const struct budget_windows *w = self;
	status->budgeted = true;
	status->cost = w->cost;
	status->windows_nr = w->windows_nr;
	status->windows_steps_nr = w->windows_steps_nr;
	status->steps_nr = w->all_steps_nr;
	status->steps_by = step_finder__marker(w->finder);
}

const struct controller_ops budget_windows_ops = {
	.free = budget_free,
	.start = budget_start,
	.on_event = budget_on_event,
	.wants_op = budget_wants_op,
	.on_op = budget_on_op,
	.timeout_ms = budget_timeout_ms,
	.poll = budget_poll,
	.split = budget_split,
	.end = budget_end,
	.switch_sides = budget_switch_sides,
	.status = budget_status,
};
