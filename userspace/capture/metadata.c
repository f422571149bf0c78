/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes the keys of FORMAT.md's description, and the counters. It asks the rooms below; the
 * recording set calls it through its hooks.
 */
#include "capture/metadata.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/version.h"
#include "capture/process/collector_policy.h"
#include "capture/process/process_record.h"
#include "capture/process/process_totals.h"
#include "common/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

int metadata__init(struct metadata *m, struct control *control)
{
	uint64_t id;

	m->control = control;
	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return -errno;
	(void)snprintf(m->id, sizeof(m->id), "%016llx", (unsigned long long)id);
	return 0;
}

void metadata__done(struct metadata *m)
{
	for (size_t i = 0; i < m->descriptions.nr; i++) {
		free(m->descriptions.items[i].key);
		free(m->descriptions.items[i].value);
	}
	vec_done(&m->descriptions);
}

int metadata__add(struct metadata *m, const char *key, const char *value)
{
	struct recording_set *recordings = m->control->recordings;
	struct segment *now = recordings->segments.current;
	struct description d = {0};
	int err = asprintf(&d.key, RECORDING_USER_META "%s", key) < 0 ? -ENOMEM : 0;

	d.value = strdup(value);
	if (err || !d.value || vec_push(&m->descriptions, d)) {
		if (!err)
			free(d.key);
		free(d.value);
		return -ENOMEM;
	}
	err = now ? recording_writer__meta(now->writer, d.key, d.value) : 0;
	return recording_set__note_error(recordings, now, err);
}

/* ---- sampling ---- */

static int write_rate(struct segment *s, const char *key, double hz)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%.2f", hz);
	return recording_writer__meta(s->writer, key, text);
}

static int describe_sampling(const struct metadata *m, struct segment *s)
{
	char percent[32];
	int err;

	if (!capture_samples(m->control->options))
		return 0;
	err = recording_set__write_number(s, "sample_hz", m->control->options->sample_hz);
	err = err
		      ?: recording_writer__meta(s->writer, "sampled_by",
						probe_session__samples_by_tick(m->control->probes)
							? "tick"
							: "timer");
	if (err || m->control->options->overhead_pct <= 0)
		return err;
	(void)snprintf(percent, sizeof(percent), "%g", m->control->options->overhead_pct);
	return recording_writer__meta(s->writer, "sample_overhead_pct", percent);
}

static int write_sampling(const struct metadata *m, struct segment *s)
{
	const struct rate_range *r = &s->rates;
	int err;

	if (!capture_samples(m->control->options) || !r->time_ns)
		return 0;
	err = write_rate(s, "sample_hz_least", (double)SECOND_NS / (double)r->most_ns);
	err = err ?: write_rate(s, "sample_hz_most", (double)SECOND_NS / (double)r->least_ns);
	err = err
		      ?: write_rate(s, "sample_hz_mean",
				    r->due_nr * (double)SECOND_NS / (double)r->time_ns);
	if (err || m->control->options->overhead_pct <= 0)
		return err;
	return recording_set__write_number(s, "sample_over_ns", r->over_ns);
}

/* ---- the beginning ---- */

