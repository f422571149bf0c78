/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Windows of exact collection. One is asked for; when all collectors are at work it waits for a
 * step to begin, and is open from there on, until it has had the steps that it was to have or is
 * asked to be off. What comes before and after is in the file and no part of the recording.
 */
#include "capture/control/budget_windows.h"

#include "base/log.h"
#include "capture/collector/features.h"
#include "capture/events/event_writer.h"
#include "capture/policy/annotation_mute.h"
#include "capture/policy/budget.h"
#include "capture/policy/step_finder.h"
#include "capture/policy/step_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUDGET_PART   0.95 /* of --overhead: what is charged is an estimate in part */
#define OPEN_POLL_MS  2
#define ALONE_NS      SECOND_NS	      /* a window that need not close is told in such parts */
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

struct budget_windows {
	struct budget budget;
	struct step_finder *finder;
	enum phase phase;
	bool saw_steps; /* between windows; without that they are not counted, nor windows of them
			 */
	bool by_time;	/* the window at hand */
	bool mark_due;	/* the recording that has begun is to know how many steps there were */
	bool drained;	/* since all is off */
	struct annotation_mute rest;
	uint64_t start_ns;
	uint64_t on_asked_ns, on_ns, off_asked_ns, off_ns; /* the latest of each */
	uint64_t asleep_ns; /* since when nothing is wanted, 0: it is, or not all is off yet */
	uint64_t window_start_ns, window_end_ns;
	uint32_t steps_nr;	      /* of the window */
	uint64_t window_all_steps_nr; /* that there have been at its end */
	bool whole;		      /* it has had all that were planned */
	/* Cost by the account when the window was asked for, was open, and its last step ended. */
	uint64_t asked_cost_ns, open_cost_ns, last_cost_ns;
	uint64_t open_inside_ns, last_inside_ns; /* of that, in the target */
	uint64_t inside_ns;			 /* by the latest account */
	struct capture_cost cost;
	uint64_t all_steps_nr, windows_steps_nr;
	uint32_t windows_nr;
	uint64_t step_ns, step_length_ns; /* when the step that runs began; the last whole one's */
	struct step_times times;
};

struct budget_windows *budget_windows__new(void)
{
	struct budget_windows *w = calloc(1, sizeof(*w));

	if (w)
		w->finder = step_finder__new();
	if (w && w->finder)
		return w;
	free(w);
	return NULL;
}

void budget_windows__free(struct budget_windows *w)
{
	if (w)
		step_finder__free(w->finder);
	free(w);
}

/* ---- what is collected ---- */

/* Whether the leading process's steps can be seen without its operators. */
static bool sees_steps(const struct capture *c)
{
	const struct traced_process *m = c->processes.nr ? c->processes.items[0] : NULL;

	return m && !m->end && m->collector &&
	       (collector_client__active(m->collector) & (GP_FEATURE_OPS | GP_FEATURE_STEPS));
}

static void rest(struct capture *c)
{
	uint32_t features = annotation_mute__is_blind(&c->windows->rest) ? 0 : MUTE_FEATURES;

	set_features(c, c->off ? 0 : features | GP_FEATURE_CUPTI_HELD, false);
	for (size_t i = 0; i < c->processes.nr; i++)
		probe_session__lift(c->probes, c->processes.items[i]->index);
}

static void collect_all(struct capture *c)
{
	for (size_t i = 0; i < c->processes.nr; i++) {
		struct traced_process *m = c->processes.items[i];

		if (!m->end)
			probe_session__place(c->probes, m->process, m->index);
	}
	set_features(c, ~0U, true);
}

/* ---- the account ---- */

static struct budget_account read_account(struct capture *c)
{
	struct budget_windows *w = c->windows;
	struct budget_account a;
	uint64_t charged;

	c->cost.rests = w->phase == PHASE_MUTED && !c->off;
	cost_read(c, &w->cost, &charged);
	a.now_ns = clock_now_ns();
	a.cpu_ns = w->cost.cpu_ns;
	a.inside_ns = charged + w->cost.collector_ns;
	a.cost_ns = a.inside_ns + w->cost.own_ns;
	return a;
}

