/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Pairs allocations and frees. A free takes its size from the allocation at its address, on its
 * device and in its process. Totals count only memory that was allocated within the capture.
 */
#include "timeline/model/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

struct device {
	struct hash live; /* address -> index in timeline.memory */
	int64_t total_bytes;
	struct hash before; /* address -> bytes, of allocations before the window */
};

struct ledger {
	struct build *b;
	struct timeline *t;
	struct tl_op_sums *sums;
	VEC(struct device) devices;
	struct hash device_of;
};

static void ledger__done(struct ledger *l)
{
	for (size_t i = 0; i < l->devices.nr; i++) {
		hash__done(&l->devices.items[i].live);
		hash__done(&l->devices.items[i].before);
	}
	vec_done(&l->devices);
	hash__done(&l->device_of);
}

/* Sums may wrap on forged sizes; they never trap. */
static int64_t add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static struct device *device_of(struct ledger *l, const struct raw_memory *m)
{
	uint64_t key = (uint64_t)l->t->threads.items[m->thread].process << 32 |
		       (uint64_t)(uint16_t)m->device_type << 16 | (uint16_t)m->device_index;
	const uint64_t *known = hash__find(&l->device_of, key);

	if (known)
		return &l->devices.items[*known];
	if (hash__set(&l->device_of, key, l->devices.nr) ||
	    vec_push(&l->devices, (struct device){0}))
		return NULL;
	return &l->devices.items[l->devices.nr - 1];
}

/* ---- the op ---- */

/* BPF programs do not see ops that are reported by callback: those are found by thread and time. */
static uint32_t callback_op_at(const struct build *b, const struct raw_memory *m)
{
	uint32_t op = build_op_at(b, m->thread, m->time_ns, NULL);

	if (op != TL_NONE && (b->t->ops.items[op].flags & GP_OP_CALLBACK))
		return op;
	return op != TL_NONE && b->t->ops.items[op].step ? op : TL_NONE;
}

/* Finds the op by its instance; if that op was lost, or still open at the end, the op around it. */
static uint32_t op_of(struct build *b, const struct raw_memory *m)
{
	uint32_t op, above;

	if (!m->instance)
		return callback_op_at(b, m);
	op = build_op_of_instance(b, m->instance);
	if (op != TL_NONE && b->t->ops.items[op].thread == m->thread)
		return op;
	above = build_op_at(b, m->thread, m->time_ns, NULL);
	if (op != TL_NONE || above != TL_NONE || build_instance_ended(b, m->instance))
		b->counts[TL_MEMORY_OP_MISSING]++;
	return above;
}

static void attribute(struct tl_op_sums *sums, const struct tl_memory *m)
{
	struct tl_op_sums *op;

	if (m->op == TL_NONE)
		return;
	op = &sums[m->op];
	if (m->device_type == GP_DEVICE_CPU)
		op->self_cpu_bytes = add(op->self_cpu_bytes, m->bytes);
	else if (m->device_type == GP_DEVICE_CUDA)
		op->self_cuda_bytes = add(op->self_cuda_bytes, m->bytes);
}

/* Adds children's bytes to their parents. Children come after their parents. */
static void sum_up(const struct timeline *t, struct tl_op_sums *sums)
{
	for (size_t i = t->ops.nr; i-- > 0;) {
		struct tl_op_sums *op = &sums[i], *parent;

		op->cpu_bytes = add(op->cpu_bytes, op->self_cpu_bytes);
		op->cuda_bytes = add(op->cuda_bytes, op->self_cuda_bytes);
		if (t->ops.items[i].parent == TL_NONE)
			continue;
		parent = &sums[t->ops.items[i].parent];
		parent->cpu_bytes = add(parent->cpu_bytes, op->cpu_bytes);
		parent->cuda_bytes = add(parent->cuda_bytes, op->cuda_bytes);
	}
}

/* ---- allocations and frees ---- */

static int allocated(struct ledger *l, struct device *d, const struct tl_memory *m)
{
	uint64_t before;

	/* The address is given out again, so a free is missing: that memory is gone. */
	if (hash__delete(&d->live, m->address, &before)) {
		l->b->counts[TL_FREE_LOST]++;
		d->total_bytes = add(d->total_bytes, -l->t->memory.items[before].bytes);
	}
	(void)hash__delete(&d->before, m->address, NULL);
	return hash__set(&d->live, m->address, l->t->memory.nr);
}

