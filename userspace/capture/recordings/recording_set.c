/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The recordings of a capture, one after another: each begins with what the capture knows and ends
 * with what was counted in its time.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/version.h"
#include "capture/control/schedule_runner.h"
#include "capture/private.h"
#include "capture/process/collector_policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

int capture_write_number(struct segment *s, const char *key, uint64_t n)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return recording_writer__meta(s->writer, key, text);
}

/* ---- the beginning ---- */

static const char *stacks_name(const struct capture *c)
{
	if (!(c->options.stacks & GP_STACK_WANT_NATIVE))
		return "python";
	return c->options.stacks & GP_STACK_WANT_PYTHON ? "both" : "native";
}

/* Recordings that say the same share a clock. */
static int write_boot_id(struct recording_writer *w)
{
	CLEANUP(cleanup_free) char *id = NULL;
	size_t bytes;

	if (file_read("/proc/sys/kernel/random/boot_id", 64, &id, &bytes))
		return 0;
	id[strcspn(id, "\n")] = '\0';
	return recording_writer__meta(w, "boot_id", id);
}

static int write_machine(struct recording_writer *w)
{
	struct utsname u = {0};
	char cpus[24];
	int err;

	(void)uname(&u);
	(void)snprintf(cpus, sizeof(cpus), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	err = recording_writer__meta(w, "host", u.nodename);
	err = err ?: recording_writer__meta(w, "kernel", u.release);
	err = err ?: recording_writer__meta(w, "machine", u.machine);
	err = err ?: write_boot_id(w);
	return err ?: recording_writer__meta(w, "cpus", cpus);
}

static int write_budget(const struct capture *c, struct recording_writer *w)
{
	char percent[32];

	(void)snprintf(percent, sizeof(percent), "%g", c->options.overhead_pct);
	return recording_writer__meta(w, "overhead_pct", percent);
}

static int write_meta(struct capture *c, struct segment *s)
{
	const struct capture_options *o = &c->options;
	struct recording_writer *w = s->writer;
	int err;

	err = recording_writer__meta(w, "gpuprof", gpuprof_version);
	err = err ?: recording_writer__meta(w, "mode", capture_samples(c) ? "sample" : "trace");
	err = err ?: sampling_describe(c, s);
	err = err ?: write_machine(w);
	err = err ?: recording_writer__meta(w, "capture_id", c->id);
	err = err ?: capture_write_number(s, "recording_nr", c->begun_nr + 1ULL);
	err = err
		      ?: recording_writer__meta(
				 w, "ops", o->ops_glob ? o->ops_glob : (o->ops ? "all" : "none"));
	err = err ?: recording_writer__meta(w, "annotations", o->ops && !o->ops_alone ? "1" : "0");
	err = err ?: recording_writer__meta(w, "shapes", o->shapes ? "1" : "0");
	err = err ?: recording_writer__meta(w, "flops", o->flops ? "1" : "0");
	err = err ?: recording_writer__meta(w, "modules", o->modules ? "1" : "0");
	if (o->calls)
		err = err ?: recording_writer__meta(w, "python_functions", "1");
	if (o->python_gc)
		err = err ?: recording_writer__meta(w, "python_gc", "1");
	if (o->stacks)
		err = err ?: recording_writer__meta(w, "stacks", stacks_name(c));
	for (size_t i = 0; i < c->descriptions.nr && !err; i++)
		err = recording_writer__meta(w, c->descriptions.items[i].key,
					     c->descriptions.items[i].value);
	if (o->overhead_pct > 0 && !capture_samples(c))
		err = err ?: write_budget(c, w);
	if (c->gpu_windows)
		err = err ?: recording_writer__meta(w, "gpu_windows", "1");
	return err ?: recording_writer__meta(w, "memory", o->memory ? "1" : "0");
}

static int write_known(const struct traced_process *m, struct recording_writer *w, uint16_t number)
{
	int err = buf__error(&m->schemas);

	for (size_t at = 0; at < m->schemas.nr && !err;) {
		uint64_t bytes;

		memcpy(&bytes, m->schemas.bytes + at, sizeof(bytes));
		at += sizeof(bytes);
		err = recording_writer__event_of(w, number, m->schemas.bytes + at, bytes);
		at += bytes;
	}
	for (size_t i = 0; i < m->devices.nr && !err; i++)
		err = recording_writer__event_of(w, number, &m->devices.items[i],
						 sizeof(m->devices.items[i]));
	if (!err && m->clock.head.kind)
		err = recording_writer__event_of(w, number, &m->clock, sizeof(m->clock));
	return err;
}

/* Its number in the recording; a new one if it has none. 0, -ENOSPC or -ENOMEM. */
static int number_process(const struct traced_process *m, struct segment *to, uint16_t *ret_number)
{
	const uint64_t *known = hash__find(&to->processes, m->serial);
	uint32_t number = known ? (uint32_t)*known : m->serial ? to->processes_nr + 1 : 0;
	int err = known ? 0 : number > UINT16_MAX ? -ENOSPC : 0;

	if (!known && !err)
		err = hash__set(&to->processes, m->serial, number);
	if (err)
		return err;
	to->processes_nr += !known && number;
	*ret_number = (uint16_t)number;
	return 0;
}

int capture_describe_process(struct traced_process *m, struct segment *to, uint16_t *ret_number)
{
	struct recording_process rp = {
		.pid = m->process->pid,
		.rank = m->rank,
		.world_size = m->world_size,
		.start_boot_ns = m->process->start_boot_ns,
		.comm = m->process->comm,
		.cmdline = m->process->cmdline ? m->process->cmdline : "",
	};
	int err = number_process(m, to, ret_number);

	if (err)
		return err;
	rp.index = *ret_number;
	err = recording_writer__process(to->writer, &rp);
	if (!err && m->nccl_version[0])
		err = recording_writer__meta(to->writer, "nccl_version", m->nccl_version);
	return err ? err : write_known(m, to->writer, *ret_number);
}

int capture_emit_process(struct traced_process *m, struct segment *to, uint16_t *ret_number)
{
	const uint64_t *known = hash__find(&to->processes, m->serial);

	if (!known)
		return capture_describe_process(m, to, ret_number);
	*ret_number = (uint16_t)*known;
	return 0;
}

static char *next_path(const struct capture *c)
{
	if (!c->options.recording_path)
		return strdup(c->options.output_path);
	return c->options.recording_path(c->options.recording_arg, c->begun_nr);
}

/* Hardly two samples have the same stack: those of earlier recordings would fill the memory. */
static int poll_stacks(struct capture *c)
{
	int err = native_stacks__release(&c->native_stacks, &c->stacks, 0);

	stacks__poll(&c->stacks);
	return err;
}

int capture_open_recording(struct capture *c, struct reason *why)
{
	CLEANUP(cleanup_free) char *path = next_path(c);
	struct segment *s;
	uint16_t number;
	int err;

	if (!path)
		return reason_set(why, -ENOMEM, "out of memory");
	err = segment__new(c->options.folder, path, why, &s);
	if (err)
		return err;
	recording_writer__set_room(s->writer, c->options.room);
	threads__poll(&c->threads);
	native_stacks__poll(&c->native_stacks, &c->processes);
	kernels__poll(&c->kernels, &c->processes);
	err = capture_samples(c) ? poll_stacks(c) : 0;
	err = err ? err : write_meta(c, s);
	for (size_t i = 0; i < c->processes.nr && !err; i++)
		if (!c->processes.items[i]->end)
			err = capture_emit_process(c->processes.items[i], s, &number);
	if (!err && c->keeps && !c->schedule_runner)
		err = recording_writer__place(s->writer);
	if (err) {
		segment__free(s);
		return reason_set(why, err, "cannot write '%s': %s", path, strerror(-err));
	}
	c->begun_nr++;
	c->segments.now = s;
	return 0;
}

int capture_begin_recording(struct capture *c, uint64_t start_ns)
{
	struct segment *s = c->segments.now;
	uint64_t ago_ns = clock_now_ns() - start_ns;

	s->start_ns = start_ns;
	s->start_realtime_ns = clock_ns(CLOCK_REALTIME) - ago_ns;
	sampling_begin(c, start_ns);
	return recording_writer__window(s->writer, s->start_ns, 0, s->start_realtime_ns);
}

/* ---- counters ---- */

void capture_totals(const struct capture *c, struct totals *ret_totals)
{
	struct totals t = {
		.inputs_lost_nr = c->inputs_lost_nr,
		.collector_ops_nr = c->collector_ops_nr,
		.collector_memory_nr = c->collector_memory_nr,
	};
	struct probe_summary summary;
	struct probe_cost cost;

	probe_session__losses(c->probes, t.losses);
	probe_session__summary(c->probes, &summary);
	probe_session__cost(c->probes, &cost);
	t.probe_hits = cost.hits;
	t.probe_hits_stepped = cost.hits_stepped;
	t.sampler_ns = probe_session__sampler_ns(c->probes);
	t.losses[GP_LOSS_PROBE] = summary.not_placed_nr;
	t.losses[GP_LOSS_RECORD] += c->refused_nr;
	t.losses[GP_LOSS_NAMES] += c->nameless_nr + c->kernels.nameless_nr;
	t.losses[GP_LOSS_OPEN_AT_START] += c->open_at_start_nr;
	t.losses[GP_LOSS_COLLECTOR_LEFT] += c->left_nr;
	t.losses[GP_LOSS_STACK_INCOMPLETE] += c->stacks.incomplete_nr;
	t.losses[GP_LOSS_STACK_ROOM] += c->stacks.numbers_lost_nr;
	t.losses[GP_LOSS_LINES] += c->native_stacks.lines.left_nr;
	t.losses[GP_LOSS_CHILD_LATE] += c->child_late_nr;
	t.losses[GP_LOSS_CHILD_MISSED] += c->child_missed_nr;
	t.losses[GP_LOSS_UNWRITTEN] += c->unwritten_nr;
	for (size_t i = 0; i < c->processes.nr; i++)
		if (c->processes.items[i]->collector)
			collector_client__losses(c->processes.items[i]->collector, t.losses);
	for (int i = 0; i < GP_LOSS_NR; i++)
		t.losses[i] += c->collector_losses[i];
	*ret_totals = t;
}

/* What has been added since; a counter that went back says nothing. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static int write_losses(struct capture *c, struct segment *s, const struct totals *t)
{
	int err = 0;

	for (int i = 0; i < GP_LOSS_NR && !err; i++) {
		/* Functions without a probe are without one in each recording. */
		uint64_t before = i == GP_LOSS_PROBE ? 0 : c->reported.losses[i];

		err = recording_writer__loss(s->writer, recording_loss_name(i),
					     since(t->losses[i], before));
	}
	if (!err && c->schedule_runner)
		err = recording_writer__loss(s->writer, "late_steps", s->late_steps_nr);
	if (!err && c->options.shapes)
		err = recording_writer__loss(s->writer, "inputs",
					     since(t->inputs_lost_nr, c->reported.inputs_lost_nr));
	return err;
}

