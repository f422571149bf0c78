/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One capture. Order matters at both ends: everything is probed before events may flow, and the
 * probes are off the targets before the last drain, so that a slow disk never holds a target up.
 */
#include "capture/capture.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "capture/pause.h"
#include "capture/private.h"
#include "capture/stepped.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* How often collectors' rings are looked at where they tell of stacks: code objects are read from
 * the process, which may soon have them no more, and nothing wakes us. */
#define STACKS_POLL_MS 10

uint64_t capture_clock_ns(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
}

static int cannot_write(const struct capture *c, int err, struct reason *why)
{
	return reason_set(why, err, "cannot write '%s': %s", c->options.output_path,
			  strerror(-err));
}

static const char *stacks_name(const struct capture *c)
{
	if (!(c->options.stacks & GP_STACK_WANT_NATIVE))
		return "python";
	return c->options.stacks & GP_STACK_WANT_PYTHON ? "both" : "native";
}

static int write_number(struct recording_writer *w, const char *key, uint64_t n)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return recording_writer__meta(w, key, text);
}

/* Recordings that say the same share a clock. */
static int write_boot_id(struct capture *c)
{
	CLEANUP(cleanup_free) char *id = NULL;
	size_t bytes;

	if (file_read("/proc/sys/kernel/random/boot_id", 64, &id, &bytes))
		return 0;
	id[strcspn(id, "\n")] = '\0';
	return recording_writer__meta(c->writer, "boot_id", id);
}

