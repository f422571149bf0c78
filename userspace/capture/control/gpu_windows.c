/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Windows by time, of a length that is known when they open. One opens when all collectors have
 * their records on, and is over when they are asked to have them off; what comes before and after
 * that is in the file and in no window. Where the next one may follow at once records stay on.
 */
#include "capture/control/gpu_windows.h"

#include "base/log.h"
#include "capture/collector/features.h"
#include "capture/policy/duty_cycle.h"

#include <stdlib.h>

#define MS_NS	     1000000U
#define CLOSE_NS     (10 * SECOND_NS) /* a GPU's last records are not waited for longer */
#define LATE_NS	     SECOND_NS	      /* who has not followed by then does not run */
#define NONE_NS	     (60 * SECOND_NS) /* is told at least so often */
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
	struct duty_cycle pace;
	enum phase phase;
	bool drained;		/* since all is off */
	bool mark_due;		/* in the recording in progress */
	bool any_in_recording;	/* there was another phase than PHASE_NONE since that began */
	uint64_t none_since_ns; /* in PHASE_NONE */
	uint64_t turn_ns;	/* the latest */
	uint64_t start_ns, end_ns, on_asked_ns, off_asked_ns;
	uint64_t asked_cost_ns;	      /* all that it had cost when it was asked for */
	uint64_t open_gpu_ns, gpu_ns; /* what records cost within processes */
	unsigned int processes_nr;    /* that have records */
	/* Cost and the processes' CPU time, a while ago; what share that makes since. */
	struct budget_account before;
	double share;
};

struct gpu_windows *gpu_windows__new(void)
{
	return calloc(1, sizeof(struct gpu_windows));
}

void gpu_windows__free(struct gpu_windows *w)
{
	free(w);
}

double gpu_windows_share(const struct capture *c)
{
	return c->gpu_windows ? c->gpu_windows->share : 0;
}

/* ---- the account ---- */

static struct budget_account read_account(struct capture *c, uint64_t *ret_gpu_ns)
{
	struct capture_cost cost;
	struct budget_account a;
	uint64_t charged;

	cost_read(c, &cost, &charged);
	*ret_gpu_ns = cost.gpu_ns;
	a.now_ns = clock_now_ns();
	a.cpu_ns = cost.cpu_ns;
	a.inside_ns = cost.gpu_ns + cost.collector_ns;
	a.cost_ns = a.inside_ns + c->collector_drain_ns;
	return a;
}

static void follow_share(struct gpu_windows *w, const struct budget_account *a)
{
	uint64_t cpu_ns = a->cpu_ns - w->before.cpu_ns;

	if (a->now_ns - w->before.now_ns < LATELY_NS)
		return;
	w->share = cpu_ns ? (double)(a->cost_ns - w->before.cost_ns) / (double)cpu_ns : 0;
	w->before = *a;
}

/* Brings the pace up to date. What all has cost until now. */
static uint64_t account(struct capture *c)
{
	struct gpu_windows *w = c->gpu_windows;
	struct budget_account a = read_account(c, &w->gpu_ns);

	follow_share(w, &a);
	(c->off & CAPTURE_GPU ? duty_cycle__skip : duty_cycle__account)(&w->pace, &a);
	return a.cost_ns;
}

/* ---- collectors ---- */

static void switch_records(struct capture *c, bool on)
{
	for (size_t i = 0; i < c->processes.nr; i++) {
		struct traced_process *m = c->processes.items[i];

		if (!m->end && m->collector &&
		    collector_client__supports(m->collector, GP_FEATURE_CUPTI))
			collector_client__only(m->collector, on ? ~(uint32_t)GP_FEATURE_STEPS
								: GP_FEATURE_CUPTI_HELD);
	}
}

/* In how many processes the collector has one of these features on. */
static unsigned int have(const struct capture *c, uint32_t features)
{
	unsigned int nr = 0;

	for (size_t i = 0; i < c->processes.nr; i++) {
		const struct traced_process *m = c->processes.items[i];

		nr += !m->end && m->collector &&
		      (collector_client__active(m->collector) & features);
	}
	return nr;
}

static unsigned int have_records(const struct capture *c)
{
	return have(c, GP_FEATURE_CUPTI);
}

/* ---- what is told ---- */

static int put(struct capture *c, const void *ev, size_t bytes)
{
	struct segment *to = c->segments.now;

	if (!to || to->broken)
		return 0;
	return capture_note_error(c, to, recording_writer__event(to->writer, ev, bytes));
}

static void note(struct capture *c, int err)
{
	if (err && !c->failed)
		c->failed = err;
}

/* There was nothing to be seen until now: that is no time that windows stand for. */
static int put_none(struct capture *c, uint64_t now_ns)
{
	struct gpu_windows *w = c->gpu_windows;
	const struct gp_ev_pause ev = {
		.head = {.kind = GP_EV_PAUSE, .flags = CAPTURE_GPU, .time_ns = now_ns},
		.start_ns = w->none_since_ns,
	};

	w->none_since_ns = now_ns;
	return put(c, &ev, sizeof(ev));
}

