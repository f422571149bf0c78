/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Adds timelines up, part by part: the table, memory, GPUs, threads, steps and losses. Operators
 * from samples and lines of Python are parts in files of their own; the rows that all parts add to
 * are live_totals_rows.c.
 */
#include "output/summary/live_totals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "output/format/metadata.h"
#include "output/format/output.h"
#include "output/summary/live_totals_parts.h"
#include "timeline/analysis/table.h"

#define DEVICES_MAX 256

struct live_totals *live_totals__new(void)
{
	struct live_totals *y = calloc(1, sizeof(*y));

	if (!y)
		return NULL;
	y->texts = intern__new();
	if (y->texts)
		return y;
	free(y);
	return NULL;
}

void live_totals__free(struct live_totals *y)
{
	if (!y)
		return;
	for (int view = 0; view < TOTALS_VIEWS; view++) {
		vec_done(&y->rows[view]);
		hash__done(&y->places[view]);
	}
	vec_done(&y->devices);
	vec_done(&y->losses);
	hash__done(&y->held);
	intern__free(y->texts);
	free(y);
}

/* ---- the table ---- */

/* The estimate for a row where there is one, else what was recorded. */
static uint64_t whole(const struct timeline *t, const struct table_row *row, enum estimate_of of,
		      uint64_t known)
{
	double value = t->gpu_estimated ? row->estimates[of].value : NAN;

	if (!isfinite(value))
		return known;
	return value < (double)INT64_MAX ? (uint64_t)round(value) : INT64_MAX;
}

static int add_table_row(struct live_totals *y, const struct timeline *t,
			 const struct table_row *from)
{
	enum totals_view view = from->device == TABLE_CUDA ? TOTALS_KERNELS : TOTALS_OPS;
	int64_t row;

	/* Samples have the time of operators already. */
	if (view == TOTALS_OPS && y->sampled)
		return 0;
	/* An annotation's range over GPU work is no work, and [memory] is no operator. */
	if ((view == TOTALS_KERNELS && from->is_user_annotation) ||
	    (from->first_op == TL_NONE && !strcmp(from->name, "[memory]")))
		return 0;
	row = totals_row_of(y, view, from->name);
	if (row < 0)
		return (int)row;
	totals_add(y, view, row, TOTALS_CALLS, whole(t, from, ESTIMATE_CALLS, from->calls));
	totals_add(y, view, row, TOTALS_SELF_CPU_NS, from->self_cpu_ns);
	totals_add(y, view, row, TOTALS_CPU_NS, from->cpu_total_ns);
	totals_add(y, view, row, TOTALS_SELF_CUDA_NS,
		   whole(t, from, ESTIMATE_SELF_CUDA_NS, from->self_cuda_ns));
	totals_add(y, view, row, TOTALS_CUDA_NS,
		   whole(t, from, ESTIMATE_CUDA_TOTAL_NS, from->cuda_total_ns));
	return 0;
}

static int add_table(struct live_totals *y, const struct timeline *t)
{
	CLEANUP(cleanup_table) struct table *table = NULL;
	struct table_options options = {0};
	int err = table__new(t, &options, NULL, &table);

	for (size_t i = 0; !err && i < table->rows.nr; i++)
		err = add_table_row(y, t, &table->rows.items[i]);
	return err;
}

/* ---- memory ---- */

static int add_allocation(struct live_totals *y, const struct timeline *t,
			  const struct tl_memory *m)
{
	bool cuda = m->device_type == GP_DEVICE_CUDA;
	int64_t row;

	if (m->bytes <= 0 || (!cuda && m->device_type != GP_DEVICE_CPU))
		return 0;
	row = totals_row_of(y, TOTALS_MEMORY,
			    m->op == TL_NONE ? "[no operator]" : t->ops.items[m->op].name);
	if (row < 0)
		return (int)row;
	totals_add(y, TOTALS_MEMORY, row, TOTALS_ALLOCATIONS, 1);
	totals_add(y, TOTALS_MEMORY, row, cuda ? TOTALS_CUDA_BYTES : TOTALS_CPU_BYTES,
		   (uint64_t)m->bytes);
	if (m->partner == TL_NONE)
		totals_add(y, TOTALS_MEMORY, row,
			   cuda ? TOTALS_CUDA_KEPT_BYTES : TOTALS_CPU_KEPT_BYTES,
			   (uint64_t)m->bytes);
	return 0;
}

static struct totals_device *device_of(struct live_totals *y, uint32_t number)
{
	size_t at = 0;

