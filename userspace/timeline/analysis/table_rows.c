/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sums ops by name. An op that torch.profiler removes from its tree has no row: its own time and
 * memory belong to the op above it.
 */
#include "timeline/analysis/table_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "common/saturating.h"
#include "common/step_annotations.h"
#include "timeline/analysis/gpu_ranges.h"
#include "timeline/analysis/table_sort.h"

struct grouping {
	const struct timeline *t;
	const struct table_options *options;
	struct table *table;
	uint32_t *heir;	       /* per op: itself, its replacement, or TL_NONE */
	struct hash head_of;   /* name -> first row of this name */
	VEC(uint32_t) next;    /* per row: another row of the same name, or TL_NONE */
	VEC(struct span) when; /* per row: its first event */
	struct estimator estimator;
};

static void grouping__done(struct grouping *g)
{
	free(g->heir);
	hash__done(&g->head_of);
	vec_done(&g->next);
	vec_done(&g->when);
	estimator__done(&g->estimator);
}

static const char *row_name(const char *name)
{
	return step_marker_by_prefix(name) == STEP_MARKER_PROFILER ? STEP_PROFILER_ANY : name;
}

static int add_row(struct grouping *g, uint64_t key, uint64_t head, const struct table_row *row,
		   uint32_t *ret_row)
{
	uint32_t index = (uint32_t)g->table->rows.nr;

	if (vec_push(&g->table->rows, *row) || vec_push(&g->next, (uint32_t)head) ||
	    vec_push(&g->when, ((struct span){UINT64_MAX, 0, index})) ||
	    hash__set(&g->head_of, key, index))
		return -ENOMEM;
	*ret_row = index;
	return 0;
}

/* Shapes are interned with the timeline, except for the text of ops without any. */
static const char *shapes_of(const struct grouping *g, const struct tl_op *op)
{
	static const char none[] = "[]";

	if (!g->options->by_shape)
		return NULL;
	return !op || op->inputs == TL_NONE ? none : g->t->inputs.items[op->inputs].shapes;
}

static int64_t part_of(const struct grouping *g, uint32_t process)
{
	const struct tl_process *p = &g->t->processes.items[process];

	switch (g->options->parts) {
	case TABLE_BY_RANK:
		return p->rank;
	case TABLE_BY_PROCESS:
		return p->row_pid;
	default:
		return -1;
	}
}

/* Whether the table includes this process. */
static bool is_for(const struct grouping *g, uint32_t process)
{
	return tl_part_has(&g->options->only, &g->t->processes.items[process]);
}

static uint64_t row_key(const struct grouping *g, const struct table_row *row)
{
	uint64_t key = (uintptr_t)row->name + (uint64_t)row->part + 1;

	if (row->shapes)
		key = hash_mix(key ^ (uintptr_t)row->shapes);
	for (size_t i = 0; i < row->stack_nr; i++) {
		struct recording_frame f = recording__frame(g->t->recording, row->stack[i]);

		key = hash_mix(key ^ (uintptr_t)f.function) + ((uintptr_t)f.file ^ f.line);
	}
	return key;
}

/* Whether two frames are one line of one function, at whatever instruction. */
static bool same_frame(const struct recording_frame *a, const struct recording_frame *b)
{
	if (a->kind != b->kind || a->inlined != b->inlined || a->line != b->line ||
	    strcmp(a->function, b->function) != 0 || strcmp(a->file, b->file) != 0 ||
	    strcmp(a->module, b->module) != 0)
		return false;
	return *a->function || a->address == b->address;
}

static bool same_stack(const struct grouping *g, const struct table_row *a,
		       const struct table_row *b)
{
	if (a->stack_nr != b->stack_nr)
		return false;
	for (size_t i = 0; i < a->stack_nr; i++) {
		struct recording_frame f = recording__frame(g->t->recording, a->stack[i]);
		struct recording_frame h = recording__frame(g->t->recording, b->stack[i]);

		if (!same_frame(&f, &h))
			return false;
	}
	return true;
}

/* Finds or makes the row with this key. Names are interned, so pointers are compared. */
static int find_row(struct grouping *g, const struct table_row *like, uint32_t *ret_row)
{
	uint64_t key = row_key(g, like);
	const uint64_t *head = hash__find(&g->head_of, key);

	for (uint32_t i = head ? (uint32_t)*head : TL_NONE; i != TL_NONE; i = g->next.items[i]) {
		const struct table_row *r = &g->table->rows.items[i];

		if (r->name == like->name && r->overload == like->overload &&
		    r->shapes == like->shapes && r->part == like->part &&
		    r->device == like->device &&
		    r->is_user_annotation == like->is_user_annotation &&
		    r->is_forward_stack == like->is_forward_stack && same_stack(g, r, like)) {
			*ret_row = i;
			return 0;
		}
	}
	return add_row(g, key, head ? *head : TL_NONE, like, ret_row);
}