/* Of no length: GPUs are looked at in windows, whether or not the recording has any. */
static int put_mark(struct capture *c, uint64_t now_ns)
{
	const struct gp_ev_window ev = {.head = {.kind = GP_EV_WINDOW, .time_ns = now_ns},
					.start_ns = now_ns};

	c->gpu_windows->mark_due = false;
	return put(c, &ev, sizeof(ev));
}

static int put_window(struct capture *c, uint64_t cost_ns)
{
	struct gpu_windows *w = c->gpu_windows;
	/* Each of them was held up by its own. */
	uint64_t inside_ns = (w->gpu_ns - w->open_gpu_ns) / (w->processes_nr ? w->processes_nr : 1);
	uint64_t ns = w->end_ns - w->start_ns;
	struct gp_ev_window ev = {
		.head = {.kind = GP_EV_WINDOW, .time_ns = w->end_ns},
		.start_ns = w->start_ns,
		.cost_ns = cost_ns - w->asked_cost_ns,
		.inside_ns = inside_ns < ns / 2 ? inside_ns : ns / 2,
	};

	return w->start_ns < w->end_ns ? put(c, &ev, sizeof(ev)) : 0;
}

/* ---- windows ---- */

static void open_window(struct capture *c, uint64_t now)
{
	struct gpu_windows *w = c->gpu_windows;

	w->start_ns = w->end_ns = now;
	w->processes_nr = have_records(c);
	w->open_gpu_ns = w->gpu_ns;
	w->phase = PHASE_OPEN;
}

static void ask_on(struct capture *c, uint64_t now, uint64_t cost_ns)
{
	struct gpu_windows *w = c->gpu_windows;

	w->asked_cost_ns = cost_ns;
	w->on_asked_ns = now;
	w->phase = PHASE_OPENING;
	switch_records(c, true);
}

static void ask_off(struct capture *c, uint64_t now)
{
	struct gpu_windows *w = c->gpu_windows;

	/* Where it was not we who switched them off, it was after the latest turn. */
	if (w->phase == PHASE_OPEN)
		w->end_ns = c->off & CAPTURE_GPU ? w->turn_ns : now;
	w->off_asked_ns = now;
	w->drained = false;
	w->phase = PHASE_CLOSING;
	if (!(c->off & CAPTURE_GPU))
		switch_records(c, false);
}

static void finish_window(struct capture *c, uint64_t cost_ns, enum phase next)
{
	struct gpu_windows *w = c->gpu_windows;

	note(c, put_window(c, cost_ns));
	w->start_ns = w->end_ns = 0;
	w->phase = next;
}

/* It is as long as it was to be. */
static void end_length(struct capture *c, uint64_t now, uint64_t cost_ns)
{
	struct gpu_windows *w = c->gpu_windows;
	double spent_ns = (double)(cost_ns - w->asked_cost_ns);
	bool more = duty_cycle__had(&w->pace, now, now - w->start_ns, spent_ns);

	log_debug(
		"%.3f ms of GPU records for %.3f ms: %.2f %% of the time, %.2f %% are earned, %.3f "
		"ms are there, the next one in %.3f s",
		(double)(now - w->start_ns) / 1e6, spent_ns / 1e6, 100 * w->pace.burn,
		100 * w->pace.earned, w->pace.tokens_ns / 1e6,
		(double)(w->pace.next_ns - now) / 1e9);
	if (!more) {
		ask_off(c, now);
		return;
	}
	w->end_ns = now;
	note(c, put_window(c, cost_ns));
	w->asked_cost_ns = cost_ns;
	open_window(c, now);
}

/* The first collector has CUPTI, perhaps since before the capture. */
static void begin_seeing(struct capture *c, uint64_t from_ns, uint64_t cost_ns)
{
	struct gpu_windows *w = c->gpu_windows;

	w->mark_due = w->any_in_recording = true;
	w->asked_cost_ns = cost_ns;
	open_window(c, from_ns);
}

/* No collector has it any more, or none gets it. */
static void end_seeing(struct capture *c, uint64_t now, uint64_t cost_ns)
{
	struct gpu_windows *w = c->gpu_windows;

	if (w->phase == PHASE_OPEN)
		w->end_ns = now;
	finish_window(c, cost_ns, PHASE_NONE);
	w->none_since_ns = now;
	w->share = 0;
}

/* ---- the course ---- */

static void poll_none(struct capture *c, uint64_t now)
{
	struct gpu_windows *w = c->gpu_windows;
	uint64_t cost_ns;

	if (have_records(c)) {
		note(c, put_none(c, now));
		cost_ns = account(c);
		begin_seeing(c, now, cost_ns);
	} else if (w->any_in_recording && now - w->none_since_ns > NONE_NS) {
		note(c, put_none(c, now));
	}
}

