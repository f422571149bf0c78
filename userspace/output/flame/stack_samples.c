/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See stack_samples.h. The order is ops, API calls, GPU work, allocations, samples.
 */
#include "output/flame/stack_samples.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "output/format/output.h"
#include "output/memory/memory_usage.h"

/* By enum stack_metric. */
const char *const output_stack_metrics[] = {"self_cpu_time_total",
					    "self_cuda_time_total",
					    "calls",
					    "allocations",
					    "allocated_bytes",
					    "peak_bytes",
					    "samples",
					    "off_cpu_time_total",
					    NULL};

const char *stack_metric_name(enum stack_metric metric)
{
	return output_stack_metrics[metric];
}

int stack_metric_of(const char *name)
{
	if (!name)
		return STACK_CPU;
	for (int i = 0; i < STACK_METRIC_NR; i++)
		if (!strcmp(name, output_stack_metrics[i]))
			return i;
	return -1;
}

bool stack_metric_captured(const struct timeline *t, enum stack_metric metric)
{
	if (metric == STACK_CUDA)
		return t->gpu.any;
	if (metric == STACK_SAMPLES || metric == STACK_OFF)
		return t->sampled;
	if (metric == STACK_CALLS)
		return !t->sampled;
	return metric < STACK_ALLOCATIONS || t->memory.nr;
}

const char *stack_sample_op(const struct stack_sample *s)
{
	if (s->op)
		return s->op;
	return s->op_unknown ? "[not known]" : "[no operator]";
}

void stack_sample_device(const struct stack_sample *s, char *to, size_t bytes)
{
	char name[MEMORY_NAME_BYTES];

	memory_device_name(s->device_type, s->device_index, name);
	(void)snprintf(to, bytes, "%s", name);
}

struct walk {
	const struct timeline *t;
	bool by_work;
	int (*fn)(const struct stack_sample *s, void *arg);
	void *arg;
};

/* Of something on a thread, in an op or none. */
static struct stack_sample sample_at(const struct walk *w, uint32_t own_stack_id, uint32_t op,
				     uint32_t thread)
{
	return (struct stack_sample){
		.stack = timeline__stack_inside(w->t, own_stack_id, op),
		.op = op == TL_NONE ? NULL : w->t->ops.items[op].name,
		.process = thread == TL_NONE ? TL_NONE : w->t->threads.items[thread].process,
		.thread = thread,
		.device_type = -1,
		.device_index = -1,
	};
}

/* ---- ops ---- */

struct op_sums {
	uint64_t cpu_ns, cuda_ns;
};

static int one_op(const struct walk *w, uint32_t i, const struct op_sums *sums)
{
	const struct tl_op *op = &w->t->ops.items[i];
	struct stack_sample s = sample_at(w, op->stack_id, i, op->thread);

	s.values[STACK_CPU] = sums->cpu_ns;
	s.values[STACK_CUDA] = w->by_work ? 0 : sums->cuda_ns;
	s.values[STACK_CALLS] = 1;
	return w->fn(&s, w->arg);
}

static void add_to_heir(const struct timeline *t, uint32_t i, const uint32_t *heirs,
			struct op_sums *sums)
{
	const struct tl_op *op = &t->ops.items[i];

	if (heirs[i] == TL_NONE || op->flags & GP_OP_ASYNC)
		return;
	sums[heirs[i]].cpu_ns += op->self_ns;
	sums[heirs[i]].cuda_ns += timeline__op_sums(t, i)->self_cuda_ns;
}

static int each_op(const struct walk *w)
{
	const struct timeline *t = w->t;
	CLEANUP(cleanup_free) uint32_t *heirs = malloc((t->ops.nr + 1) * sizeof(*heirs));
	CLEANUP(cleanup_free) struct op_sums *sums = calloc(t->ops.nr + 1, sizeof(*sums));
	int err = 0;

	if (!heirs || !sums)
		return -ENOMEM;
	timeline__heirs(t, heirs);
	for (uint32_t i = 0; i < t->ops.nr; i++)
		add_to_heir(t, i, heirs, sums);
	for (uint32_t i = 0; i < t->ops.nr && !err; i++)
		if (heirs[i] == i)
			err = one_op(w, i, &sums[i]);
	return err;
}

/* ---- calls and GPU work ---- */