static const char *stacks_name(const struct metadata *m)
{
	if (!(m->control->options->stacks & GP_STACK_WANT_NATIVE))
		return "python";
	return m->control->options->stacks & GP_STACK_WANT_PYTHON ? "both" : "native";
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

static int write_budget(const struct metadata *m, struct recording_writer *w)
{
	char percent[32];

	(void)snprintf(percent, sizeof(percent), "%g", m->control->options->overhead_pct);
	return recording_writer__meta(w, "overhead_pct", percent);
}

static int write_options(struct metadata *m, struct segment *s)
{
	const struct capture_options *o = m->control->options;
	struct recording_writer *w = s->writer;
	int err;

	err = recording_writer__meta(w, "gpuprof", gpuprof_version);
	err = err
		      ?: recording_writer__meta(w, "mode",
						capture_samples(m->control->options) ? "sample"
										     : "trace");
	err = err ?: describe_sampling(m, s);
	err = err ?: write_machine(w);
	err = err ?: recording_writer__meta(w, "capture_id", m->id);
	err = err
		      ?: recording_set__write_number(s, "recording_nr",
						     m->control->recordings->begun_nr + 1ULL);
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
		err = err ?: recording_writer__meta(w, "stacks", stacks_name(m));
	for (size_t i = 0; i < m->descriptions.nr && !err; i++)
		err = recording_writer__meta(w, m->descriptions.items[i].key,
					     m->descriptions.items[i].value);
	if (o->overhead_pct > 0 && !capture_samples(m->control->options))
		err = err ?: write_budget(m, w);
	if (capture_has_gpu_windows(o))
		err = err ?: recording_writer__meta(w, "gpu_windows", "1");
	return err ?: recording_writer__meta(w, "memory", o->memory ? "1" : "0");
}

/* ---- counters ---- */

void metadata__totals(const struct metadata *m, struct totals *ret_totals)
{
	const struct process_set *processes = m->control->processes;
	const struct symbol_tables *symbols = processes->symbols;
	const struct event_counts *counts = m->control->counts;
	struct totals t = {
		.inputs_lost_nr = counts->inputs_lost_nr,
		.collector_ops_nr = counts->collector_ops_nr,
		.collector_memory_nr = counts->collector_memory_nr,
	};
	struct probe_summary summary;
	struct probe_cost cost;

	probe_session__losses(m->control->probes, t.losses);
	probe_session__summary(m->control->probes, &summary);
	probe_session__cost(m->control->probes, &cost);
	t.probe_hits = cost.hits;
	t.probe_hits_stepped = cost.hits_stepped;
	t.sampler_ns = probe_session__sampler_ns(m->control->probes);
	t.losses[GP_LOSS_PROBE] = summary.not_placed_nr;
	t.losses[GP_LOSS_RECORD] += counts->refused_nr;
	t.losses[GP_LOSS_NAMES] += counts->nameless_nr + symbols->kernels.nameless_nr;
	t.losses[GP_LOSS_OPEN_AT_START] += counts->open_at_start_nr;
	t.losses[GP_LOSS_STACK_INCOMPLETE] += symbols->stacks.incomplete_nr;
	t.losses[GP_LOSS_STACK_ROOM] += symbols->stacks.numbers_lost_nr;
	t.losses[GP_LOSS_LINES] += symbols->native_stacks.lines.left_nr;
	t.losses[GP_LOSS_UNWRITTEN] += counts->unwritten_nr;
	process_totals__losses(processes, t.losses);
	*ret_totals = t;
}

/* What has been added since; a counter that went back says nothing. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static int write_losses(const struct metadata *m, struct segment *s, const struct totals *t)
{
	int err = 0;

	for (int i = 0; i < GP_LOSS_NR && !err; i++) {
		/* Functions without a probe are without one in each recording. */
		uint64_t before = i == GP_LOSS_PROBE ? 0 : m->reported.losses[i];

		err = recording_writer__loss(s->writer, recording_loss_name(i),
					     since(t->losses[i], before));
	}
	if (!err && capture_is_by_steps(m->control->options))
		err = recording_writer__loss(s->writer, "late_steps", s->late_steps_nr);
	if (!err && m->control->options->shapes)
		err = recording_writer__loss(s->writer, "inputs",
					     since(t->inputs_lost_nr, m->reported.inputs_lost_nr));
	return err;
}

/* What was measured of the cost of probes; see FORMAT.md. */
static int write_probe_cost(const struct metadata *m, struct segment *s, const struct totals *t)
{
	struct probe_cost probes;
	int err;

	probe_session__cost(m->control->probes, &probes);
	err = recording_set__write_number(s, "probe_hits",
					  since(t->probe_hits, m->reported.probe_hits));
	err = err
		      ?: recording_set__write_number(
				 s, "probe_hits_stepped",
				 since(t->probe_hits_stepped, m->reported.probe_hits_stepped));
	if (probes.trap_ns)
		err = err ?: recording_set__write_number(s, "probe_trap_ns", probes.trap_ns);
	if (probes.trap_stepped_ns)
		err = err
			      ?: recording_set__write_number(s, "probe_trap_stepped_ns",
							     probes.trap_stepped_ns);
	err = err ?: recording_set__write_number(s, "probe_program_runs", probes.program_runs);
	if (probes.program_runs)
		err = err ?: recording_set__write_number(s, "probe_program_ns", probes.program_ns);
	if (probes.ns_per_hit)
		err = err ?: recording_set__write_number(s, "probe_ns_per_hit", probes.ns_per_hit);
	if (capture_samples(m->control->options))
		err = err
			      ?: recording_set__write_number(
					 s, "sampler_ns",
					 since(t->sampler_ns, m->reported.sampler_ns));
	return err;
}

