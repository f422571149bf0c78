/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One capture. Order matters at both ends: everything is probed before events may flow, and the
 * probes are off the targets before the last drain, so that a slow disk never holds a target up.
 */
#include "capture/capture.h"

#include "base/log.h"
#include "capture/control/budget_windows.h"
#include "capture/control/control.h"
#include "capture/control/gpu_windows.h"
#include "capture/control/pause.h"
#include "capture/control/rotation.h"
#include "capture/control/sampling.h"
#include "capture/control/schedule_runner.h"
#include "capture/control/triggers.h"
#include "capture/dispatch.h"
#include "capture/metadata.h"
#include "capture/process/process_set.h"
#include "capture/process/process_totals.h"
#include "common/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How often collectors' rings are looked at where they report stacks: code objects are read from
 * the process, which may soon have them no more, and nothing wakes us. */
#define STACKS_POLL_MS 10

/* A process that does not run cannot answer that it reports nothing any more. */
#define OFF_LIMIT_NS (2 * SECOND_NS)
#define OFF_POLL_US  1000

struct capture {
	struct capture_options options;
	struct capture_run run;
	struct probe_session *probes;
	struct recording_set recordings;
	struct symbol_tables symbols;
	struct process_set processes;
	struct event_writer writer;
	struct dispatch dispatch;
	struct control control;
	struct controllers controllers;
	struct triggers *triggers; /* one of the controllers; NULL: none are wanted */
	struct rotation *rotation; /* likewise; NULL: by steps */
	struct metadata metadata;
	uint64_t flushed_ns; /* the last time */
	uint64_t targets_ns; /* CPU time of the processes in the capture, once it has stopped */
};

static int cannot_write(const struct capture *c, int err, struct reason *why)
{
	return reason_set(why, err, "cannot write '%s': %s", c->options.output_path,
			  strerror(-err));
}

/* ---- making one ---- */

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
		/* The collector can report all else, if it gets in. */
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

/* Who knows of whom. Nothing is called. */
static void connect(struct capture *c)
{
	c->recordings.options = c->processes.options = c->writer.options = c->control.options =
		&c->options;
	c->recordings.run = c->processes.run = c->dispatch.run = c->control.run = &c->run;
	c->processes.recordings = c->writer.recordings = c->control.recordings = &c->recordings;
	c->processes.symbols = c->writer.symbols = &c->symbols;
	c->dispatch.processes = c->control.processes = &c->processes;
	c->writer.threads = &c->processes.threads;
	c->dispatch.writer = &c->writer;
	c->dispatch.controllers = &c->controllers;
	c->control.counts = &c->writer.counts;
	c->recordings.hooks = (struct recording_hooks){
		.describe = metadata__describe,
		.write_losses = metadata__write_losses,
		.finish = metadata__finish,
		.finished = metadata__finished,
		.arg = &c->metadata,
	};
	c->processes.drain = (struct event_drain){
		.drain = dispatch__drain,
		.take = dispatch__take,
		.on_event = dispatch__collector_event,
		.arg = &c->dispatch,
	};
}

static int begin_session(struct capture *c, struct reason *why)
{
	struct probe_options probe = probe_options(&c->options);
	int err = probe_session__new(&probe, why, &c->probes);

	if (err)
		return err;
	c->processes.probes = c->writer.probes = c->control.probes = c->probes;
	if (probe_session__no_bpf(c->probes))
		begin_without_bpf(c);
	return 0;
}

/* The one that decides when the CPU's side is collected. 0 or -ENOMEM. */
static int add_cpu_controller(struct capture *c)
{
	if (capture_is_by_steps(&c->options))
		return controllers__add(&c->controllers, &schedule_runner_ops,
					schedule_runner__new(&c->control));
	if (capture_has_budget_windows(&c->options))
		return controllers__add(&c->controllers, &budget_windows_ops,
					budget_windows__new(&c->control));
	return controllers__add(&c->controllers, &pause_ops, pause__new(&c->control));
}

/* In the order in which they are polled: rotation comes after what writes into the recording in
 * progress. 0 or -ENOMEM. */
static int add_controllers(struct capture *c)
{
	struct controllers *all = &c->controllers;
	int err = add_cpu_controller(c);

	if (!err && capture_has_gpu_windows(&c->options))
		err = controllers__add(all, &gpu_windows_ops, gpu_windows__new(&c->control));
	if (!err && c->options.triggers.on) {
		c->triggers = triggers__new(&c->control);
		err = controllers__add(all, &triggers_ops, c->triggers);
	}
	if (!err && !capture_is_by_steps(&c->options)) {
		c->rotation = rotation__new(&c->control, all);
		err = controllers__add(all, &rotation_ops, c->rotation);
	}
	if (!err && capture_samples(&c->options))
		err = controllers__add(all, &sampling_ops, sampling__new(&c->control));
	return err;
}