/* Finds or makes the row of something that is not an op. */
static int find_other(struct grouping *g, const char *name, enum table_device device,
		      uint32_t process, uint32_t *ret_row)
{
	struct table_row key = {
		.name = name,
		.overload = g->options->by_overload ? "" : NULL,
		.shapes = shapes_of(g, NULL),
		.part = part_of(g, process),
		.device = device,
		.first_op = TL_NONE,
	};

	return find_row(g, &key, ret_row);
}

static int row_of_op(struct grouping *g, uint32_t index, uint32_t *ret_row)
{
	const struct tl_op *op = &g->t->ops.items[index];
	struct table_row key = {
		.name = row_name(op->name),
		.overload = g->options->by_overload ? op->overload : NULL,
		.shapes = shapes_of(g, op),
		.part = part_of(g, g->t->threads.items[op->thread].process),
		.is_user_annotation = op->scope == GP_SCOPE_USER,
		.first_op = TL_NONE,
	};

	if (g->options->by_stack) {
		struct tl_stack s = timeline__stack_inside(g->t, op->stack_id, index);

		key.stack = s.frames;
		key.stack_nr = s.nr < g->options->by_stack ? s.nr : g->options->by_stack;
		key.is_forward_stack = s.is_forward;
	}
	return find_row(g, &key, ret_row);
}

/* Remembers the row's first event. True if this is the first so far. */
static bool is_first(struct grouping *g, uint32_t row, uint64_t start_ns, uint64_t end_ns)
{
	struct span *first = &g->when.items[row];

	if (first->start_ns < start_ns || (first->start_ns == start_ns && first->end_ns >= end_ns))
		return false;
	first->start_ns = start_ns;
	first->end_ns = end_ns;
	return true;
}

static bool is_async(const struct tl_op *op)
{
	return op->flags & GP_OP_ASYNC;
}

static void add_self(struct table_row *row, const struct tl_op_sums *sums, int64_t self_ns)
{
	row->self_cpu_ns += (uint64_t)self_ns;
	row->self_cuda_ns += sums->self_cuda_ns;
	row->self_cpu_bytes = table_plus(row->self_cpu_bytes, sums->self_cpu_bytes);
	row->self_cuda_bytes = table_plus(row->self_cuda_bytes, sums->self_cuda_bytes);
}

/* Rows of the estimator: the sum over all rows of the table, then each of them. */
#define ALL_ROWS	  0
#define ESTIMATE_ROW(row) ((row) + 1)

static int add_to_estimates(struct grouping *g, uint32_t row, uint64_t start_ns,
			    const double values[ESTIMATES_NR])
{
	int err;

	if (!g->table->has_estimates)
		return 0;
	err = estimator__add(&g->estimator, ESTIMATE_ROW(row), start_ns, values);
	return err ? err : estimator__add(&g->estimator, ALL_ROWS, start_ns, values);
}

static int estimate_op(struct grouping *g, uint32_t row, uint32_t index, bool is_heir)
{
	const struct tl_op *op = &g->t->ops.items[index];
	const struct tl_op_sums *sums = timeline__op_sums(g->t, index);
	const double values[ESTIMATES_NR] = {
		[ESTIMATE_CALLS] = is_heir,
		[ESTIMATE_SELF_CPU_NS] = is_async(op) ? 0 : (double)op->self_ns,
		[ESTIMATE_CPU_TOTAL_NS] = is_heir ? (double)(op->end_ns - op->start_ns) : 0,
		[ESTIMATE_SELF_CUDA_NS] = is_async(op) ? 0 : (double)sums->self_cuda_ns,
		[ESTIMATE_CUDA_TOTAL_NS] = is_heir && !is_async(op) ? (double)sums->cuda_ns : 0,
	};

	return add_to_estimates(g, row, op->start_ns, values);
}