static int each_call(const struct walk *w)
{
	int err = 0;

	/* The time of calls is in the samples. */
	if (w->t->sampled)
		return 0;
	for (size_t i = 0; i < w->t->gpu.api.nr && !err; i++) {
		const struct tl_api *api = &w->t->gpu.api.items[i];
		struct stack_sample s = sample_at(w, api->stack_id, api->op, api->thread);

		s.leaf = api->name;
		s.values[STACK_CPU] = api->self_ns;
		err = w->fn(&s, w->arg);
	}
	return err;
}

static int each_work(const struct walk *w)
{
	const struct timeline *t = w->t;
	int err = 0;

	for (size_t i = 0; i < t->gpu.work.nr && !err; i++) {
		const struct tl_gpu *g = &t->gpu.work.items[i];
		const struct tl_api *api = g->api == TL_NONE ? NULL : &t->gpu.api.items[g->api];
		struct stack_sample s;

		if (!tl_gpu_is_work(g) || (!w->by_work && g->op != TL_NONE))
			continue;
		s = sample_at(w, api ? api->stack_id : 0, g->op, api ? api->thread : TL_NONE);
		s.process = g->process;
		s.leaf = g->name;
		s.is_gpu = true;
		s.device_type = GP_DEVICE_CUDA;
		s.device_index = (int32_t)g->device;
		s.values[STACK_CUDA] = (uint64_t)fmin((double)INT64_MAX,
						      timeline__gpu_stands_for(t, g) *
							      (double)(g->end_ns - g->start_ns));
		err = w->fn(&s, w->arg);
	}
	return err;
}

/* ---- allocations ---- */

static int one_allocation(const struct walk *w, const struct tl_memory *m, bool held)
{
	struct stack_sample s = sample_at(w, m->stack_id, m->op, m->thread);

	s.device_type = m->device_type;
	s.device_index = m->device_index;
	s.values[STACK_ALLOCATIONS] = 1;
	s.values[STACK_ALLOCATED] = (uint64_t)m->bytes;
	s.values[STACK_PEAK] = held ? (uint64_t)m->bytes : 0;
	return w->fn(&s, w->arg);
}

static int each_allocation(const struct walk *w)
{
	const struct timeline *t = w->t;
	CLEANUP(cleanup_free) bool *held = calloc(t->memory.nr + 1, sizeof(*held));
	int err = held ? memory_held_at_peak(t, held) : -ENOMEM;

	for (size_t i = 0; i < t->memory.nr && !err; i++)
		if (t->memory.items[i].bytes > 0)
			err = one_allocation(w, &t->memory.items[i], held[i]);
	return err;
}

/* ---- samples ---- */

static int each_sample(const struct walk *w)
{
	const struct timeline *t = w->t;
	int err = 0;

	for (size_t i = 0; i < t->samples.nr && !err; i++) {
		const struct tl_sample *x = &t->samples.items[i];
		const struct tl_sampled_stack *stack = &t->sampled_stacks.items[x->stack];
		struct stack_sample s = sample_at(w, 0, TL_NONE, x->thread);

		s.stack = (struct tl_stack){.id = stack->id,
					    .flags = stack->flags,
					    .nr = stack->nr,
					    .frames = stack->frames};
		s.op = stack->ops_nr ? t->stack_ops.items[stack->ops_at].name : NULL;
		s.op_unknown = !s.op && (!stack->nr || tl_stack_is_cut(stack->flags));
		if (x->flags & GP_SAMPLE_RUNNING) {
			s.values[STACK_CPU] = x->weight_ns;
			s.values[STACK_SAMPLES] = x->nr;
		} else {
			s.leaf = timeline__activity(t, x);
			s.values[STACK_OFF] = x->weight_ns;
		}
		err = w->fn(&s, w->arg);
	}
	return err;
}

int stack_samples_each(const struct timeline *t, bool by_work,
		       int (*fn)(const struct stack_sample *s, void *arg), void *arg)
{
	const struct walk w = {.t = t, .by_work = by_work, .fn = fn, .arg = arg};
	int err = each_op(&w);

	if (!err)
		err = each_call(&w);
	if (!err)
		err = each_work(&w);
	if (!err)
		err = each_allocation(&w);
	return err ? err : each_sample(&w);
}