int capture__new(const struct capture_options *options, struct reason *why,
		 struct capture **ret_capture)
{
	struct capture *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return reason_set(why, -ENOMEM, "out of memory");
	c->options = options_in_force(options);
	connect(c);
	cost_new(&c->control);
	err = metadata__init(&c->metadata, &c->control);
	err = err ? err : symbol_tables__init(&c->symbols, &c->recordings.segments, &c->options);
	err = err ? reason_set(why, err, "cannot begin a capture: %s", strerror(-err))
		  : begin_session(c, why);
	if (!err && add_controllers(c))
		err = reason_set(why, -ENOMEM, "out of memory");
	if (!err && options->children && !probe_session__sees_forks(c->probes))
		log_warn("processes that are started from now on are not recorded: the kernel "
			 "reports forks in the first PID namespace only");
	if (!err && !capture_is_by_steps(&c->options))
		err = recording_set__open(&c->recordings, why);
	if (err) {
		capture__free(c);
		return err;
	}
	*ret_capture = c;
	return 0;
}

/* ---- the course of a capture ---- */

int capture__add(struct capture *c, pid_t pid, struct reason *why)
{
	int err = process_set__join(&c->processes, pid, false, why);

	if (!err)
		process_set__join_children(&c->processes, pid);
	return err;
}

int capture__start(struct capture *c, struct reason *why)
{
	int err = 0;

	dispatch__drain(&c->dispatch);
	process_set__begin(&c->processes);
	c->run.start_ns = clock_now_ns();
	c->flushed_ns = c->run.start_ns;
	if (!capture_is_by_steps(&c->options))
		err = recording_set__begin(&c->recordings, c->run.start_ns);
	err = err ? err : recording_set__flush(&c->recordings);
	if (err)
		return cannot_write(c, err, why);
	c->run.started = true;
	controllers__prepare(&c->controllers);
	probe_session__start(c->probes);
	cost_start(&c->control);
	err = controllers__start(&c->controllers);
	return err ? cannot_write(c, err, why) : 0;
}

int capture__keep(struct capture *c, struct reason *why)
{
	int err = recording_set__keep(&c->recordings);

	return err ? cannot_write(c, err, why) : 0;
}

int capture__describe(struct capture *c, const char *key, const char *value, struct reason *why)
{
	int err = metadata__add(&c->metadata, key, value);

	return err == -ENOMEM ? reason_set(why, err, "out of memory")
	       : err	      ? cannot_write(c, err, why)
			      : 0;
}

static int timeout_of(const struct capture *c, int timeout_ms)
{
	if (c->options.stacks == GP_STACK_WANT_PYTHON && c->options.inject &&
	    timeout_ms > STACKS_POLL_MS)
		timeout_ms = STACKS_POLL_MS;
	timeout_ms = process_set__timeout_ms(&c->processes, timeout_ms);
	return controllers__timeout_ms(&c->controllers, timeout_ms);
}