/* What was measured of the cost of probes; see FORMAT.md. */
static int write_probe_cost(struct capture *c, struct segment *s, const struct totals *t)
{
	struct probe_cost probes;
	int err;

	probe_session__cost(c->probes, &probes);
	err = capture_write_number(s, "probe_hits", since(t->probe_hits, c->reported.probe_hits));
	err = err
		      ?: capture_write_number(
				 s, "probe_hits_stepped",
				 since(t->probe_hits_stepped, c->reported.probe_hits_stepped));
	if (probes.trap_ns)
		err = err ?: capture_write_number(s, "probe_trap_ns", probes.trap_ns);
	if (probes.trap_stepped_ns)
		err = err
			      ?: capture_write_number(s, "probe_trap_stepped_ns",
						      probes.trap_stepped_ns);
	err = err ?: capture_write_number(s, "probe_program_runs", probes.program_runs);
	if (probes.program_runs)
		err = err ?: capture_write_number(s, "probe_program_ns", probes.program_ns);
	if (probes.ns_per_hit)
		err = err ?: capture_write_number(s, "probe_ns_per_hit", probes.ns_per_hit);
	if (capture_samples(c))
		err = err
			      ?: capture_write_number(s, "sampler_ns",
						      since(t->sampler_ns, c->reported.sampler_ns));
	return err;
}