static int add_op(struct grouping *g, uint32_t index)
{
	const struct tl_op *op = &g->t->ops.items[index];
	const struct tl_op_sums *sums = timeline__op_sums(g->t, index);
	uint32_t at, heir = g->heir[index];
	struct table_row *row;
	int err;

	if (heir == TL_NONE || !is_for(g, g->t->threads.items[op->thread].process))
		return 0;
	err = row_of_op(g, heir, &at);
	err = err ? err : estimate_op(g, at, index, heir == index);
	if (err)
		return err;
	row = &g->table->rows.items[at];
	if (!is_async(op))
		add_self(row, sums, compensation__self_ns(&g->table->compensation, g->t, index));
	if (heir != index)
		return 0;
	if (is_first(g, at, op->start_ns, op->end_ns)) {
		row->first_op = index;
		row->has_parent = op->parent != TL_NONE && g->heir[op->parent] != TL_NONE;
		row->is_async = is_async(op);
	}
	row->calls++;
	row->flops = add_saturating(row->flops, sums->flops);
	row->all_flops = add_saturating(row->all_flops, sums->all_flops);
	row->bounded_calls += (op->flags & GP_OP_EXCEPTION) != 0;
	row->cpu_total_ns += (uint64_t)compensation__total_ns(&g->table->compensation, g->t, index);
	row->cuda_total_ns += is_async(op) ? 0 : sums->cuda_ns;
	row->cpu_bytes = table_plus(row->cpu_bytes, sums->cpu_bytes);
	row->cuda_bytes = table_plus(row->cuda_bytes, sums->cuda_bytes);
	return 0;
}

static int add_ops(struct grouping *g)
{
	int err = 0;

	timeline__heirs(g->t, g->heir);
	for (uint32_t i = 0; i < g->t->ops.nr && !err; i++)
		err = add_op(g, i);
	return err;
}

static int add_memory(struct grouping *g, const struct tl_memory *m, const char *name)
{
	uint32_t at, process = g->t->threads.items[m->thread].process;
	struct table_row *row;
	int err;

	if (!is_for(g, process))
		return 0;
	err = find_other(g, name, TABLE_CPU, process, &at);
	if (err)
		return err;
	row = &g->table->rows.items[at];
	(void)is_first(g, at, m->time_ns, m->time_ns);
	row->calls++;
	if (m->device_type == GP_DEVICE_CPU) {
		row->cpu_bytes = table_plus(row->cpu_bytes, m->bytes);
		row->self_cpu_bytes = row->cpu_bytes;
	} else if (m->device_type == GP_DEVICE_CUDA) {
		row->cuda_bytes = table_plus(row->cuda_bytes, m->bytes);
		row->self_cuda_bytes = row->cuda_bytes;
	}
	return 0;
}

/* Adds rows for memory that belongs to no listed op. */
static int add_memories(struct grouping *g)
{
	int err = 0;

	for (size_t i = 0; i < g->t->memory.nr && !err; i++) {
		const struct tl_memory *m = &g->t->memory.items[i];

		if (tl_memory_is_pytorch(m) && (m->op == TL_NONE || g->heir[m->op] == TL_NONE))
			err = add_memory(g, m, "[memory]");
	}
	for (size_t i = 0; i < g->t->out_of_memory.nr && !err; i++)
		err = add_memory(g, &g->t->out_of_memory.items[i], "[OutOfMemory]");
	return err;
}

/* Adds API calls to the rows of ops. */
static int add_call(struct grouping *g, const struct tl_api *api)
{
	uint32_t at, process = g->t->threads.items[api->thread].process;
	struct table_row *row;
	int err;

	/* With CUPTI in windows a call may lie at the edge of one. */
	if (!is_for(g, process) ||
	    (g->t->gpu_in_windows && timeline__window_at(g->t, api->start_ns) == TL_NONE))
		return 0;
	err = find_other(g, api->name, TABLE_CPU, process, &at);
	if (err)
		return err;
	row = &g->table->rows.items[at];
	if (is_first(g, at, api->start_ns, api->end_ns))
		row->has_parent = api->parent != TL_NONE ||
				  (api->op != TL_NONE && g->heir[api->op] != TL_NONE);
	row->calls++;
	row->self_cpu_ns += api->self_ns;
	row->cpu_total_ns += api->end_ns - api->start_ns;
	return add_to_estimates(
		g, at, api->start_ns,
		(const double[ESTIMATES_NR]){[ESTIMATE_CALLS] = 1,
					     [ESTIMATE_SELF_CPU_NS] = (double)api->self_ns,
					     [ESTIMATE_CPU_TOTAL_NS] =
						     (double)(api->end_ns - api->start_ns)});
}

/* A synchronisation is not GPU work: it has no row. */
static int add_work(struct grouping *g, const struct tl_gpu *work)
{
	struct table_row *row;
	uint32_t at;
	int err;

	if (!is_for(g, work->process))
		return 0;
	err = find_other(g, work->name, TABLE_CUDA, work->process, &at);
	if (err)
		return err;
	row = &g->table->rows.items[at];
	(void)is_first(g, at, work->start_ns, work->end_ns);
	row->calls++;
	row->self_cuda_ns += work->end_ns - work->start_ns;
	row->cuda_total_ns = row->self_cuda_ns;
	return add_to_estimates(
		g, at, timeline__asked_ns(g->t, work),
		(const double[ESTIMATES_NR]){
			[ESTIMATE_CALLS] = 1,
			[ESTIMATE_SELF_CUDA_NS] = (double)(work->end_ns - work->start_ns),
			[ESTIMATE_CUDA_TOTAL_NS] = (double)(work->end_ns - work->start_ns)});
}

