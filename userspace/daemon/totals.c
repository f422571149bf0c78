/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Adds recordings up.
 */
#include "daemon/totals.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "common/clock.h"
#include "common/saturating.h"
#include "common/step_annotations.h"
#include "output/flame/stack_samples.h"
#include "output/memory/memory_usage.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

#define MS_NS	       1000000ULL
#define GONE_NS	       (180 * SECOND_NS) /* how long an ended process keeps its series */
#define STALE_PARTS_NR 60		 /* an operator not seen in so many may lose its series */

const uint64_t totals_bounds_ns[TOTALS_BUCKETS] = {
	1 * MS_NS,	   5 * MS_NS / 2, 5 * MS_NS,	  10 * MS_NS,	  25 * MS_NS,
	50 * MS_NS,	   100 * MS_NS,	  250 * MS_NS,	  500 * MS_NS,	  1 * SECOND_NS,
	5 * SECOND_NS / 2, 5 * SECOND_NS, 10 * SECOND_NS, 60 * SECOND_NS, UINT64_MAX};

/* What one operator did in one recording. */
struct part_op {
	uint32_t process; /* of the timeline */
	const char *name; /* the timeline's */
	uint64_t calls, cpu_ns, cuda_ns;
	uint64_t samples_nr, estimated_ns, off_ns;
};

struct adding {
	struct totals *t;
	const struct timeline *tl;
	struct total_process **processes; /* by the timeline's numbers; NULL: not counted */
	struct hash row_of;
	VEC(struct part_op) rows;
};

static void adding__done(struct adding *a)
{
	free(a->processes);
	hash__done(&a->row_of);
	vec_done(&a->rows);
}

/* ---- processes ---- */

static void free_process(struct total_process *p)
{
	for (size_t i = 0; i < p->ops.nr; i++)
		free(p->ops.items[i].name);
	vec_done(&p->ops);
	vec_done(&p->devices);
	free(p);
}

void totals__done(struct totals *t)
{
	for (size_t i = 0; i < t->processes.nr; i++)
		free_process(t->processes.items[i]);
	vec_done(&t->processes);
	for (size_t i = 0; i < t->losses.nr; i++)
		free(t->losses.items[i].name);
	vec_done(&t->losses);
}

static void forget_gone(struct totals *t, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->processes.nr; i++) {
		struct total_process *p = t->processes.items[i];

		if (p->seen_ns + GONE_NS < now_ns)
			free_process(p);
		else
			t->processes.items[kept++] = p;
	}
	t->processes.nr = kept;
}

/* Ends the series of an earlier process with this PID, which would have the same labels. */
static void forget_pid(struct totals *t, int32_t pid)
{
	for (size_t i = 0; i < t->processes.nr; i++)
		if (t->processes.items[i]->pid == pid) {
			free_process(t->processes.items[i]);
			t->processes.items[i--] = t->processes.items[--t->processes.nr];
		}
}

/* When a process of this pid started; 0: the recording does not say. */
static uint64_t start_of(const struct timeline *tl, int32_t pid)
{
	for (size_t i = 0; i < recording__processes(tl->recording); i++) {
		const struct recording_process *p = recording__process_at(tl->recording, i);

		if (p->pid == pid)
			return p->start_boot_ns;
	}
	return 0;
}

static int find_process(struct adding *a, const struct tl_process *like, uint64_t now_ns,
			struct total_process **ret_process)
{
	uint64_t start = start_of(a->tl, like->pid);
	struct total_process *p;

	for (size_t i = 0; i < a->t->processes.nr; i++) {
		p = a->t->processes.items[i];
		if (p->pid == like->pid && p->start_boot_ns == start) {
			p->seen_ns = now_ns;
			*ret_process = p;
			return 0;
		}
	}
	forget_pid(a->t, like->pid);
	if (a->t->processes.nr >= TOTALS_PROCESSES) {
		a->t->dropped_nr++;
		return 0;
	}
	p = calloc(1, sizeof(*p));
	if (!p || vec_push(&a->t->processes, p)) {
		free(p);
		return -ENOMEM;
	}
	p->pid = like->pid;
	p->start_boot_ns = start;
	p->seen_ns = now_ns;
	(void)snprintf(p->comm, sizeof(p->comm), "%s", like->comm ? like->comm : "");
	*ret_process = p;
	return 0;
}

static int find_processes(struct adding *a, uint64_t now_ns)
{
	const struct timeline *tl = a->tl;
	int err = 0;

	a->processes = calloc(tl->processes.nr + 1, sizeof(struct total_process *));
	if (!a->processes)
		return -ENOMEM;
	for (size_t i = 0; i < tl->processes.nr && !err; i++)
		if (tl->processes.items[i].pid > 0)
			err = find_process(a, &tl->processes.items[i], now_ns, &a->processes[i]);
	return err;
}