int capture__poll(struct capture *c, int timeout_ms, struct reason *why)
{
	struct pollfd fd = {.fd = probe_session__ring_fd(c->probes), .events = POLLIN};
	uint64_t now, cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int here;

	(void)poll(&fd, 1, timeout_of(c, timeout_ms));
	dispatch__drain(&c->dispatch);
	controllers__poll(&c->controllers, &c->run.failed);
	here = process_set__poll(&c->processes);
	now = clock_now_ns();
	if (!c->run.failed && now - c->flushed_ns > SECOND_NS) {
		c->flushed_ns = now;
		(void)recording_set__flush(&c->recordings);
	}
	controllers__polled(&c->controllers, clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
	return c->run.failed ? cannot_write(c, c->run.failed, why) : here;
}

static bool runs(const struct capture *c)
{
	return c->run.started && !c->run.stopped;
}

static int does_not_run(struct reason *why)
{
	return reason_set(why, -EINVAL, "the capture does not run");
}

int capture__switch(struct capture *c, uint32_t sides, bool on, struct reason *why)
{
	if (!runs(c) && !capture_is_by_steps(&c->options))
		return does_not_run(why);
	return controllers__switch(&c->controllers, sides, on, why);
}

int capture__rotate(struct capture *c, struct reason *why)
{
	if (!c->rotation)
		return reason_set(why, -EBUSY,
				  "a capture by steps goes by its schedule: it writes a recording "
				  "for each cycle");
	if (!c->options.recording_path)
		return reason_set(why, -EINVAL, "the capture writes one recording only");
	if (!runs(c))
		return does_not_run(why);
	rotation__request(c->rotation);
	return 0;
}

int capture__flush(struct capture *c, struct reason *why)
{
	int err = controllers__may_flush(&c->controllers, why);

	if (err)
		return err;
	err = c->run.failed;
	err = err ? err : controllers__flush(&c->controllers, clock_now_ns());
	err = err ? err : recording_set__flush(&c->recordings);
	return err ? reason_set(why, err, "cannot write '%s'", c->options.output_path) : 0;
}

void capture__trigger(struct capture *c, enum gp_trigger what)
{
	if (c->triggers)
		triggers__fire(c->triggers, what);
}

bool capture__take_trigger(struct capture *c, struct gp_ev_trigger *ret_trigger)
{
	return c->triggers && triggers__take(c->triggers, ret_trigger);
}

/* ---- the end ---- */

/* Every event has been taken. By steps what has not begun is no recording. */
static int end_recordings(struct capture *c)
{
	struct segments *s = &c->recordings.segments;
	int err = s->draining ? recording_set__end(&c->recordings, &s->draining) : 0;

	err = err ? err : controllers__end(&c->controllers);
	if (err || !s->current || !s->current->start_ns)
		return err;
	s->current->end_ns = c->run.end_ns;
	return recording_set__end(&c->recordings, &s->current);
}

/* The window ends where collection does, at about the same moment by callbacks and by probes: to
 * take those away, and a GPU's last events, takes longer. */
static void end_window(struct capture *c)
{
	uint64_t asked_ns = clock_now_ns(), collector_ns;

	process_set__silence(&c->processes);
	while (!process_set__is_silent(&c->processes) && clock_now_ns() - asked_ns < OFF_LIMIT_NS) {
		dispatch__drain(&c->dispatch);
		(void)usleep(OFF_POLL_US);
	}
	probe_session__pause(c->probes, true);
	c->run.end_ns = clock_now_ns();
	cpu_clocks__read(&c->processes.clocks, &c->processes.table, &c->targets_ns, &collector_ns);
}

int capture__stop(struct capture *c, struct reason *why)
{
	struct native_stacks *stacks = &c->symbols.native_stacks;
	struct capture_run *run = &c->run;

	if (run->stopped || !run->started)
		return 0;
	end_window(c);
	run->stopped = true;
	process_set__stop(&c->processes);
	probe_session__stop(c->probes);
	dispatch__drain(&c->dispatch);
	if (!run->failed)
		capture_run__fail(run, dispatch__put_late_records(&c->dispatch));
	if (!run->failed)
		capture_run__fail(run, native_stacks__release(stacks, &c->symbols.stacks, 0));
	if (!run->failed)
		capture_run__fail(run, end_recordings(c));
	return run->failed ? cannot_write(c, run->failed, why) : 0;
}

void capture__free(struct capture *c)
{
	struct reason why;

	if (!c)
		return;
	(void)capture__stop(c, &why);
	/* The recordings have ended: nothing more is taken while collectors are removed. */
	capture_run__fail(&c->run, -ECANCELED);
	process_set__done(&c->processes);
	probe_session__free(c->probes);
	recording_set__done(&c->recordings);
	controllers__done(&c->controllers);
	metadata__done(&c->metadata);
	symbol_tables__done(&c->symbols);
	dispatch__done(&c->dispatch);
	free(c);
}

static uint64_t lost_nr(const uint64_t losses[GP_LOSS_NR])
{
	return losses[GP_LOSS_RING_FULL] + losses[GP_LOSS_DEPTH] + losses[GP_LOSS_RECORD] +
	       losses[GP_LOSS_COLLECTOR_FULL] + losses[GP_LOSS_GPU_TIME] +
	       losses[GP_LOSS_GPU_CLOCK] + losses[GP_LOSS_GPU_DROPPED] + losses[GP_LOSS_UNWRITTEN];
}

static void probes_status(const struct capture *c, struct capture_status *s)
{
	struct probe_summary summary;

	probe_session__summary(c->probes, &summary);
	s->sites_nr = summary.sites_nr;
	s->functions_nr = summary.functions_nr;
	s->not_placed_nr = summary.not_placed_nr;
	s->method = summary.method;
	s->no_bpf = probe_session__no_bpf(c->probes);
}

void capture__status(const struct capture *c, struct capture_status *ret_status)
{
	uint64_t now_ns = c->run.stopped ? c->run.end_ns : clock_now_ns();
	const struct segment *current = c->recordings.segments.current;
	struct capture_status s = {
		.events_nr = c->writer.counts.events_nr,
		.targets_ns = c->targets_ns,
		.off = c->control.off,
		.switching = c->control.switching,
		.processes_nr = c->processes.table.joined_nr,
		.callbacks_nr = process_totals__callbacks_nr(&c->processes),
		.recordings_nr = c->recordings.ended_nr,
		.files_nr = c->recordings.begun_nr,
		.unwritten = !capture_is_by_steps(&c->options) && runs(c) &&
			     (!current || current->broken),
	};
	struct totals totals;

	metadata__totals(&c->metadata, &totals);
	s.lost_nr = lost_nr(totals.losses);
	s.bytes = recording_set__bytes(&c->recordings, &s.recording_bytes);
	if (c->run.started)
		s.running_ns = now_ns - c->run.start_ns - c->control.paused_ns;
	probes_status(c, &s);
	controllers__status(&c->controllers, now_ns, &s);
	*ret_status = s;
}
