/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Windows of a length that is known when they open. One opens when all collectors have their
 * records on, and is over when they are asked to switch them off; records from before and after it
 * are in the file, but not in a window. Records stay on where the next window may follow at once.
 */
#include "capture/control/gpu_windows.h"

#include "base/log.h"
#include "capture/control/control.h"
#include "capture/policy/duty_cycle.h"
#include "capture/process/features.h"
#include "common/clock.h"

#include <stdlib.h>

#define MS_NS	     1000000U
#define CLOSE_NS     (10 * SECOND_NS) /* a GPU's last records are not waited for longer */
#define LATE_NS	     SECOND_NS	      /* who has not followed by then does not run */
#define NONE_NS	     (60 * SECOND_NS) /* is written at least so often */
#define LATELY_NS    (10 * SECOND_NS)
#define OPEN_POLL_MS 5
#define BUDGET_PART  0.5 /* of --overhead: samples have the rest, and what is left of this */

enum phase {
	PHASE_NONE =
		0, /* no collector has CUPTI: nothing can be seen, and no budget changes that */
	PHASE_MUTED = 1,
	PHASE_OPENING = 2, /* asked for */
	PHASE_OPEN = 3,
	PHASE_CLOSING = 4, /* asked to be off, its last records may still come */
};

struct gpu_windows {
	struct control *control;
	struct duty_cycle cycle;
	enum phase phase;
	bool drained;		/* since all is off */
	bool mark_due;		/* in the recording in progress */
	bool any_in_recording;	/* there was another phase than PHASE_NONE since that began */
	uint64_t none_since_ns; /* in PHASE_NONE */
	uint64_t poll_ns;	/* the latest */
	uint64_t start_ns, end_ns, on_asked_ns, off_asked_ns;
	uint64_t asked_cost_ns;	      /* all that it had cost when it was asked for */
	uint64_t open_gpu_ns, gpu_ns; /* what records cost within processes */
	unsigned int processes_nr;    /* that have records */
	/* Cost and the processes' CPU time, a while ago; what share that makes since. */
	struct budget_account before;
};

struct gpu_windows *gpu_windows__new(struct control *control)
{
	struct gpu_windows *w = calloc(1, sizeof(*w));

	if (w)
		w->control = control;
	return w;
}

static void gpu_free(void *self)
{
	free(self);
}

/* ---- the account ---- */

static struct budget_account read_account(struct gpu_windows *w, uint64_t *ret_gpu_ns)
{
	struct capture_cost cost;
	struct budget_account a;
	uint64_t charged;

	cost_read(w->control, &cost, &charged);
	*ret_gpu_ns = cost.gpu_ns;
	a.now_ns = clock_now_ns();
	a.cpu_ns = cost.cpu_ns;
	a.inside_ns = cost.gpu_ns + cost.collector_ns;
	a.cost_ns = a.inside_ns + w->control->counts->collector_drain_ns;
	return a;
}

static void follow_share(struct gpu_windows *w, const struct budget_account *a)
{
	uint64_t cpu_ns = a->cpu_ns - w->before.cpu_ns;

	if (a->now_ns - w->before.now_ns < LATELY_NS)
		return;
	w->control->gpu_share =
		cpu_ns ? (double)(a->cost_ns - w->before.cost_ns) / (double)cpu_ns : 0;
	w->before = *a;
}

/* Brings the duty cycle up to date. What all has cost until now. */
static uint64_t account(struct gpu_windows *w)
{
	struct budget_account a = read_account(w, &w->gpu_ns);

	follow_share(w, &a);
	(w->control->off & CAPTURE_GPU ? duty_cycle__skip : duty_cycle__account)(&w->cycle, &a);
	return a.cost_ns;
}

/* ---- collectors ---- */

static void switch_records(struct gpu_windows *w, bool on)
{
	for (size_t i = 0; i < w->control->processes->table.nr; i++) {
		struct traced_process *m = w->control->processes->table.items[i];

		if (!m->end && m->collector &&
		    collector_client__supports(m->collector, GP_FEATURE_CUPTI))
			collector_client__only(m->collector, on ? ~(uint32_t)GP_FEATURE_STEPS
								: GP_FEATURE_CUPTI_HELD);
	}
}

static unsigned int have_records(const struct gpu_windows *w)
{
	return features_active_nr(w->control->processes, GP_FEATURE_CUPTI);
}

/* ---- events ---- */

/* There was nothing to be seen until now: that is no time that windows stand for. */
static int put_none(struct gpu_windows *w, uint64_t now_ns)
{
	const struct gp_ev_pause ev = {
		.head = {.kind = GP_EV_PAUSE, .flags = CAPTURE_GPU, .time_ns = now_ns},
		.start_ns = w->none_since_ns,
	};

	w->none_since_ns = now_ns;
	return recording_set__put(w->control->recordings, &ev, sizeof(ev));
}