static struct total_process *process_of(const struct adding *a, uint32_t process)
{
	return process == TL_NONE ? NULL : a->processes[process];
}

static struct total_process *process_of_thread(const struct adding *a, uint32_t thread)
{
	return thread == TL_NONE ? NULL : process_of(a, a->tl->threads.items[thread].process);
}

/* ---- operators ---- */

/* A call of CUDA is one of its own; a thread that waits does so for the operator that it is in. */
static const char *name_of(const struct adding *a, const struct stack_sample *s)
{
	if (s->leaf && !s->is_gpu && !(a->tl->sampled && s->op))
		return s->leaf;
	return stack_sample_op(s);
}

static void add_values(const struct adding *a, const struct stack_sample *s, struct part_op *row)
{
	uint64_t *cpu_ns = a->tl->sampled ? &row->estimated_ns : &row->cpu_ns;

	row->calls = add_saturating(row->calls, s->values[STACK_CALLS]);
	*cpu_ns = add_saturating(*cpu_ns, s->values[STACK_CPU]);
	row->cuda_ns = add_saturating(row->cuda_ns, s->values[STACK_CUDA]);
	row->samples_nr = add_saturating(row->samples_nr, s->values[STACK_SAMPLES]);
	row->off_ns = add_saturating(row->off_ns, s->values[STACK_OFF]);
}

static int add_sample(const struct stack_sample *s, void *arg)
{
	struct adding *a = arg;
	const char *name = name_of(a, s);
	uint64_t key = hash_mix((uintptr_t)name ^ hash_mix((uint64_t)s->process + 1)), *at;
	struct part_op *row;

	if (!process_of(a, s->process))
		return 0;
	for (; (at = hash__find(&a->row_of, key)); key++)
		if (a->rows.items[*at].name == name && a->rows.items[*at].process == s->process)
			break;
	if (!at) {
		if (hash__set(&a->row_of, key, a->rows.nr) ||
		    vec_push(&a->rows, ((struct part_op){.process = s->process, .name = name})))
			return -ENOMEM;
		row = &a->rows.items[a->rows.nr - 1];
	} else {
		row = &a->rows.items[*at];
	}
	add_values(a, s, row);
	return 0;
}

/* Copies a name as a label's value shows it: two names that look the same there are one series. */
static void clean(struct buf *out, const char *name)
{
	char cut[TOTALS_NAME_BYTES];

	(void)snprintf(cut, sizeof(cut), "%s", name);
	buf__line(out, cut);
	if (!out->nr)
		buf__str(out, "?");
}

/* Orders operators, the longest first: those get the series. */
static int compare_rows(const void *x, const void *y)
{
	const struct part_op *a = x, *b = y;
	uint64_t of_a = add_saturating(add_saturating(a->cpu_ns, a->estimated_ns), a->cuda_ns);
	uint64_t of_b = add_saturating(add_saturating(b->cpu_ns, b->estimated_ns), b->cuda_ns);

	if (of_a != of_b)
		return of_a < of_b ? 1 : -1;
	if (a->off_ns != b->off_ns)
		return a->off_ns < b->off_ns ? 1 : -1;
	return strcmp(a->name, b->name);
}

static struct total_op *find_op(struct total_process *p, const char *name)
{
	if (!strcmp(name, TOTALS_OTHER))
		return &p->other;
	for (size_t i = 0; i < p->ops.nr; i++)
		if (!strcmp(p->ops.items[i].name, name))
			return &p->ops.items[i];
	return NULL;
}

/* A series for a name that has none, if one is free. */
static int give_series(struct total_process *p, const char *name, uint64_t now,
		       struct total_op **ret_op)
{
	struct total_op *oldest = NULL, op = {0};

	for (size_t i = 0; i < p->ops.nr; i++)
		if (!oldest || p->ops.items[i].seen < oldest->seen)
			oldest = &p->ops.items[i];
	if (p->ops.nr >= TOTALS_OPS && oldest->seen + STALE_PARTS_NR > now) {
		*ret_op = &p->other;
		return 0;
	}
	op.name = strdup(name);
	if (!op.name)
		return -ENOMEM;
	if (p->ops.nr >= TOTALS_OPS) {
		free(oldest->name);
		*oldest = op;
		*ret_op = oldest;
		return 0;
	}
	if (vec_push(&p->ops, op)) {
		free(op.name);
		return -ENOMEM;
	}
	*ret_op = &p->ops.items[p->ops.nr - 1];
	return 0;
}