static int write_callback_cost(struct capture *c, struct segment *s, const struct totals *t)
{
	struct callback_cost callbacks = cost_timed(c);
	int err;

	err = capture_write_number(s, "callback_ops",
				   since(t->collector_ops_nr, c->reported.collector_ops_nr));
	err = err
		      ?: capture_write_number(
				 s, "callback_memory",
				 since(t->collector_memory_nr, c->reported.collector_memory_nr));
	err = err ?: capture_write_number(s, "callback_timed", callbacks.timed_nr);
	if (callbacks.timed_nr)
		err = err
			      ?: capture_write_number(s, "callback_ns",
						      callbacks.timed_ns / callbacks.timed_nr);
	return err;
}

/* ---- the end ---- */

static int write_gpu_lacks(struct capture *c, struct segment *s)
{
	int err;

	for (size_t i = 0; i < c->processes.nr; i++)
		if (!c->processes.items[i]->end)
			collector_policy_note_missing(c, c->processes.items[i]);
	err = gpu_unavailable__write(&c->gpu_unavailable, s->writer);
	gpu_unavailable__poll(&c->gpu_unavailable, &c->processes);
	return err;
}

static int write_end(struct capture *c, struct segment *s, const struct totals *t)
{
	struct capture_status status;
	int err;

	capture__status(c, &status);
	err = write_losses(c, s, t);
	err = err ?: write_probe_cost(c, s, t);
	err = err ?: write_callback_cost(c, s, t);
	err = err ?: cost_write(c, s->writer);
	err = err ?: write_gpu_lacks(c, s);
	err = err ?: sampling_write(c, s);
	err = err ?: capture_write_number(s, "probe_sites", status.sites_nr);
	err = err ?: capture_write_number(s, "callback_processes", status.callbacks_nr);
	err = err ?: recording_writer__meta(s->writer, "probe_method", status.method);
	err = err
		      ?: recording_writer__window(s->writer, s->start_ns, s->end_ns,
						  s->start_realtime_ns);
	return err ?: recording_writer__finish(s->writer);
}