/* A window of no length says that GPUs are recorded in windows, also where the recording has none.
 */
static int put_mark(struct gpu_windows *w, uint64_t now_ns)
{
	const struct gp_ev_window ev = {.head = {.kind = GP_EV_WINDOW, .time_ns = now_ns},
					.start_ns = now_ns};

	w->mark_due = false;
	return recording_set__put(w->control->recordings, &ev, sizeof(ev));
}

static int put_window(struct gpu_windows *w, uint64_t cost_ns)
{
	/* Each of them was held up by its own. */
	uint64_t inside_ns = (w->gpu_ns - w->open_gpu_ns) / (w->processes_nr ? w->processes_nr : 1);
	uint64_t ns = w->end_ns - w->start_ns;
	struct gp_ev_window ev = {
		.head = {.kind = GP_EV_WINDOW, .time_ns = w->end_ns},
		.start_ns = w->start_ns,
		.cost_ns = cost_ns - w->asked_cost_ns,
		.inside_ns = inside_ns < ns / 2 ? inside_ns : ns / 2,
	};

	return w->start_ns < w->end_ns ? recording_set__put(w->control->recordings, &ev, sizeof(ev))
				       : 0;
}

/* ---- windows ---- */

static void open_window(struct gpu_windows *w, uint64_t now)
{
	w->start_ns = w->end_ns = now;
	w->processes_nr = have_records(w);
	w->open_gpu_ns = w->gpu_ns;
	w->phase = PHASE_OPEN;
}

static void ask_on(struct gpu_windows *w, uint64_t now, uint64_t cost_ns)
{
	w->asked_cost_ns = cost_ns;
	w->on_asked_ns = now;
	w->phase = PHASE_OPENING;
	switch_records(w, true);
}

static void ask_off(struct gpu_windows *w, uint64_t now)
{
	/* Where it was not we who switched them off, it was after the latest poll. */
	if (w->phase == PHASE_OPEN)
		w->end_ns = w->control->off & CAPTURE_GPU ? w->poll_ns : now;
	w->off_asked_ns = now;
	w->drained = false;
	w->phase = PHASE_CLOSING;
	if (!(w->control->off & CAPTURE_GPU))
		switch_records(w, false);
}

static void finish_window(struct gpu_windows *w, uint64_t cost_ns, enum phase next)
{
	capture_run__fail(w->control->run, put_window(w, cost_ns));
	w->start_ns = w->end_ns = 0;
	w->phase = next;
}

/* It is as long as it was to be. */
static void end_length(struct gpu_windows *w, uint64_t now, uint64_t cost_ns)
{
	double spent_ns = (double)(cost_ns - w->asked_cost_ns);
	bool more = duty_cycle__had(&w->cycle, now, now - w->start_ns, spent_ns);

	log_debug(
		"%.3f ms of GPU records for %.3f ms: %.2f %% of the time, %.2f %% are earned, %.3f "
		"ms are there, the next one in %.3f s",
		(double)(now - w->start_ns) / 1e6, spent_ns / 1e6, 100 * w->cycle.burn,
		100 * w->cycle.earned, w->cycle.tokens_ns / 1e6,
		(double)(w->cycle.next_ns - now) / 1e9);
	if (!more) {
		ask_off(w, now);
		return;
	}
	w->end_ns = now;
	capture_run__fail(w->control->run, put_window(w, cost_ns));
	w->asked_cost_ns = cost_ns;
	open_window(w, now);
}

/* The first collector has CUPTI, perhaps since before the capture. */
static void begin_seeing(struct gpu_windows *w, uint64_t from_ns, uint64_t cost_ns)
{
	w->mark_due = w->any_in_recording = true;
	w->asked_cost_ns = cost_ns;
	open_window(w, from_ns);
}

/* No collector has it any more, or none gets it. */
static void end_seeing(struct gpu_windows *w, uint64_t now, uint64_t cost_ns)
{
	if (w->phase == PHASE_OPEN)
		w->end_ns = now;
	finish_window(w, cost_ns, PHASE_NONE);
	w->none_since_ns = now;
	w->control->gpu_share = 0;
}

/* ---- the course ---- */

static void poll_none(struct gpu_windows *w, uint64_t now)
{
	uint64_t cost_ns;

	if (have_records(w)) {
		capture_run__fail(w->control->run, put_none(w, now));
		cost_ns = account(w);
		begin_seeing(w, now, cost_ns);
	} else if (w->any_in_recording && now - w->none_since_ns > NONE_NS) {
		capture_run__fail(w->control->run, put_none(w, now));
	}
}

static void poll_mute(struct gpu_windows *w, uint64_t now, uint64_t cost_ns)
{
	if (w->control->off & CAPTURE_GPU || w->control->switching)
		return;
	if (!features_active_nr(w->control->processes, GP_FEATURE_CUPTI | GP_FEATURE_CUPTI_HELD) &&
	    features_follow(w->control->processes))
		end_seeing(w, now, cost_ns);
	else if (duty_cycle__may_open(&w->cycle, now))
		ask_on(w, now, cost_ns);
	else if (have_records(w)) /* switched on again for the user's sake, not for ours */
		switch_records(w, false);
}