/* Brings the budget up to date. What all has cost until now. */
static uint64_t account(struct capture *c)
{
	struct budget_windows *w = c->windows;
	struct budget_account a = read_account(c);

	w->inside_ns = a.inside_ns;
	(w->asleep_ns ? budget__skip : budget__account)(&w->budget, &a);
	return a.cost_ns;
}

/* ---- windows ---- */

static int put(struct capture *c, const void *event, size_t bytes)
{
	struct segment *to = c->segments.now;

	if (!to || to->broken)
		return 0;
	return capture_note_error(c, to, recording_writer__event(to->writer, event, bytes));
}

/* The account cannot say more than there was. */
static uint64_t inside_ns(const struct budget_windows *w)
{
	uint64_t ns = w->last_inside_ns - w->open_inside_ns,
		 most = w->window_end_ns - w->window_start_ns;

	return ns < most ? ns : most;
}

static int put_window(struct capture *c, uint64_t start_ns, uint64_t end_ns, uint64_t cost_ns)
{
	struct budget_windows *w = c->windows;
	struct gp_ev_window ev = {
		.head = {.kind = GP_EV_WINDOW,
			 .flags = w->by_time ? 0 : GP_WINDOW_STEPS,
			 .time_ns = end_ns},
		.start_ns = start_ns,
		.all_steps_nr = w->all_steps_nr,
		.cost_ns = cost_ns,
		.inside_ns = start_ns < end_ns ? inside_ns(w) : 0,
		.steps_nr = w->by_time ? 0 : w->steps_nr,
	};

	if (start_ns < end_ns) {
		w->windows_nr++;
		w->windows_steps_nr += ev.steps_nr;
		if (!w->by_time)
			ev.all_steps_nr = w->window_all_steps_nr;
	}
	if (w->rest.was_muted || !w->saw_steps)
		ev.all_steps_nr = 0;
	return put(c, &ev, sizeof(ev));
}

/* The rest that there has been until now, or the sleep; from here on it is the next one's. */
static int put_pause(struct capture *c, uint64_t end_ns)
{
	struct budget_windows *w = c->windows;
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
		c->paused_ns += end_ns - *start_ns;
	*start_ns = end_ns;
	return put(c, &ev, sizeof(ev));
}

static void note(struct capture *c, int err)
{
	if (err && !c->failed)
		c->failed = err;
}

static void ask_on(struct capture *c, uint64_t cost_ns)
{
	struct budget_windows *w = c->windows;

	w->asked_cost_ns = cost_ns;
	w->by_time = !w->saw_steps || !step_finder__by_annotations(w->finder) ||
		     budget__is_hopeless(&w->budget);
	log_debug("a window by %s%s: %.3f ms are there, %.3f ms earned in a second, %.3f ms spent "
		  "beside it",
		  w->by_time ? "time" : "steps", w->rest.dark ? ", dark" : "",
		  w->budget.tokens_ns / 1e6, w->budget.rate * 1e3, w->budget.rest_rate * 1e3);
	budget__open(&w->budget, w->by_time);
	w->on_asked_ns = clock_now_ns();
	note(c, put_pause(c, w->on_asked_ns));
	w->steps_nr = 0;
	w->window_start_ns = w->window_end_ns = 0;
	w->phase = PHASE_OPENING;
	collect_all(c);
}

/* The window by time has lasted until now. */
static void last_until(struct budget_windows *w, uint64_t now_ns, uint64_t cost_ns)
{
	w->window_end_ns = now_ns;
	w->last_cost_ns = cost_ns;
	w->last_inside_ns = w->inside_ns;
}

static void ask_off(struct capture *c)
{
	struct budget_windows *w = c->windows;

	w->off_asked_ns = clock_now_ns();
	if (w->by_time && w->phase == PHASE_OPEN)
		last_until(w, w->off_asked_ns, account(c));
	w->phase = PHASE_CLOSING;
	w->drained = false;
	rest(c);
}

static void open_window(struct budget_windows *w, uint64_t start_ns, uint64_t cost_ns)
{
	w->window_start_ns = w->window_end_ns = start_ns;
	w->open_cost_ns = w->last_cost_ns = cost_ns;
	w->open_inside_ns = w->last_inside_ns = w->inside_ns;
	w->steps_nr = 0;
	w->whole = false;
	w->phase = PHASE_OPEN;
}