	while (at < y->devices.nr && y->devices.items[at].device < number)
		at++;
	if (at < y->devices.nr && y->devices.items[at].device == number)
		return &y->devices.items[at];
	if (y->devices.nr >= DEVICES_MAX || vec_reserve(&y->devices, 1))
		return NULL;
	memmove(&y->devices.items[at + 1], &y->devices.items[at],
		(y->devices.nr++ - at) * sizeof(y->devices.items[0]));
	y->devices.items[at] = (struct totals_device){.device = number};
	return &y->devices.items[at];
}

/* Process, device and which of the two numbers. */
static uint64_t held_key(int64_t pid, uint32_t device, bool reserved)
{
	return (uint64_t)pid << 17 | (uint64_t)(device & 0xffff) << 1 | reserved;
}

static void sum_held(struct live_totals *y)
{
	for (size_t i = 0; i < y->devices.nr; i++)
		y->devices.items[i].allocated_bytes = y->devices.items[i].reserved_bytes = 0;
	for (size_t i = 0; i < y->held.cap; i++) {
		uint64_t key = y->held.slots[i].key;
		struct totals_device *d =
			y->held.used[i] ? device_of(y, (uint32_t)(key >> 1 & 0xffff)) : NULL;

		if (d && key & 1)
			d->reserved_bytes += y->held.slots[i].value;
		else if (d)
			d->allocated_bytes += y->held.slots[i].value;
	}
}

void live_totals__gone(struct live_totals *y, int64_t pid)
{
	for (size_t i = 0; i < y->held.cap; i++)
		if (y->held.used[i] && (int64_t)(y->held.slots[i].key >> 17) == pid)
			y->held.slots[i].value = 0;
	sum_held(y);
}

static int add_memory(struct live_totals *y, const struct timeline *t)
{
	int err = 0;

	for (size_t i = 0; i < t->memory.nr && !err; i++) {
		const struct tl_memory *m = &t->memory.items[i];
		int64_t pid = t->processes.items[t->threads.items[m->thread].process].row_pid;

		err = add_allocation(y, t, m);
		if (m->device_type != GP_DEVICE_CUDA || m->device_index < 0 || !m->reserved_bytes)
			continue;
		err = err
			      ?: hash__set(&y->held,
					   held_key(pid, (uint32_t)m->device_index, false),
					   m->allocated_bytes);
		err = err
			      ?: hash__set(&y->held, held_key(pid, (uint32_t)m->device_index, true),
					   m->reserved_bytes);
	}
	if (!err)
		sum_held(y);
	return err;
}

/* ---- GPUs ---- */

/* The time in which at least one piece of work of any process ran. Work is sorted by start. */
static int add_busy(struct live_totals *y, const struct timeline *t)
{
	CLEANUP(hash__done) struct hash until = {0};
	int err = 0;

	for (size_t i = 0; i < t->gpu.work.nr && !err; i++) {
		const struct tl_gpu *g = &t->gpu.work.items[i];
		struct totals_device *d = tl_gpu_is_work(g) ? device_of(y, g->device) : NULL;
		uint64_t *end, from = g->start_ns;

		if (!d)
			continue;
		end = hash__find(&until, g->device);
		if (end && *end > from)
			from = *end;
		if (g->end_ns <= from)
			continue;
		for (int span = 0; span < TOTALS_SPANS; span++)
			d->busy_ns[span] += (uint64_t)fmin((double)INT64_MAX,
							   timeline__gpu_stands_for(t, g) *
								   (double)(g->end_ns - from));
		err = hash__set(&until, g->device, g->end_ns);
	}
	return err;
}

static void describe_devices(struct live_totals *y, const struct timeline *t)
{
	for (size_t i = 0; i < t->gpu.described.nr; i++) {
		const struct tl_device *from = &t->gpu.described.items[i];
		struct totals_device *d = device_of(y, from->reported.device);

		if (!d)
			continue;
		(void)line_into(d->name, sizeof(d->name), from->name);
		d->total_bytes = from->reported.memory_bytes;
	}
}

/* ---- threads and steps ---- */

static int add_threads(struct live_totals *y, const struct timeline *t)
{
	CLEANUP(cleanup_free) int64_t *rows = malloc((t->threads.nr + 1) * sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < t->threads.nr; i++) {
		const struct tl_thread *thread = &t->threads.items[i];

		rows[i] = totals_thread_row(y, t->processes.items[thread->process].row_pid,
					    thread->tid, thread->comm);
		if (rows[i] < 0)
			return (int)rows[i];
	}
	for (size_t i = 0; i < t->ops.nr; i++) {
		const struct tl_op *op = &t->ops.items[i];

		if (op->flags & GP_OP_ASYNC || op->step)
			continue;
		totals_add(y, TOTALS_THREADS, rows[op->thread], TOTALS_CALLS, 1);
		if (op->parent == TL_NONE || t->ops.items[op->parent].step)
			totals_add(y, TOTALS_THREADS, rows[op->thread], TOTALS_CPU_NS,
				   op->end_ns - op->start_ns);
	}
	totals_add_sampled_threads(y, t, rows);
	return 0;
}