/* While the capture goes on, events wait meanwhile. */
static int find_lines(struct capture *c, struct segment *s)
{
	struct native_stacks *n = &c->native_stacks;
	uint64_t budget_ns = c->stopped ? SECOND_NS : SECOND_NS / 20;
	int err = n->codes ? frame_lines__find(&n->lines, n->codes, &c->stacks, budget_ns) : 0;

	return capture_note_error(c, s, err);
}

int capture_end_recording(struct capture *c, struct segment **segment)
{
	struct segment *s = *segment;
	struct totals t;
	int err = 0;

	if (!s->broken)
		(void)find_lines(c, s);
	capture_totals(c, &t);
	if (!s->broken)
		err = capture_note_error(c, s, write_end(c, s, &t));
	if (c->keeps)
		err = err ?: capture_note_error(c, s, recording_writer__place(s->writer));
	/* What one could not tell the next one does. */
	if (!s->broken)
		c->reported = t;
	c->ended_bytes += recording_writer__bytes(s->writer);
	c->ended_nr++;
	if (c->out == s)
		c->out = NULL;
	segment__free(s);
	*segment = NULL;
	return err;
}

int capture_flush_recordings(struct capture *c)
{
	struct segment *s = c->segments.closing ? c->segments.closing : c->segments.now;
	struct totals t;
	int err;

	if (!s || s->broken)
		return 0;
	capture_totals(c, &t);
	err = write_losses(c, s, &t);
	err = err ? err : recording_writer__flush(s->writer);
	if (!err && s != c->segments.now && c->segments.now && !c->segments.now->broken) {
		s = c->segments.now;
		err = recording_writer__flush(s->writer);
	}
	return capture_note_error(c, s, err);
}

int capture_note_error(struct capture *c, struct segment *s, int err)
{
	if (!err)
		return 0;
	if (s && c->options.outlive_disk && recording_writer__error(s->writer)) {
		if (!s->broken)
			log_warn("a recording cannot be written any more: %s; it goes on with the "
				 "next one",
				 strerror(-err));
		s->broken = true;
		return 0;
	}
	c->failed = c->failed ? c->failed : err;
	return err;
}