/* Steps that the window has had, or nanoseconds. */
static double done(const struct budget_windows *w)
{
	return w->by_time ? (double)(w->window_end_ns - w->window_start_ns) : w->steps_nr;
}

/* It need not close: what there is of it is told, and the next one begins where it ends. */
static void cut_window(struct capture *c, uint64_t cost_ns)
{
	struct budget_windows *w = c->windows;

	note(c, put_window(c, w->window_start_ns, w->window_end_ns, cost_ns - w->asked_cost_ns));
	budget__cut(&w->budget, w->by_time, done(w), (double)(w->last_cost_ns - w->open_cost_ns));
	w->asked_cost_ns = cost_ns;
	open_window(w, w->window_end_ns, cost_ns);
}

/* All is off, and what it had to tell was taken. */
static void finish_window(struct capture *c, uint64_t cost_ns)
{
	struct budget_windows *w = c->windows;

	if (w->window_start_ns < w->window_end_ns)
		note(c, put_window(c, w->window_start_ns, w->window_end_ns,
				   cost_ns - w->asked_cost_ns));
	if (w->phase == PHASE_STARTING)
		budget__closed(&w->budget, true, 0, w->budget.spent_ns);
	else
		budget__closed(&w->budget, w->by_time, done(w),
			       w->window_start_ns ? (double)(w->last_cost_ns - w->open_cost_ns)
						  : 0);
	log_debug("%u steps, %.3f ms; %zu windows say that an operator costs %.0f ns, error %.0f",
		  w->steps_nr, (double)(cost_ns - w->asked_cost_ns) / 1e6, c->cost.steps.pairs_nr,
		  w->cost.op_ns, w->cost.op_error_ns);
	w->off_ns = clock_now_ns();
	w->phase = PHASE_MUTED;
}

/* ---- steps ---- */

/* What the steps up to this one's end have cost, if all were in a window or all out of it. */
static void measure_steps(struct capture *c, uint64_t time_ns, const struct gp_ev_op *op)
{
	struct budget_windows *w = c->windows;
	struct timed_steps t;
	bool traced, plain;

	if (!step_times__end(&w->times, op, time_ns, &t))
		return;
	traced = w->on_ns && t.from_ns >= w->on_ns &&
		 (w->off_asked_ns < w->on_ns || time_ns <= w->off_asked_ns);
	plain = t.from_ns >= w->off_ns && t.from_ns >= w->rest.seen_ns &&
		(w->on_asked_ns < w->off_ns || time_ns <= w->on_asked_ns);
	if (traced || plain)
		step_cost__steps(&c->cost.steps, traced, t.steps_nr, t.cpu_ns, t.ops_nr);
}

/* A step has ended in the window, or time has gone on in one by time. */
static void end_or_cut(struct capture *c, uint64_t cost_ns)
{
	struct budget_windows *w = c->windows;
	bool over = budget__is_over(&w->budget, done(w));

	w->whole = over && !budget__is_over(&w->budget, -1);
	if (over && !budget__may_go_on(&w->budget))
		ask_off(c);
	else if (over || w->window_end_ns - w->window_start_ns >= ALONE_NS)
		cut_window(c, cost_ns);
}

/* A step ends in a window, or the first one begins there. */
static void step_in_window(struct capture *c, uint64_t time_ns)
{
	struct budget_windows *w = c->windows;

	if (w->phase == PHASE_WAITING) {
		if (time_ns >= w->on_ns)
			open_window(w, time_ns, account(c));
		return;
	}
	w->steps_nr++;
	w->window_all_steps_nr = w->all_steps_nr;
	w->window_end_ns = time_ns;
	w->last_cost_ns = account(c);
	w->last_inside_ns = w->inside_ns;
	if (w->phase == PHASE_CLOSING)
		return;
	end_or_cut(c, w->last_cost_ns);
}

