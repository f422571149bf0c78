/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One capture. Order matters at both ends: everything is probed before events may flow, and the
 * probes are off the targets before the last drain, so that a slow disk never holds a target up.
 */
#include "capture/capture.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "capture/control/budget_windows.h"
#include "capture/control/gpu_windows.h"
#include "capture/control/pause.h"
#include "capture/control/schedule_runner.h"
#include "capture/control/triggers.h"
#include "capture/private.h"
#include "capture/process/collector_policy.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* How often collectors' rings are looked at where they tell of stacks: code objects are read from
 * the process, which may soon have them no more, and nothing wakes us. */
#define STACKS_POLL_MS 10

/* A process that does not run cannot answer that it tells nothing any more. */
#define OFF_LIMIT_NS (2 * SECOND_NS)
#define OFF_TURN_US  1000

static int cannot_write(const struct capture *c, int err, struct reason *why)
{
	return reason_set(why, err, "cannot write '%s': %s", c->options.output_path,
			  strerror(-err));
}

static int make_id(struct capture *c)
{
	uint64_t id;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return -errno;
	(void)snprintf(c->id, sizeof(c->id), "%016llx", (unsigned long long)id);
	return 0;
}

/* Sampling needs no probe on what the target does. */
static struct capture_options options_in_force(const struct capture_options *options)
{
	struct capture_options o = *options;

	if (o.mode != CAPTURE_SAMPLE)
		return o;
	o.stacks = GP_STACK_WANT_PYTHON | GP_STACK_WANT_NATIVE;
	o.ops = o.memory = o.shapes = o.flops = o.modules = o.calls = o.python_gc = false;
	o.ops_glob = NULL;
	return o;
}

static struct probe_options probe_options(const struct capture_options *o)
{
	return (struct probe_options){
		.ring_bytes = o->ring_bytes,
		.ops = o->ops,
		.ops_alone = o->ops_alone,
		.python_gc = o->python_gc,
		.memory = o->memory,
		.gpu = o->gpu && o->mode == CAPTURE_TRACE,
		.stacks = o->stacks,
		.sample_hz = o->mode == CAPTURE_SAMPLE ? o->sample_hz : 0,
		.ops_glob = o->ops_glob,
		.cache_dir = o->cache_dir,
		.stop_at_load = o->follow_exec,
		/* Of all else the collector can tell, if it gets in. */
		.allow_no_bpf = (o->inject || o->inject_without_bpf) && !o->python_gc &&
				!o->ops_glob && !(o->stacks & GP_STACK_WANT_NATIVE),
	};
}

/* There are no probes: the collector is put in as by attach, whoever else was to bring it. */
static void begin_without_bpf(struct capture *c)
{
	c->options.inject = true;
	c->options.invited = false;
	c->options.uninvited_why = NULL;
	log_warn("only what the collector inside the process tells is recorded%s%s: %s",
		 c->options.memory ? ", which is no GPU memory" : "",
		 c->options.follow_exec ? ", from a moment after PyTorch has been loaded" : "",
		 probe_session__no_bpf(c->probes));
}

int capture__new(const struct capture_options *options, struct reason *why,
		 struct capture **ret_capture)
{
	struct capture *c = calloc(1, sizeof(*c));
	struct probe_options probe;
	int err;