static int write_meta(struct capture *c)
{
	struct utsname u = {0};
	char cpus[24];
	int err;

	(void)uname(&u);
	(void)snprintf(cpus, sizeof(cpus), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	err = recording_writer__meta(c->writer, "gpuprof", GPUPROF_VERSION);
	err = err
		      ?: recording_writer__meta(c->writer, "mode",
						capture_samples(c) ? "sample" : "trace");
	if (capture_samples(c))
		err = err ?: write_number(c->writer, "sample_hz", c->options.sample_hz);
	err = err ?: recording_writer__meta(c->writer, "host", u.nodename);
	err = err ?: recording_writer__meta(c->writer, "kernel", u.release);
	err = err ?: recording_writer__meta(c->writer, "machine", u.machine);
	err = err ?: write_boot_id(c);
	err = err ?: recording_writer__meta(c->writer, "cpus", cpus);
	err = err
		      ?: recording_writer__meta(c->writer, "ops",
						c->options.ops_glob
							? c->options.ops_glob
							: (c->options.ops ? "all" : "none"));
	err = err ?: recording_writer__meta(c->writer, "shapes", c->options.shapes ? "1" : "0");
	err = err ?: recording_writer__meta(c->writer, "flops", c->options.flops ? "1" : "0");
	if (c->options.stacks)
		err = err ?: recording_writer__meta(c->writer, "stacks", stacks_name(c));
	return err ?: recording_writer__meta(c->writer, "memory", c->options.memory ? "1" : "0");
}

/* Sampling needs no probe on what the target does. */
static struct capture_options options_in_force(const struct capture_options *options)
{
	struct capture_options o = *options;

	if (o.mode != CAPTURE_SAMPLE)
		return o;
	o.stacks = GP_STACK_WANT_PYTHON | GP_STACK_WANT_NATIVE;
	o.ops = o.memory = o.shapes = o.flops = false;
	o.ops_glob = NULL;
	return o;
}

static struct probe_options probe_options(const struct capture_options *o)
{
	return (struct probe_options){
		.ring_bytes = o->ring_bytes,
		.ops = o->ops,
		.memory = o->memory,
		.gpu = o->gpu && o->mode == CAPTURE_TRACE,
		.stacks = o->stacks,
		.sample_hz = o->mode == CAPTURE_SAMPLE ? o->sample_hz : 0,
		.ops_glob = o->ops_glob,
		.cache_dir = o->cache_dir,
		.stop_at_load = o->follow_exec,
	};
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
	c->stacks.keep = c->options.stacks & GP_STACK_WANT_NATIVE;
	c->native_stacks.ops.names = capture_samples(c) ? &c->names : NULL;
	probe = probe_options(&c->options);
	err = probe_session__new(&probe, why, &c->probes);
	if (!err && options->schedule.active) {
		c->names.keep = true;
		c->stepped = stepped__new(&options->schedule);
		err = c->stepped ? 0 : reason_set(why, -ENOMEM, "out of memory");
	}
	if (!err && options->children && !probe_session__tells_forks(c->probes))
		log_warn("processes that are started from now on are not recorded: forks are told "
			 "in the first PID namespace only");
	if (!err)
		err = recording_writer__new(c->stepped ? NULL : options->output_path, why,
					    &c->writer);
	if (!err && c->stepped)
		recording_writer__keep(c->writer);
	if (!err) {
		err = write_meta(c);
		if (err)
			(void)cannot_write(c, err, why);
	}
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
	c->start_realtime_ns = capture_clock_ns(CLOCK_REALTIME);
	c->start_ns = capture_clock_ns(CLOCK_MONOTONIC);
	c->flushed_ns = c->start_ns;
	err = recording_writer__window(c->writer, c->start_ns, 0, c->start_realtime_ns);
	err = err ?: recording_writer__flush(c->writer);
	if (err)
		return cannot_write(c, err, why);
	c->started = true;
	probe_session__start(c->probes);
	err = c->stepped ? stepped_start(c) : 0;
	return err ? cannot_write(c, err, why) : 0;
}

static void read_losses(const struct capture *c, uint64_t ret_losses[GP_LOSS_NR])
{
	struct probe_summary summary;

	probe_session__losses(c->probes, ret_losses);
	probe_session__summary(c->probes, &summary);
	ret_losses[GP_LOSS_PROBE] = summary.not_placed_nr;
	ret_losses[GP_LOSS_RECORD] += c->refused_nr;
	ret_losses[GP_LOSS_NAMES] += c->nameless_nr;
	ret_losses[GP_LOSS_OPEN_AT_START] += c->open_at_start_nr;
	ret_losses[GP_LOSS_COLLECTOR_LEFT] += c->left_nr;
	ret_losses[GP_LOSS_STACK_INCOMPLETE] += c->stacks.incomplete_nr;
	ret_losses[GP_LOSS_STACK_ROOM] += c->stacks.numbers_lost_nr;
	ret_losses[GP_LOSS_CHILD_LATE] += c->child_late_nr;
	ret_losses[GP_LOSS_CHILD_MISSED] += c->child_missed_nr;
	for (size_t i = 0; i < c->members.nr; i++)
		if (c->members.items[i]->guest)
			guest__losses(c->members.items[i]->guest, ret_losses);
	for (int i = 0; i < GP_LOSS_NR; i++)
		ret_losses[i] += c->guest_losses[i];
}

static int write_losses(struct capture *c, struct recording_writer *w)
{
	uint64_t losses[GP_LOSS_NR];
	int err = 0;

	read_losses(c, losses);
	for (int i = 0; i < GP_LOSS_NR && !err; i++)
		err = recording_writer__loss(w, recording_loss_name(i), losses[i]);
	if (!err && c->stepped)
		err = recording_writer__loss(w, "late_steps", stepped_shift(c, w));
	if (!err && c->options.shapes)
		err = recording_writer__loss(w, "inputs", c->inputs_lost_nr);
	return err;
}

int capture__poll(struct capture *c, int timeout_ms, struct reason *why)
{
	struct pollfd fd = {.fd = probe_session__ring_fd(c->probes), .events = POLLIN};
	uint64_t now;
	int here;

	if (c->options.stacks == GP_STACK_WANT_PYTHON && c->options.inject &&
	    timeout_ms > STACKS_POLL_MS)
		timeout_ms = STACKS_POLL_MS;
	(void)poll(&fd, 1, timeout_ms);
	capture_drain(c);
	if (c->stepped)
		stepped_turn(c);
	else if (c->off || c->switching)
		pause_turn(c);
	here = capture_watch_members(c);
	now = capture_clock_ns(CLOCK_MONOTONIC);
	if (!c->failed && now - c->flushed_ns > SECOND_NS) {
		c->flushed_ns = now;
		c->failed = write_losses(c, c->writer) ?: recording_writer__flush(c->writer);
	}
	if (c->failed)
		return reason_set(why, c->failed, "cannot write '%s': %s", c->options.output_path,
				  strerror(-c->failed));
	return here;
}

/* What was measured of the cost of callbacks and probes; see FORMAT.md. */
static int write_cost(struct capture *c, struct recording_writer *w)
{
	struct callback_cost callbacks = c->guest_cost;
	struct probe_cost probes;
	int err;

	probe_session__cost(c->probes, &probes);
	err = write_number(w, "probe_hits", probes.hits);
	err = err ?: write_number(w, "probe_hits_stepped", probes.hits_stepped);
	if (probes.trap_ns)
		err = err ?: write_number(w, "probe_trap_ns", probes.trap_ns);
	if (probes.trap_stepped_ns)
		err = err ?: write_number(w, "probe_trap_stepped_ns", probes.trap_stepped_ns);
	err = err ?: write_number(w, "probe_program_runs", probes.program_runs);
	if (probes.program_runs)
		err = err ?: write_number(w, "probe_program_ns", probes.program_ns);
	if (probes.ns_per_hit)
		err = err ?: write_number(w, "probe_ns_per_hit", probes.ns_per_hit);
	if (capture_samples(c))
		err = err ?: write_number(w, "sampler_ns", probe_session__sampler_ns(c->probes));
	for (size_t i = 0; i < c->members.nr; i++)
		if (c->members.items[i]->guest)
			guest__timed(c->members.items[i]->guest, &callbacks);
	err = err ?: write_number(w, "callback_ops", c->guest_ops_nr);
	err = err ?: write_number(w, "callback_timed", callbacks.timed_nr);
	if (callbacks.timed_nr)
		err = err
			      ?: write_number(w, "callback_ns",
					      callbacks.timed_ns / callbacks.timed_nr);
	return err;
}

int capture_write_end(struct capture *c, struct recording_writer *w, uint64_t start_ns,
		      uint64_t end_ns, uint64_t start_realtime_ns)
{
	struct capture_status s;
	int err;

	capture__status(c, &s);
	err = write_losses(c, w);
	err = err ?: write_cost(c, w);
	err = err ?: write_number(w, "probe_sites", s.sites_nr);
	err = err ?: write_number(w, "callback_processes", s.callbacks_nr);
	err = err ?: recording_writer__meta(w, "probe_method", s.method);
	err = err ?: recording_writer__window(w, start_ns, end_ns, start_realtime_ns);
	return err ?: recording_writer__finish(w);
}

int capture__stop(struct capture *c, struct reason *why)
{
	if (c->stopped || !c->started)
		return 0;
	c->stopped = true;
	for (size_t i = 0; i < c->members.nr; i++)
		if (c->members.items[i]->guest && !c->members.items[i]->end)
			capture_stop_guest(c, c->members.items[i]->guest,
					   member__has_exited(c->members.items[i]));
	probe_session__stop(c->probes);
	c->end_ns = capture_clock_ns(CLOCK_MONOTONIC);
	capture_drain(c);
	if (!c->failed)
		c->failed = native_stacks__release(&c->native_stacks, &c->stacks, c->writer, 0);
	if (!c->failed && c->stepped)
		c->failed = stepped_stop(c);
	else if (!c->failed)
		c->failed = pause_end(c)
				    ?: capture_write_end(c, c->writer, c->start_ns, c->end_ns,
							 c->start_realtime_ns);
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
	for (size_t i = 0; i < c->members.nr; i++) {
		struct member *m = c->members.items[i];

		if (m->guest)
			guest__free(m->guest, m->process, m->end || member__has_exited(m));
		member__done(m);
		free(m);
	}
	vec_done(&c->members);
	vec_done(&c->born);
	probe_session__free(c->probes);
	recording_writer__free(c->writer);
	stepped__free(c->stepped);
	names__done(&c->names);
	inputs_ids__done(&c->inputs);
	stacks__done(&c->stacks);
	native_stacks__done(&c->native_stacks);
	kernels__done(&c->kernels);
	hash__done(&c->threads);
	free(c);
}

void capture__status(const struct capture *c, struct capture_status *ret_status)
{
	uint64_t losses[GP_LOSS_NR];
	struct probe_summary summary;
	struct capture_status s = {.events_nr = c->events_nr};
	uint64_t now;

	read_losses(c, losses);
	probe_session__summary(c->probes, &summary);
	s.lost_nr = losses[GP_LOSS_RING_FULL] + losses[GP_LOSS_RECORD] +
		    losses[GP_LOSS_COLLECTOR_FULL] + losses[GP_LOSS_GPU_TIME] +
		    losses[GP_LOSS_GPU_CLOCK] + losses[GP_LOSS_GPU_DROPPED];
	s.bytes = recording_writer__bytes(c->writer);
	now = c->stopped ? c->end_ns : capture_clock_ns(CLOCK_MONOTONIC);
	if (c->started)
		s.running_ns = now - c->start_ns - pause_total_ns(c, now);
	s.off = c->off;
	s.switching = c->switching;
	s.sites_nr = summary.sites_nr;
	s.functions_nr = summary.functions_nr;
	s.not_placed_nr = summary.not_placed_nr;
	s.method = summary.method;
	s.processes_nr = (uint32_t)c->members.nr;
	if (c->stepped) {
		s.over = c->stepped->over && !c->stepped->closing;
		s.recordings_nr = c->stepped->whole_nr;
		s.files_nr = c->stepped->files_nr;
		s.steps_nr = c->stepped->step + c->stepped->shift;
		s.late_steps_nr = c->stepped->shift;
		s.steps_by = step_finder__marker(c->stepped->finder);
	}
	for (size_t i = 0; i < c->members.nr; i++)
		s.callbacks_nr += c->members.items[i]->callbacks;
	*ret_status = s;
}