static int before_window(struct device *d, const struct raw_memory *raw)
{
	if (!(raw->flags & GP_MEMORY_FREE))
		return hash__set(&d->before, raw->address, (uint64_t)raw->bytes);
	(void)hash__delete(&d->before, raw->address, NULL);
	return 0;
}

/* Sets the size and partner of m. False: the size is not known. */
static bool freed(struct ledger *l, struct device *d, struct tl_memory *m)
{
	struct tl_memory *from;
	uint64_t index;

	if (!hash__delete(&d->live, m->address, &index)) {
		if (hash__delete(&d->before, m->address, &index))
			m->bytes = -(int64_t)index;
		return m->bytes != 0;
	}
	from = &l->t->memory.items[index];
	from->partner = (uint32_t)l->t->memory.nr;
	m->partner = (uint32_t)index;
	m->bytes = -from->bytes;
	return true;
}

bool build_memory_possible(const struct raw_memory *m)
{
	/* A refused size need not be a possible one. */
	if (m->flags & GP_MEMORY_OOM)
		return m->bytes >= 0;
	if (m->bytes > TL_SIZE_END || m->bytes < -TL_SIZE_END)
		return false;
	return m->flags & GP_MEMORY_FREE ? m->bytes <= 0 : m->bytes >= 0;
}

static struct tl_memory entry_of(const struct raw_memory *m)
{
	return (struct tl_memory){
		.time_ns = m->time_ns,
		.address = m->address,
		.bytes = m->flags & GP_MEMORY_SIZE_UNKNOWN ? 0 : m->bytes,
		.allocated_bytes = m->allocated_bytes,
		.reserved_bytes = m->reserved_bytes,
		.thread = m->thread,
		.partner = TL_NONE,
		.device_type = m->device_type,
		.device_index = m->device_index,
		.stack_id = m->stack_id,
	};
}

static int enter(struct ledger *l, struct raw_memory *raw)
{
	struct tl_memory m = entry_of(raw);
	struct device *d;
	int err = 0;

	if (!build_memory_possible(raw)) {
		l->b->counts[TL_MEMORY_INVALID]++;
		return 0;
	}
	if (raw->before && (raw->flags & GP_MEMORY_OOM))
		return 0;
	d = device_of(l, raw);
	if (!d)
		return -ENOMEM;
	if (raw->before)
		return before_window(d, raw);
	m.op = raw->op = op_of(l->b, raw);
	if (raw->flags & GP_MEMORY_OOM)
		return vec_push(&l->t->out_of_memory, m);
	if (!(raw->flags & GP_MEMORY_FREE)) {
		err = allocated(l, d, &m);
	} else if (!freed(l, d, &m)) {
		l->b->counts[TL_FREE_UNKNOWN]++;
		return 0;
	}
	if (err)
		return err;
	d->total_bytes = add(d->total_bytes, m.bytes);
	m.total_bytes = d->total_bytes;
	attribute(l->sums, &m);
	return vec_push(&l->t->memory, m);
}

int build_memory(struct build *b)
{
	CLEANUP(cleanup_free)
	struct sort_item *order = malloc((b->memory.nr + 1) * sizeof(*order));
	CLEANUP(ledger__done) struct ledger l = {.b = b, .t = b->t};
	int err;

	if (!b->memory.nr)
		return 0;
	l.sums = build_op_sums(b);
	if (!order || !l.sums)
		return -ENOMEM;
	for (size_t i = 0; i < b->memory.nr; i++)
		order[i] = (struct sort_item){b->memory.items[i].time_ns, (uint32_t)i};
	err = sort_items(order, b->memory.nr);
	if (!err)
		err = vec_reserve(&b->t->memory, b->memory.nr);
	for (size_t i = 0; i < b->memory.nr && !err; i++)
		err = enter(&l, &b->memory.items[order[i].index]);
	if (!err)
		sum_up(b->t, l.sums);
	return err;
}