void budget_windows_op(struct capture *c, uint32_t process, const struct gp_ev_op *op)
{
	struct budget_windows *w = c->windows;
	bool known = step_finder__marker(w->finder), follows;
	uint64_t time_ns;

	if (process)
		return;
	step_times__op(&w->times, op);
	if (!step_finder__op(w->finder, op, names__text(&c->names, op->name_id), &time_ns) ||
	    !step_finder__by_annotations(w->finder) || time_ns <= w->step_ns)
		return;
	w->all_steps_nr += known;
	follows = w->step_ns && w->step_ns >= w->rest.seen_ns;
	w->step_length_ns = follows ? time_ns - w->step_ns : 0;
	w->step_ns = time_ns;
	measure_steps(c, time_ns, op);
	if (w->by_time)
		return;
	if (w->phase == PHASE_WAITING || w->phase == PHASE_OPEN ||
	    (w->phase == PHASE_CLOSING && w->window_start_ns && !w->whole &&
	     time_ns <= w->off_asked_ns))
		step_in_window(c, time_ns);
}

void budget_windows_cpu_time(struct capture *c, const struct gp_ev_cpu_time *ev)
{
	if (!ev->head.process)
		step_times__recorded(&c->windows->times, ev);
}

bool budget_windows_want(const struct capture *c, const struct gp_ev_op *op)
{
	const struct budget_windows *w = c->windows;

	if (event_is_end_alone(op))
		return false;
	return w->on_asked_ns && op->start_ns >= w->on_asked_ns &&
	       (w->on_asked_ns > w->off_asked_ns || op->start_ns <= w->off_asked_ns);
}

/* ---- the course ---- */

/* A window begins where a step does: what is collected before that is paid for nothing. */
static bool is_good_moment(const struct budget_windows *w, uint64_t now)
{
	return w->step_length_ns < LONG_STEP_NS || w->rest.dark ||
	       budget__is_hopeless(&w->budget) || now - w->step_ns > w->step_length_ns / 10 * 9;
}

static void poll_mute(struct capture *c, uint64_t now, uint64_t cost_ns)
{
	struct budget_windows *w = c->windows;
	bool finds = !w->rest.dark && sees_steps(c) && !step_finder__by_annotations(w->finder) &&
		     now - w->start_ns < FIND_NS;
	const struct mute_input in = {
		.now_ns = now,
		.off_ns = w->off_ns,
		.follows = collect_follows(c),
		.is_over_budget = budget__mute_over_budget(&w->budget),
		.may_open = !finds && budget__may_open(&w->budget) && is_good_moment(w, now),
	};
	enum mute_order order = annotation_mute__poll(&w->rest, &in);

	w->saw_steps |= sees_steps(c);
	if (order == MUTE_ASK)
		rest(c);
	else if (order == MUTE_OPEN)
		ask_on(c, cost_ns);
}

static void poll_on(struct capture *c, uint64_t now, uint64_t cost_ns)
{
	struct budget_windows *w = c->windows;

	if (w->phase == PHASE_OPENING && collect_follows(c)) {
		w->on_ns = now;
		w->phase = PHASE_WAITING;
		if (w->by_time && !budget__is_over(&w->budget, -1))
			open_window(w, now, cost_ns);
	}
	if (w->by_time && w->phase == PHASE_OPEN) {
		last_until(w, now, cost_ns);
		end_or_cut(c, cost_ns);
	} else if (budget__is_over(&w->budget, -1)) {
		ask_off(c);
	}
}

/* What there is of a window so far stands in the recording that ends; the rest of the step that
 * runs is in neither. */
static int split_window(struct capture *c, uint64_t now_ns)
{
	struct budget_windows *w = c->windows;
	uint64_t cost_ns = account(c);
	int err = 0;

	if (w->by_time && w->phase == PHASE_OPEN)
		last_until(w, now_ns, cost_ns);
	if (w->window_start_ns < w->window_end_ns)
		err = put_window(c, w->window_start_ns, w->window_end_ns,
				 cost_ns - w->asked_cost_ns);
	w->asked_cost_ns = cost_ns;
	w->window_start_ns = w->window_end_ns = 0;
	if (w->phase == PHASE_OPEN && w->by_time)
		open_window(w, now_ns, cost_ns);
	else if (w->phase == PHASE_OPEN)
		w->phase = PHASE_WAITING;
	return err;
}

int budget_windows_split(struct capture *c, uint64_t now_ns)
{
	struct budget_windows *w = c->windows;
	int err = 0;

	if (w->phase == PHASE_OPEN || w->phase == PHASE_CLOSING)
		err = split_window(c, now_ns);
	if (!err && w->phase == PHASE_MUTED)
		err = put_pause(c, now_ns);
	w->mark_due = true;
	return err ? err : put_window(c, now_ns, now_ns, 0);
}