static void poll_mute(struct capture *c, uint64_t now, uint64_t cost_ns)
{
	struct gpu_windows *w = c->gpu_windows;

	if (c->off & CAPTURE_GPU || c->switching)
		return;
	if (!have(c, GP_FEATURE_CUPTI | GP_FEATURE_CUPTI_HELD) && collect_follows(c))
		end_seeing(c, now, cost_ns);
	else if (duty_cycle__may_open(&w->pace, now))
		ask_on(c, now, cost_ns);
	else if (have_records(c)) /* switched on again for the user's sake, not for ours */
		switch_records(c, false);
}

static void poll_open(struct capture *c, uint64_t now, uint64_t cost_ns)
{
	struct gpu_windows *w = c->gpu_windows;
	bool late = now - w->on_asked_ns > LATE_NS, follow = late || collect_follows(c);

	if (w->phase == PHASE_OPENING && follow && have_records(c))
		open_window(c, now);
	if (c->off & CAPTURE_GPU)
		ask_off(c, now);
	else if (!have_records(c) && (w->phase == PHASE_OPEN || follow))
		end_seeing(c, now, cost_ns);
	else if (w->phase == PHASE_OPEN && now - w->start_ns >= w->pace.length_ns)
		end_length(c, now, cost_ns);
}

static void poll_closing(struct capture *c, uint64_t now, uint64_t cost_ns)
{
	struct gpu_windows *w = c->gpu_windows;
	bool off = collect_follows(c) || now - w->off_asked_ns > CLOSE_NS;

	if (off && w->drained)
		finish_window(c, cost_ns, PHASE_MUTED);
	w->drained = off;
}

void gpu_windows_poll(struct capture *c)
{
	struct gpu_windows *w = c->gpu_windows;
	uint64_t now = clock_now_ns(), cost_ns;

	if (w->phase == PHASE_NONE) {
		poll_none(c, now);
		w->turn_ns = now;
		return;
	}
	cost_ns = account(c);
	if (w->mark_due && !(c->off & CAPTURE_GPU))
		note(c, put_mark(c, now));
	if (w->phase == PHASE_MUTED)
		poll_mute(c, now, cost_ns);
	else if (w->phase == PHASE_CLOSING)
		poll_closing(c, now, cost_ns);
	else
		poll_open(c, now, cost_ns);
	w->turn_ns = now;
}

int gpu_windows_timeout(const struct capture *c, int timeout_ms)
{
	const struct gpu_windows *w = c->gpu_windows;
	uint64_t now = clock_now_ns(), until_ns = now + (uint64_t)OPEN_POLL_MS * MS_NS, ms;

	if (w->phase == PHASE_NONE)
		return timeout_ms;
	if (w->phase == PHASE_MUTED && w->pace.next_ns > until_ns)
		until_ns = w->pace.next_ns;
	if (w->phase == PHASE_OPEN && w->start_ns + w->pace.length_ns > until_ns)
		until_ns = w->start_ns + w->pace.length_ns;
	ms = (until_ns - now) / MS_NS;
	return ms < (uint64_t)timeout_ms ? (int)ms : timeout_ms;
}

int gpu_windows_start(struct capture *c)
{
	struct gpu_windows *w = c->gpu_windows;

	w->before = read_account(c, &w->gpu_ns);
	duty_cycle__init(&w->pace, BUDGET_PART * c->options.overhead_pct, &w->before);
	w->none_since_ns = c->start_ns;
	if (have_records(c))
		begin_seeing(c, c->start_ns, w->before.cost_ns);
	return 0;
}

/* The recording in progress ends. */
static int put_last(struct capture *c, uint64_t end_ns)
{
	struct gpu_windows *w = c->gpu_windows;
	int err = 0;

	if (w->mark_due && w->phase != PHASE_NONE && !(c->off & CAPTURE_GPU))
		err = put_mark(c, end_ns);
	if (w->phase == PHASE_NONE && w->any_in_recording)
		err = err ?: put_none(c, end_ns);
	if (err || (w->phase != PHASE_OPEN && w->phase != PHASE_CLOSING))
		return err;
	if (w->phase == PHASE_OPEN)
		w->end_ns = end_ns;
	return put_window(c, account(c));
}

int gpu_windows_split(struct capture *c, uint64_t now_ns)
{
	struct gpu_windows *w = c->gpu_windows;
	int err = put_last(c, now_ns);

	w->asked_cost_ns = account(c);
	w->mark_due = w->any_in_recording = w->phase != PHASE_NONE;
	w->none_since_ns = now_ns;
	if (w->phase == PHASE_OPEN)
		open_window(c, now_ns);
	else
		w->start_ns = w->end_ns = 0;
	return err;
}

int gpu_windows_end(struct capture *c)
{
	return put_last(c, c->end_ns);
}

int gpu_windows_flush(struct capture *c, uint64_t now_ns)
{
	const struct gpu_windows *w = c->gpu_windows;

	return w->phase == PHASE_NONE && w->any_in_recording ? put_none(c, now_ns) : 0;
}