	if (!c)
		return reason_set(why, -ENOMEM, "out of memory");
	c->options = options_in_force(options);
	cost_new(c);
	probe = probe_options(&c->options);
	c->native_stacks.ops.names = capture_samples(c) ? &c->names : NULL;
	err = make_id(c) ?: stacks__init(&c->stacks, &c->segments, &c->names);
	err = err ? reason_set(why, err, "cannot begin a capture: %s", strerror(-err))
		  : probe_session__new(&probe, why, &c->probes);
	if (!err && probe_session__no_bpf(c->probes))
		begin_without_bpf(c);
	if (!err && options->schedule.active) {
		c->schedule_runner = schedule_runner__new(&options->schedule);
		err = c->schedule_runner ? 0 : reason_set(why, -ENOMEM, "out of memory");
	}
	if (!err && options->overhead_pct > 0 && !capture_samples(c)) {
		c->windows = budget_windows__new();
		err = c->windows ? 0 : reason_set(why, -ENOMEM, "out of memory");
	}
	if (!err && capture_samples(c) && options->overhead_pct > 0 && c->options.gpu &&
	    (c->options.inject || c->options.invited)) {
		c->gpu_windows = gpu_windows__new();
		err = c->gpu_windows ? 0 : reason_set(why, -ENOMEM, "out of memory");
	}
	if (!err && options->triggers.on) {
		c->triggers = triggers__new(&options->triggers);
		err = c->triggers ? 0 : reason_set(why, -ENOMEM, "out of memory");
	}
	if (!err && options->children && !probe_session__sees_forks(c->probes))
		log_warn("processes that are started from now on are not recorded: forks are told "
			 "in the first PID namespace only");
	if (!err && !c->schedule_runner)
		err = capture_open_recording(c, why);
	if (err) {
		capture__free(c);
		return err;
	}
	*ret_capture = c;
	return 0;
}

/* ---- the course of a capture ---- */

int capture__start(struct capture *c, struct reason *why)
{
	int err;

	capture_drain(c);
	for (size_t i = 0; i < c->processes.nr; i++)
		if (c->processes.items[i]->collector)
			collector_client__begin(c->processes.items[i]->collector);
	c->start_ns = clock_now_ns();
	c->flushed_ns = c->start_ns;
	err = c->schedule_runner ? 0 : capture_begin_recording(c, c->start_ns);
	err = err ?: capture_flush_recordings(c);
	if (err)
		return cannot_write(c, err, why);
	c->started = true;
	sampling_start(c);
	probe_session__start(c->probes);
	cost_start(c);
	err = c->schedule_runner ? schedule_runner_start(c) : 0;
	if (!err && c->windows)
		err = budget_windows_start(c);
	if (!err && c->gpu_windows)
		err = gpu_windows_start(c);
	return err ? cannot_write(c, err, why) : 0;
}

int capture__keep(struct capture *c, struct reason *why)
{
	struct segment *now = c->segments.now;
	int err = now && !c->schedule_runner ? recording_writer__place(now->writer) : 0;

	c->keeps = !err;
	return err ? cannot_write(c, err, why) : 0;
}

int capture__describe(struct capture *c, const char *key, const char *value, struct reason *why)
{
	struct description d = {0};
	int err = asprintf(&d.key, RECORDING_USER_META "%s", key) < 0 ? -ENOMEM : 0;

	d.value = strdup(value);
	if (err || !d.value || vec_push(&c->descriptions, d)) {
		if (!err)
			free(d.key);
		free(d.value);
		return reason_set(why, -ENOMEM, "out of memory");
	}
	if (c->segments.now)
		err = capture_note_error(
			c, c->segments.now,
			recording_writer__meta(c->segments.now->writer, d.key, d.value));
	return err ? cannot_write(c, err, why) : 0;
}

/* Nothing wakes us when a collector's ring fills. */
static int guests_timeout(const struct capture *c, int timeout_ms)
{
	for (size_t i = 0; i < c->processes.nr; i++) {
		const struct traced_process *m = c->processes.items[i];
		const struct collector_client *g = m->collector;
		uint64_t ns = g ? collector_client__drain_deadline_ns(g)
				: collector_policy_drain_deadline_ns(c, m);
		uint64_t ms = m->end ? UINT64_MAX : ns / 1000000;

		if (ms < (uint64_t)timeout_ms)
			timeout_ms = (int)ms;
	}
	return timeout_ms;
}