static void add_steps(struct live_totals *y, const struct timeline *t)
{
	const struct tl_step_series *most = NULL;

	for (size_t i = 0; i < t->step_series.nr; i++)
		if (!most || t->step_series.items[i].nr > most->nr)
			most = &t->step_series.items[i];
	for (uint32_t i = 0; most && i < most->nr; i++) {
		const struct tl_step *step = &t->steps.items[most->first + i];
		uint64_t ns = step->end_ns - step->start_ns;

		for (int span = 0; span < TOTALS_SPANS; span++) {
			struct totals_steps *s = &y->steps[span];

			s->nr++;
			s->sum_ns += ns;
			s->max_ns = ns > s->max_ns ? ns : s->max_ns;
		}
	}
}

static int add_losses(struct live_totals *y, const struct timeline *t)
{
	for (size_t i = 0; i < t->losses.nr; i++) {
		const struct tl_loss *from = &t->losses.items[i];
		const char *name = totals_keep(y, from->name);
		size_t at = 0;

		while (at < y->losses.nr && y->losses.items[at].name != name)
			at++;
		if (!name ||
		    (at == y->losses.nr && vec_push(&y->losses, ((struct tl_loss){.name = name}))))
			return -ENOMEM;
		y->losses.items[at].count += from->count;
	}
	return 0;
}

uint64_t live_totals__lost(const struct live_totals *y)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < y->losses.nr; i++)
		if (output_loss_is_events(y->losses.items[i].name))
			nr += y->losses.items[i].count;
	return nr;
}

/* ---- all ---- */

static void clear(struct live_totals *y, enum totals_span span)
{
	for (int view = 0; view < TOTALS_VIEWS; view++)
		for (size_t i = 0; i < y->rows[view].nr; i++)
			memset(y->rows[view].items[i].values[span], 0,
			       sizeof(y->rows[view].items[i].values[span]));
	for (size_t i = 0; i < y->devices.nr; i++)
		y->devices.items[i].busy_ns[span] = 0;
	y->steps[span] = (struct totals_steps){0};
	y->wall_ns[span] = y->gpu_wall_ns[span] = 0;
	y->samples_nr[span] = 0;
	y->cost_ns[span] = 0;
	y->unknown_cost[span] = y->gpu_estimated[span] = false;
}

void live_totals__reset(struct live_totals *y)
{
	for (int span = 0; span < TOTALS_SPANS; span++)
		clear(y, span);
}

int live_totals__add(struct live_totals *y, const struct timeline *t)
{
	uint64_t wall_ns = t->end_ns - t->start_ns - t->paused_ns;
	double cost_ns = metadata_inside_ns(t);
	int err;

	clear(y, TOTALS_LAST);
	for (int span = 0; span < TOTALS_SPANS; span++) {
		y->wall_ns[span] += wall_ns;
		if (!t->gpu_unseen && !t->gpu_partial)
			y->gpu_wall_ns[span] +=
				t->gpu_in_windows ? timeline__wanted_ns(t) : wall_ns;
		y->cost_ns[span] += isfinite(cost_ns) ? cost_ns : 0;
		y->unknown_cost[span] |= !isfinite(cost_ns);
		y->gpu_estimated[span] |= t->gpu_estimated;
	}
	y->has_gpu |= t->gpu.any;
	y->sampled |= t->sampled;
	err = add_table(y, t);
	err = err ?: totals_add_sampled_ops(y, t);
	err = err ?: totals_add_lines(y, t);
	err = err ?: add_busy(y, t);
	err = err ?: add_memory(y, t);
	err = err ?: add_threads(y, t);
	err = err ?: add_losses(y, t);
	add_steps(y, t);
	describe_devices(y, t);
	return err;
}

int live_totals__ran(struct live_totals *y, int64_t pid, uint32_t tid, const char *comm,
		     uint64_t ns)
{
	int64_t row = totals_thread_row(y, pid, tid, comm);

	if (row < 0)
		return (int)row;
	totals_add(y, TOTALS_THREADS, row, TOTALS_RAN_NS, ns);
	return 0;
}