static int add_range(struct grouping *g, const struct gpu_range *range)
{
	uint64_t ns = range->end_ns - range->start_ns;
	struct table_row key = {
		.name = row_name(g->t->ops.items[range->op].name),
		.overload = g->options->by_overload ? "" : NULL,
		.shapes = shapes_of(g, NULL),
		.part = part_of(g, range->process),
		.device = TABLE_CUDA,
		.is_user_annotation = true,
		.first_op = TL_NONE,
	};
	uint32_t at;
	int err;

	if (!is_for(g, range->process))
		return 0;
	err = find_row(g, &key, &at);
	if (err)
		return err;
	(void)is_first(g, at, range->start_ns, range->end_ns);
	g->table->rows.items[at].calls++;
	g->table->rows.items[at].self_cuda_ns += ns;
	g->table->rows.items[at].cuda_total_ns += ns;
	return add_to_estimates(
		g, at, g->t->ops.items[range->op].start_ns,
		(const double[ESTIMATES_NR]){[ESTIMATE_CALLS] = 1,
					     [ESTIMATE_SELF_CUDA_NS] = (double)ns,
					     [ESTIMATE_CUDA_TOTAL_NS] = (double)ns});
}

static int add_ranges(struct grouping *g)
{
	struct gpu_ranges ranges;
	int err = gpu_ranges__find(g->t, false, &ranges);

	for (size_t i = 0; i < ranges.items.nr && !err; i++)
		err = add_range(g, &ranges.items.items[i]);
	gpu_ranges__done(&ranges);
	return err;
}

static int add_gpu(struct grouping *g)
{
	const struct tl_gpus *gpu = &g->t->gpu;
	int err = 0;

	for (size_t i = 0; i < gpu->api.nr && !err; i++)
		err = add_call(g, &gpu->api.items[i]);
	for (size_t i = 0; i < gpu->work.nr && !err; i++)
		if (tl_gpu_is_work(&gpu->work.items[i]))
			err = add_work(g, &gpu->work.items[i]);
	return err ? err : add_ranges(g);
}

/* ---- between operators ---- */

static int add_gap(struct grouping *g, const struct tl_gap *gap)
{
	uint32_t process = g->t->threads.items[gap->thread].process;
	struct table_row key = {
		.name = "[between operators]",
		.part = part_of(g, process),
		.stack = gap->frames,
		.stack_nr = 2,
		.first_op = TL_NONE,
	};
	struct table_row *row;
	uint32_t at;
	int err;

	if (!is_for(g, process))
		return 0;
	err = find_row(g, &key, &at);
	if (err)
		return err;
	row = &g->table->rows.items[at];
	row->calls++;
	row->self_cpu_ns += gap->end_ns - gap->start_ns;
	row->cpu_total_ns = row->self_cpu_ns;
	return 0;
}

static int add_gaps(struct grouping *g)
{
	int err = op_gaps_find(g->t, &g->table->gaps);

	for (size_t i = 0; i < g->table->gaps.nr && !err; i++)
		err = add_gap(g, &g->table->gaps.items[i]);
	return err;
}

static int take_estimates(struct grouping *g)
{
	struct estimate(*rows)[ESTIMATES_NR];
	int err;

	if (!g->table->has_estimates)
		return 0;
	err = estimator__finish(&g->estimator, ESTIMATE_ROW((uint32_t)g->table->rows.nr), &rows);
	if (err)
		return err;
	g->table->windows.self_cpu_total_ns = rows[ALL_ROWS][ESTIMATE_SELF_CPU_NS];
	for (uint32_t i = 0; i < g->table->rows.nr; i++)
		memcpy(g->table->rows.items[i].estimates, rows[ESTIMATE_ROW(i)], sizeof(*rows));
	free(rows);
	return 0;
}

static int fill(struct grouping *g)
{
	int err;

	if (g->options->between)
		return add_gaps(g);
	g->heir = malloc((g->t->ops.nr + 1) * sizeof(*g->heir));
	if (!g->heir)
		return -ENOMEM;
	err = add_ops(g);
	err = err ? err : add_memories(g);
	err = err ? err : add_gpu(g);
	err = err ? err : take_estimates(g);
	return err ? err : table_sort_by_time(g->table, g->when.items);
}

int table_add_rows(const struct timeline *t, const struct table_options *options,
		   struct table *table)
{
	CLEANUP(grouping__done)
	struct grouping g = {.t = t, .options = options, .table = table, .estimator = {.t = t}};

	return fill(&g);
}