static int add_ops(struct adding *a)
{
	int err = stack_samples_each(a->tl, false, add_sample, a);

	if (!err && a->rows.nr)
		qsort(a->rows.items, a->rows.nr, sizeof(*a->rows.items), compare_rows);
	for (size_t i = 0; i < a->rows.nr && !err; i++) {
		const struct part_op *row = &a->rows.items[i];
		struct total_process *p = a->processes[row->process];
		CLEANUP(buf__done) struct buf name = {0};
		struct total_op *op;

		clean(&name, row->name);
		err = buf__error(&name);
		op = err ? NULL : find_op(p, name.bytes);
		if (!err && !op)
			err = give_series(p, name.bytes, a->t->recordings_nr, &op);
		if (err)
			break;
		op->calls = add_saturating(op->calls, row->calls);
		op->cpu_ns = add_saturating(op->cpu_ns, row->cpu_ns);
		op->cuda_ns = add_saturating(op->cuda_ns, row->cuda_ns);
		op->samples_nr = add_saturating(op->samples_nr, row->samples_nr);
		op->estimated_ns = add_saturating(op->estimated_ns, row->estimated_ns);
		op->off_ns = add_saturating(op->off_ns, row->off_ns);
		op->seen = a->t->recordings_nr;
	}
	return err;
}

/* ---- devices ---- */

static struct total_device *find_device(struct adding *a, struct total_process *p, const char *name)
{
	struct total_device device = {0};

	for (size_t i = 0; i < p->devices.nr; i++)
		if (!strcmp(p->devices.items[i].name, name))
			return &p->devices.items[i];
	(void)snprintf(device.name, sizeof(device.name), "%s", name);
	if (p->devices.nr >= TOTALS_DEVICES || vec_push(&p->devices, device)) {
		a->t->dropped_nr++;
		return NULL;
	}
	return &p->devices.items[p->devices.nr - 1];
}

static struct total_device *device_of_memory(struct adding *a, const struct tl_memory *m)
{
	struct total_process *p = process_of_thread(a, m->thread);
	char name[MEMORY_NAME_BYTES];

	if (!p)
		return NULL;
	memory_device_name(m->device_type, m->device_index, name);
	return find_device(a, p, name);
}

static void add_memory(struct adding *a)
{
	const struct timeline *tl = a->tl;

	for (size_t i = 0; i < tl->memory.nr; i++) {
		const struct tl_memory *m = &tl->memory.items[i];
		struct total_device *d = device_of_memory(a, m);

		if (!d)
			continue;
		d->has_memory = true;
		if (m->bytes > 0) {
			d->allocations_nr++;
			d->allocated_bytes = add_saturating(d->allocated_bytes, (uint64_t)m->bytes);
		}
		if (__builtin_add_overflow(d->held_bytes, m->bytes, &d->held_bytes))
			d->held_bytes = INT64_MAX;
		if (!m->allocated_bytes && !m->reserved_bytes)
			continue;
		d->has_allocator = true;
		d->allocator_bytes = m->allocated_bytes;
		d->reserved_bytes = m->reserved_bytes;
	}
	for (size_t i = 0; i < tl->out_of_memory.nr; i++) {
		struct total_device *d = device_of_memory(a, &tl->out_of_memory.items[i]);

		if (d)
			d->refused_nr++;
	}
}

static struct total_device *device_of_work(struct adding *a, uint32_t process, uint32_t device)
{
	struct total_process *p = process_of(a, process);
	char name[32];

	if (!p || device == TL_NONE)
		return NULL;
	(void)snprintf(name, sizeof(name), "cuda:%u", device);
	return find_device(a, p, name);
}

/* Adds without overflow: a recording can be damaged. */
static uint64_t whole(double value)
{
	return value < (double)INT64_MAX ? (uint64_t)round(value) : INT64_MAX;
}

static void add_gpus(struct adding *a)
{
	const struct tl_gpus *gpu = &a->tl->gpu;

	for (size_t i = 0; i < gpu->devices.nr; i++) {
		const struct tl_gpu_use *use = &gpu->devices.items[i];
		struct total_device *d = device_of_work(a, use->process, use->device);

		if (!d)
			continue;
		d->has_work = true;
		d->work_nr = add_saturating(d->work_nr, whole(use->whole_nr));
		d->kernels_nr = add_saturating(d->kernels_nr, whole(use->whole_kernels_nr));
		d->busy_ns = add_saturating(d->busy_ns, whole(use->whole_busy_ns));
	}
}

/* ---- steps ---- */

static void add_step(struct total_process *p, uint64_t ns)
{
	p->steps_nr++;
	p->steps_ns = add_saturating(p->steps_ns, ns);
	for (size_t i = 0; i < TOTALS_BUCKETS; i++)
		p->buckets[i] += ns <= totals_bounds_ns[i];
}