/* Nothing is wanted, or was not until now. */
static void poll_asleep(struct capture *c, uint64_t now)
{
	struct budget_windows *w = c->windows;

	c->switching = !collect_follows(c);
	if (c->switching || !c->off || w->asleep_ns)
		return;
	note(c, put_pause(c, now));
	w->asleep_ns = now;
}

int budget_windows_switch(struct capture *c, uint32_t sides, bool on, struct reason *why)
{
	struct budget_windows *w = c->windows;
	uint64_t now = clock_now_ns();

	if (sides != (CAPTURE_CPU | CAPTURE_GPU))
		return reason_set(why, -EBUSY,
				  "a capture with --overhead collects everything in windows; one "
				  "side of it cannot be switched");
	if (on == !c->off)
		return 0;
	if (w->asleep_ns) {
		note(c, put_pause(c, now));
		(void)account(c);
		w->off_ns = now;
		w->asleep_ns = w->step_ns = 0;
		annotation_mute__give_up(&w->rest);
	}
	c->off = on ? 0 : sides;
	c->switching = true;
	if (w->phase == PHASE_OPENING || w->phase == PHASE_WAITING || w->phase == PHASE_OPEN)
		ask_off(c);
	else
		rest(c);
	return 0;
}

void budget_windows_poll(struct capture *c)
{
	struct budget_windows *w = c->windows;
	uint64_t now = clock_now_ns(), cost_ns = account(c);
	bool off;

	if (w->mark_due && c->segments.now && c->segments.now->start_ns) {
		now = c->segments.now->start_ns;
		note(c, put_window(c, now, now, 0));
		w->mark_due = false;
		return;
	}
	if (w->phase == PHASE_MUTED && (c->off || c->switching)) {
		poll_asleep(c, now);
	} else if (w->phase == PHASE_MUTED) {
		poll_mute(c, now, cost_ns);
	} else if (w->phase != PHASE_CLOSING && w->phase != PHASE_STARTING) {
		poll_on(c, now, cost_ns);
	} else {
		off = collect_follows(c) || now - w->off_asked_ns > CLOSE_NS;
		if (off && w->drained)
			finish_window(c, cost_ns);
		w->drained = off;
	}
}

int budget_windows_timeout(const struct capture *c, int timeout_ms)
{
	bool open = c->windows->phase != PHASE_MUTED || c->switching;
	int most = open ? OPEN_POLL_MS : c->windows->rest.is_near ? NEAR_POLL_MS : timeout_ms;

	return most < timeout_ms ? most : timeout_ms;
}

int budget_windows_start(struct capture *c)
{
	struct budget_windows *w = c->windows;
	struct budget_account begin;

	for (size_t i = 0; i < c->processes.nr; i++)
		if (c->processes.items[i]->collector)
			collector_client__request(c->processes.items[i]->collector,
						  GP_FEATURE_CPU_TIME);
	begin = read_account(c);
	budget__init(&w->budget, BUDGET_PART * c->options.overhead_pct, &begin);
	budget__open(&w->budget, true);
	w->start_ns = w->off_asked_ns = c->start_ns;
	w->phase = PHASE_STARTING;
	rest(c);
	return put_window(c, c->start_ns, c->start_ns, 0);
}

int budget_windows_end(struct capture *c)
{
	struct budget_windows *w = c->windows;
	uint64_t cost_ns = account(c);
	int err;

	if (w->phase == PHASE_OPEN && w->by_time)
		last_until(w, c->end_ns, cost_ns);
	if (w->phase != PHASE_MUTED) {
		if (w->phase != PHASE_CLOSING && w->phase != PHASE_STARTING)
			w->off_asked_ns = c->end_ns;
		finish_window(c, cost_ns);
	}
	err = put_pause(c, c->end_ns);
	return err ? err : put_window(c, c->end_ns, c->end_ns, 0);
}

void budget_windows_status(const struct capture *c, struct capture_status *status)
{
	const struct budget_windows *w = c->windows;

	status->budgeted = true;
	status->cost = w->cost;
	status->windows_nr = w->windows_nr;
	status->windows_steps_nr = w->windows_steps_nr;
	status->steps_nr = w->all_steps_nr;
	status->steps_by = step_finder__marker(w->finder);
}