int capture__poll(struct capture *c, int timeout_ms, struct reason *why)
{
	struct pollfd fd = {.fd = probe_session__ring_fd(c->probes), .events = POLLIN};
	uint64_t now, cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int here;

	if (c->options.stacks == GP_STACK_WANT_PYTHON && c->options.inject &&
	    timeout_ms > STACKS_POLL_MS)
		timeout_ms = STACKS_POLL_MS;
	timeout_ms = guests_timeout(c, timeout_ms);
	if (c->windows)
		timeout_ms = budget_windows_timeout(c, timeout_ms);
	if (c->gpu_windows)
		timeout_ms = gpu_windows_timeout(c, timeout_ms);
	(void)poll(&fd, 1, timeout_ms);
	capture_drain(c);
	if (c->schedule_runner)
		schedule_runner_poll(c);
	else if (c->windows)
		budget_windows_poll(c);
	else if (c->off || c->switching)
		pause_poll(c);
	if (!c->failed && c->gpu_windows)
		gpu_windows_poll(c);
	if (!c->failed && c->triggers)
		triggers_poll(c);
	if (!c->failed)
		rotation_poll(c);
	here = capture_poll_processes(c);
	now = clock_now_ns();
	if (!c->failed && now - c->flushed_ns > SECOND_NS) {
		c->flushed_ns = now;
		(void)capture_flush_recordings(c);
	}
	sampling_poll(c, clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
	if (c->failed)
		return reason_set(why, c->failed, "cannot write '%s': %s", c->options.output_path,
				  strerror(-c->failed));
	return here;
}

/* Every event has been taken. */
static int end_recordings(struct capture *c)
{
	struct segments *s = &c->segments;
	int err = s->closing ? capture_end_recording(c, &s->closing) : 0;

	err = err ?: (c->windows ? budget_windows_end(c) : pause_end(c));
	if (!err && c->gpu_windows)
		err = gpu_windows_end(c);
	if (err || !s->now)
		return err;
	s->now->end_ns = c->end_ns;
	sampling_end(c, s->now, c->end_ns);
	return capture_end_recording(c, &s->now);
}

static bool any_emits_ops(const struct capture *c)
{
	for (size_t i = 0; i < c->processes.nr; i++) {
		const struct traced_process *m = c->processes.items[i];

		if (!m->end && m->collector && !traced_process__has_exited(m) &&
		    (collector_client__active(m->collector) &
		     ~(uint32_t)(GP_FEATURE_CUPTI | GP_FEATURE_CUPTI_HELD)))
			return true;
	}
	return false;
}

/* The window ends where collection does, at about the same moment by callbacks and by probes: to
 * take those away, and a GPU's last events, takes longer. */
static void end_window(struct capture *c)
{
	uint64_t asked_ns = clock_now_ns();

	for (size_t i = 0; i < c->processes.nr; i++)
		if (c->processes.items[i]->collector && !c->processes.items[i]->end)
			collector_client__only(c->processes.items[i]->collector, 0);
	while (any_emits_ops(c) && clock_now_ns() - asked_ns < OFF_LIMIT_NS) {
		capture_drain(c);
		(void)usleep(OFF_TURN_US);
	}
	probe_session__pause(c->probes, true);
	c->end_ns = clock_now_ns();
	c->targets_ns = cost_targets_ns(c);
}

int capture__stop(struct capture *c, struct reason *why)
{
	if (c->stopped || !c->started)
		return 0;
	end_window(c);
	c->stopped = true;
	for (size_t i = 0; i < c->processes.nr; i++)
		if (c->processes.items[i]->collector && !c->processes.items[i]->end)
			capture_stop_collector(c, c->processes.items[i]->collector,
					       traced_process__has_exited(c->processes.items[i]));
	probe_session__stop(c->probes);
	capture_drain(c);
	if (!c->failed)
		c->failed = capture_put_late_records(c);
	if (!c->failed)
		c->failed = native_stacks__release(&c->native_stacks, &c->stacks, 0);
	if (!c->failed)
		c->failed = c->schedule_runner ? schedule_runner_stop(c) : end_recordings(c);
	if (c->failed)
		return reason_set(why, c->failed, "cannot write '%s': %s", c->options.output_path,
				  strerror(-c->failed));
	return 0;
}

void capture__free(struct capture *c)
{
	struct reason why;

	if (!c)
		return;
	(void)capture__stop(c, &why);
	/* The recordings have ended: nothing more is taken while collectors are removed. */
	c->failed = c->failed ?: -ECANCELED;
	for (size_t i = 0; i < c->processes.nr; i++) {
		struct traced_process *m = c->processes.items[i];

		if (m->collector)
			collector_client__free(m->collector, m->process,
					       m->end || traced_process__has_exited(m));
		traced_process__done(m);
		free(m);
	}
	process_table__done(&c->processes);
	gpu_unavailable__done(&c->gpu_unavailable);
	vec_done(&c->born);
	for (size_t i = 0; i < c->descriptions.nr; i++) {
		free(c->descriptions.items[i].key);
		free(c->descriptions.items[i].value);
	}
	vec_done(&c->descriptions);
	probe_session__free(c->probes);
	late_records__done(&c->late_records);
	segment__free(c->segments.now);
	segment__free(c->segments.closing);
	schedule_runner__free(c->schedule_runner);
	triggers__free(c->triggers);
	budget_windows__free(c->windows);
	gpu_windows__free(c->gpu_windows);
	names__done(&c->names);
	inputs_ids__done(&c->inputs);
	stacks__done(&c->stacks);
	native_stacks__done(&c->native_stacks);
	kernels__done(&c->kernels);
	threads__done(&c->threads);
	free(c);
}

static uint64_t bytes_of(const struct segment *s)
{
	return s ? recording_writer__bytes(s->writer) : 0;
}

static void steps_status(const struct capture *c, struct capture_status *s)
{
	const struct schedule_runner *steps = c->schedule_runner;

	s->over = steps->over && !c->segments.closing;
	s->steps_nr = steps->step + steps->shift;
	s->late_steps_nr = steps->shift;
	s->steps_by = step_finder__marker(steps->finder);
}

void capture__status(const struct capture *c, struct capture_status *ret_status)
{
	const struct segments *segments = &c->segments;
	struct capture_status s = {.events_nr = c->events_nr};
	struct probe_summary summary;
	struct totals totals;
	uint64_t now;

	capture_totals(c, &totals);
	probe_session__summary(c->probes, &summary);
	s.lost_nr = totals.losses[GP_LOSS_RING_FULL] + totals.losses[GP_LOSS_DEPTH] +
		    totals.losses[GP_LOSS_RECORD] + totals.losses[GP_LOSS_COLLECTOR_FULL] +
		    totals.losses[GP_LOSS_GPU_TIME] + totals.losses[GP_LOSS_GPU_CLOCK] +
		    totals.losses[GP_LOSS_GPU_DROPPED] + totals.losses[GP_LOSS_UNWRITTEN];
	s.recording_bytes = bytes_of(segments->now);
	s.bytes = c->ended_bytes + s.recording_bytes + bytes_of(segments->closing);
	now = c->stopped ? c->end_ns : clock_now_ns();
	if (c->started)
		s.running_ns = now - c->start_ns - pause_total_ns(c, now);
	s.targets_ns = c->targets_ns;
	s.off = c->off;
	s.switching = c->switching;
	s.sites_nr = summary.sites_nr;
	s.functions_nr = summary.functions_nr;
	s.not_placed_nr = summary.not_placed_nr;
	s.method = summary.method;
	s.no_bpf = probe_session__no_bpf(c->probes);
	s.processes_nr = c->processes.joined_nr;
	s.callbacks_nr = c->gone_callbacks_nr;
	s.recordings_nr = c->ended_nr;
	s.files_nr = c->begun_nr;
	s.unwritten = !c->schedule_runner && c->started && !c->stopped &&
		      (!segments->now || segments->now->broken);
	if (c->schedule_runner)
		steps_status(c, &s);
	if (c->windows)
		budget_windows_status(c, &s);
	for (size_t i = 0; i < c->processes.nr; i++)
		s.callbacks_nr += c->processes.items[i]->callbacks;
	*ret_status = s;
}