/* An optimizer ends steps from one recording to the next. */
static void add_edges(struct total_process *p, const char *marker, uint64_t first_ns,
		      uint64_t last_ns)
{
	if (p->edge_ns && p->edge_ns < first_ns &&
	    !strncmp(p->marker, marker, sizeof(p->marker) - 1))
		add_step(p, first_ns - p->edge_ns);
	p->edge_ns = last_ns;
	(void)snprintf(p->marker, sizeof(p->marker), "%s", marker);
}

static const struct tl_step_series *series_of(const struct timeline *tl, uint32_t process)
{
	for (size_t i = 0; i < tl->step_series.nr; i++)
		if (tl->step_series.items[i].process == process)
			return &tl->step_series.items[i];
	return NULL;
}

/* A recording in which a step ends, but none is whole. */
static void add_lone_edge(struct adding *a, uint32_t process)
{
	struct total_process *p = a->processes[process];
	const struct tl_op *mark = NULL;

	for (size_t i = 0; i < a->tl->ops.nr; i++) {
		const struct tl_op *op = &a->tl->ops.items[i];

		if (op->scope != GP_SCOPE_USER || (op->flags & GP_OP_ASYNC) ||
		    a->tl->threads.items[op->thread].process != process ||
		    step_marker_of(op->name) != STEP_MARKER_OPTIMIZER)
			continue;
		if (!mark || !strncmp(p->marker, op->name, sizeof(p->marker) - 1))
			mark = op;
	}
	if (mark)
		add_edges(p, mark->name, mark->end_ns, mark->end_ns);
}

static void add_steps(struct adding *a)
{
	for (uint32_t i = 0; i < a->tl->processes.nr; i++) {
		const struct tl_step_series *s = series_of(a->tl, i);
		const struct tl_step *steps = a->tl->steps.items;

		if (!a->processes[i])
			continue;
		if (!s || !s->nr) {
			add_lone_edge(a, i);
			continue;
		}
		for (uint32_t k = s->first; k < s->first + s->nr; k++)
			add_step(a->processes[i], steps[k].end_ns - steps[k].start_ns);
		if (s->by == TL_STEPS_OPTIMIZER && s->marker)
			add_edges(a->processes[i], s->marker, steps[s->first].start_ns,
				  steps[s->first + s->nr - 1].end_ns);
	}
}

/* ---- all ---- */

static int add_loss(struct totals *t, const char *name, uint64_t nr)
{
	struct total_loss loss = {.nr = nr};

	for (size_t i = 0; i < t->losses.nr; i++)
		if (!strcmp(t->losses.items[i].name, name)) {
			t->losses.items[i].nr = add_saturating(t->losses.items[i].nr, nr);
			return 0;
		}
	if (t->losses.nr >= TOTALS_LOSSES) {
		t->dropped_nr++;
		return 0;
	}
	loss.name = strndup(name, TOTALS_NAME_BYTES - 1);
	if (!loss.name || vec_push(&t->losses, loss)) {
		free(loss.name);
		return -ENOMEM;
	}
	return 0;
}

/* Forgets the memory that is held and the steps in progress: they are known only within one
 * capture. */
static void begin_capture(struct totals *t, uint64_t capture_nr)
{
	t->capture_nr = capture_nr;
	for (size_t i = 0; i < t->processes.nr; i++) {
		struct total_process *p = t->processes.items[i];

		p->edge_ns = 0;
		for (size_t k = 0; k < p->devices.nr; k++)
			p->devices.items[k].held_bytes = 0;
	}
}

int totals__add(struct totals *t, const struct timeline *tl, const struct totals_part *part)
{
	CLEANUP(adding__done) struct adding a = {.t = t, .tl = tl};
	int err;

	t->recordings_nr++;
	t->sampled |= tl->sampled;
	t->events_nr = add_saturating(t->events_nr, part->events_nr);
	if (tl->end_ns > tl->start_ns)
		t->recorded_ns = add_saturating(t->recorded_ns, tl->end_ns - tl->start_ns);
	if (tl->gpu_unseen)
		t->gpu_unseen_ns = add_saturating(t->gpu_unseen_ns, timeline__wanted_ns(tl));
	if (part->capture_nr != t->capture_nr)
		begin_capture(t, part->capture_nr);
	err = find_processes(&a, part->now_ns);
	forget_gone(t, part->now_ns);
	err = err ? err : add_ops(&a);
	for (size_t i = 0; i < tl->losses.nr && !err; i++)
		err = add_loss(t, tl->losses.items[i].name, tl->losses.items[i].count);
	if (err)
		return err;
	add_memory(&a);
	add_gpus(&a);
	add_steps(&a);
	return 0;
}