static int write_callback_cost(const struct metadata *m, struct segment *s, const struct totals *t)
{
	struct callback_cost callbacks = process_totals__timed(m->control->processes);
	int err;

	err = recording_set__write_number(s, "callback_ops",
					  since(t->collector_ops_nr, m->reported.collector_ops_nr));
	err = err
		      ?: recording_set__write_number(
				 s, "callback_memory",
				 since(t->collector_memory_nr, m->reported.collector_memory_nr));
	err = err ?: recording_set__write_number(s, "callback_timed", callbacks.timed_nr);
	if (callbacks.timed_nr)
		err = err
			      ?: recording_set__write_number(
					 s, "callback_ns", callbacks.timed_ns / callbacks.timed_nr);
	return err;
}

/* ---- the end ---- */

static int write_gpu_unavailable(struct process_set *processes, struct segment *s)
{
	const struct process_table *table = &processes->table;
	int err;

	for (size_t i = 0; i < table->nr; i++)
		if (!table->items[i]->end)
			collector_policy_note_missing(processes, table->items[i]);
	err = gpu_unavailable__write(&processes->gpu_unavailable, s->writer);
	gpu_unavailable__poll(&processes->gpu_unavailable, table);
	return err;
}

static int write_end(struct metadata *m, struct segment *s, const struct totals *t)
{
	struct process_set *processes = m->control->processes;
	struct probe_summary probes;
	int err;

	probe_session__summary(m->control->probes, &probes);
	err = write_losses(m, s, t);
	err = err ?: write_probe_cost(m, s, t);
	err = err ?: write_callback_cost(m, s, t);
	err = err ?: cost_write(m->control, s->writer);
	err = err ?: write_gpu_unavailable(processes, s);
	err = err ?: write_sampling(m, s);
	err = err ?: recording_set__write_number(s, "probe_sites", probes.sites_nr);
	err = err
		      ?: recording_set__write_number(s, "callback_processes",
						     process_totals__callbacks_nr(processes));
	err = err ?: recording_writer__meta(s->writer, "probe_method", probes.method);
	err = err
		      ?: recording_writer__window(s->writer, s->start_ns, s->end_ns,
						  s->start_realtime_ns);
	return err ?: recording_writer__finish(s->writer);
}

/* While the capture goes on, events wait meanwhile. */
static int find_lines(struct metadata *m, struct segment *s)
{
	struct symbol_tables *symbols = m->control->processes->symbols;
	struct native_stacks *n = &symbols->native_stacks;
	uint64_t budget_ns = m->control->run->stopped ? SECOND_NS : SECOND_NS / 20;
	int err =
		n->codes ? frame_lines__find(&n->lines, n->codes, &symbols->stacks, budget_ns) : 0;

	return recording_set__note_error(m->control->recordings, s, err);
}

/* ---- the recording set's hooks ---- */

int metadata__describe(void *arg, struct segment *s)
{
	struct metadata *m = arg;
	struct process_set *processes = m->control->processes;
	const struct process_table *table = &processes->table;
	struct file_users users = process_table__file_users(table);
	uint16_t number;
	int err;

	threads__poll(&processes->threads);
	err = symbol_tables__poll(processes->symbols, &users, m->control->options);
	err = err ? err : write_options(m, s);
	for (size_t i = 0; i < table->nr && !err; i++)
		if (!table->items[i]->end)
			err = process_record__emit(table->items[i], s, &number);
	return err;
}

int metadata__write_losses(void *arg, struct segment *s)
{
	const struct metadata *m = arg;
	struct totals t;

	metadata__totals(m, &t);
	return write_losses(m, s, &t);
}

int metadata__finish(void *arg, struct segment *s)
{
	struct metadata *m = arg;

	(void)find_lines(m, s);
	metadata__totals(m, &m->ending);
	return s->broken ? 0 : write_end(m, s, &m->ending);
}

void metadata__finished(void *arg)
{
	struct metadata *m = arg;

	m->reported = m->ending;
}