static void poll_open(struct gpu_windows *w, uint64_t now, uint64_t cost_ns)
{
	bool late = now - w->on_asked_ns > LATE_NS,
	     follow = late || features_follow(w->control->processes);

	if (w->phase == PHASE_OPENING && follow && have_records(w))
		open_window(w, now);
	if (w->control->off & CAPTURE_GPU)
		ask_off(w, now);
	else if (!have_records(w) && (w->phase == PHASE_OPEN || follow))
		end_seeing(w, now, cost_ns);
	else if (w->phase == PHASE_OPEN && now - w->start_ns >= w->cycle.length_ns)
		end_length(w, now, cost_ns);
}

static void poll_closing(struct gpu_windows *w, uint64_t now, uint64_t cost_ns)
{
	bool off = features_follow(w->control->processes) || now - w->off_asked_ns > CLOSE_NS;

	if (off && w->drained)
		finish_window(w, cost_ns, PHASE_MUTED);
	w->drained = off;
}

static void gpu_poll(void *self)
{
	struct gpu_windows *w = self;
	uint64_t now = clock_now_ns(), cost_ns;

	if (w->phase == PHASE_NONE) {
		poll_none(w, now);
		w->poll_ns = now;
		return;
	}
	cost_ns = account(w);
	if (w->mark_due && !(w->control->off & CAPTURE_GPU))
		capture_run__fail(w->control->run, put_mark(w, now));
	if (w->phase == PHASE_MUTED)
		poll_mute(w, now, cost_ns);
	else if (w->phase == PHASE_CLOSING)
		poll_closing(w, now, cost_ns);
	else
		poll_open(w, now, cost_ns);
	w->poll_ns = now;
}

static int gpu_timeout_ms(const void *self, int timeout_ms)
{
	const struct gpu_windows *w = self;
	uint64_t now = clock_now_ns(), until_ns = now + (uint64_t)OPEN_POLL_MS * MS_NS, ms;

	if (w->phase == PHASE_NONE)
		return timeout_ms;
	if (w->phase == PHASE_MUTED && w->cycle.next_ns > until_ns)
		until_ns = w->cycle.next_ns;
	if (w->phase == PHASE_OPEN && w->start_ns + w->cycle.length_ns > until_ns)
		until_ns = w->start_ns + w->cycle.length_ns;
	ms = (until_ns - now) / MS_NS;
	return ms < (uint64_t)timeout_ms ? (int)ms : timeout_ms;
}

static int gpu_start(void *self)
{
	struct gpu_windows *w = self;
	w->before = read_account(w, &w->gpu_ns);
	duty_cycle__init(&w->cycle, BUDGET_PART * w->control->options->overhead_pct, &w->before);
	w->none_since_ns = w->control->run->start_ns;
	if (have_records(w))
		begin_seeing(w, w->control->run->start_ns, w->before.cost_ns);
	return 0;
}

/* The recording in progress ends. */
static int put_last(struct gpu_windows *w, uint64_t end_ns)
{
	int err = 0;

	if (w->mark_due && w->phase != PHASE_NONE && !(w->control->off & CAPTURE_GPU))
		err = put_mark(w, end_ns);
	if (w->phase == PHASE_NONE && w->any_in_recording)
		err = err ?: put_none(w, end_ns);
	if (err || (w->phase != PHASE_OPEN && w->phase != PHASE_CLOSING))
		return err;
	if (w->phase == PHASE_OPEN)
		w->end_ns = end_ns;
	return put_window(w, account(w));
}

static int gpu_split(void *self, uint64_t now_ns)
{
	struct gpu_windows *w = self;
	int err = put_last(w, now_ns);

	w->asked_cost_ns = account(w);
	w->mark_due = w->any_in_recording = w->phase != PHASE_NONE;
	w->none_since_ns = now_ns;
	if (w->phase == PHASE_OPEN)
		open_window(w, now_ns);
	else
		w->start_ns = w->end_ns = 0;
	return err;
}

static int gpu_end(void *self)
{
	struct gpu_windows *w = self;
	return put_last(w, w->control->run->end_ns);
}

static int gpu_flush(void *self, uint64_t now_ns)
{
	struct gpu_windows *w = self;
	return w->phase == PHASE_NONE && w->any_in_recording ? put_none(w, now_ns) : 0;
}

const struct controller_ops gpu_windows_ops = {
	.free = gpu_free,
	.start = gpu_start,
	.timeout_ms = gpu_timeout_ms,
	.poll = gpu_poll,
	.split = gpu_split,
	.flush = gpu_flush,
	.end = gpu_end,
};
