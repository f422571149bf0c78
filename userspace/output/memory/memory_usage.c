/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Adds up memory events, in two passes over each device. The first finds the peak. The second finds
 * the allocations that were alive then: made at or before the peak, and freed after it or never.
 */
#include "output/memory/memory_usage.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"
#include "base/hash.h"

static uint32_t process_of(const struct timeline *t, const struct tl_memory *m)
{
	return m->thread < t->threads.nr ? t->threads.items[m->thread].process : TL_NONE;
}

/* The device of an event, made when it is the first; positions are kept in `known`. */
static int device_of(struct memory_usage *u, struct hash *known, const struct timeline *t,
		     const struct tl_memory *m, struct memory_device **ret_device)
{
	struct memory_device fresh = {.process = process_of(t, m),
				      .type = m->device_type,
				      .index = m->device_index,
				      .peak = TL_NONE};
	uint64_t key = (uint64_t)fresh.process << 32 | (uint64_t)(uint16_t)fresh.type << 16 |
		       (uint16_t)fresh.index;
	uint64_t *at = hash__find(known, key);
	int err;

	if (!at) {
		err = vec_push(&u->devices, fresh);
		if (!err)
			err = hash__set(known, key, u->devices.nr - 1);
		if (err)
			return err;
		*ret_device = &u->devices.items[u->devices.nr - 1];
		return 0;
	}
	*ret_device = &u->devices.items[*at];
	return 0;
}

static int gather_events(struct memory_usage *u, const struct timeline *t)
{
	struct hash known = {};
	int err = 0;

	for (size_t i = 0; !err && i < t->memory.nr; i++) {
		const struct tl_memory *m = &t->memory.items[i];
		struct memory_device *d;

		err = device_of(u, &known, t, m, &d);
		if (!err)
			err = vec_push(&d->events, (uint32_t)i);
		if (err)
			break;
		if (m->total_bytes > d->peak_bytes) {
			d->peak_bytes = m->total_bytes;
			d->peak = (uint32_t)i;
		}
		d->end_bytes = m->total_bytes;
		d->has_totals |= m->allocated_bytes || m->reserved_bytes;
	}
	hash__done(&known);
	return err;
}

/* A parent stands before its children, so the walk ends whatever the array holds. */
const char *memory_outermost_name(const struct timeline *t, uint32_t op)
{
	const char *name = t->ops.items[op].name;
	uint32_t at = op;

	for (;;) {
		uint32_t parent = t->ops.items[at].parent;

		if (parent >= at)
			return name;
		at = parent;
		if (t->ops.items[at].scope != GP_SCOPE_USER)
			name = t->ops.items[at].name;
	}
}

/* Names are interned, so a pointer is a name; `ids` numbers them from 1. 0: out of memory. */
static uint32_t name_id(struct hash *ids, const char *name)
{
	uint64_t key = (uint64_t)(uintptr_t)name;
	uint64_t *at = hash__find(ids, key);

	if (at)
		return (uint32_t)*at;
	return hash__set(ids, key, ids->nr + 1) ? 0 : (uint32_t)ids->nr;
}

struct op_index {
	struct hash names;   /* pointer -> number */
	struct hash rows;    /* two numbers -> position in memory_device.ops */
	struct hash unfreed; /* address -> event of an allocation whose free was never seen */
};

static int row_of(struct memory_device *d, struct op_index *index, const struct timeline *t,
		  uint32_t op, struct memory_op **ret_row)
{
	struct memory_op fresh = {};
	uint32_t inner, outer;
	uint64_t key, *at;
	int err;

	if (op < t->ops.nr) {
		fresh.op = t->ops.items[op].name;
		fresh.outermost = memory_outermost_name(t, op);
	}
	inner = name_id(&index->names, fresh.op);
	outer = name_id(&index->names, fresh.outermost);
	if (!inner || !outer)
		return -ENOMEM;
	key = (uint64_t)inner << 32 | outer;
	at = hash__find(&index->rows, key);
	if (at) {
		*ret_row = &d->ops.items[*at];
		return 0;
	}
	err = vec_push(&d->ops, fresh);
	if (!err)
		err = hash__set(&index->rows, key, d->ops.nr - 1);
	if (err)
		return err;
	*ret_row = &d->ops.items[d->ops.nr - 1];
	return 0;
}

/* A recording may claim any sizes: sums stop at the largest number. */
static void add_bytes(int64_t *sum, int64_t bytes)
{
	if (__builtin_add_overflow(*sum, bytes, sum))
		*sum = INT64_MAX;
}

static void count_allocation(struct memory_op *row, const struct memory_device *d, uint32_t event,
			     const struct tl_memory *m)
{
	row->allocations++;
	add_bytes(&row->allocated_bytes, m->bytes);
	if (m->bytes > row->largest_bytes)
		row->largest_bytes = m->bytes;
	if (d->peak != TL_NONE && event <= d->peak && m->partner > d->peak) {
		row->peak_allocations++;
		add_bytes(&row->peak_bytes, m->bytes);
	}
	if (m->partner == TL_NONE) {
		row->end_allocations++;
		add_bytes(&row->end_bytes, m->bytes);
	}
}

/* An address that is given out again was free before: what was there is gone since `event`. */
static int end_unfreed(struct memory_device *d, struct op_index *index, const struct timeline *t,
		       uint32_t event)
{
	const struct tl_memory *m = &t->memory.items[event];
	const struct tl_memory *old;
	struct memory_op *row;
	uint64_t from;
	int err;

	if (index->unfreed.nr && hash__delete(&index->unfreed, m->address, &from)) {
		old = &t->memory.items[from];
		err = row_of(d, index, t, old->op, &row);
		if (err)
			return err;
		row->end_allocations--;
		row->end_bytes -= old->bytes;
		if (d->peak != TL_NONE && event <= d->peak) {
			row->peak_allocations--;
			row->peak_bytes -= old->bytes;
		}
	}
	return m->partner == TL_NONE ? hash__set(&index->unfreed, m->address, event) : 0;
}

static int add_up_ops(struct memory_device *d, const struct timeline *t)
{
	struct op_index index = {};
	int err = 0;

	for (size_t i = 0; !err && i < d->events.nr; i++) {
		uint32_t event = d->events.items[i];
		const struct tl_memory *m = &t->memory.items[event];
		struct memory_op *row;

		if (m->bytes <= 0)
			continue;
		err = end_unfreed(d, &index, t, event);
		if (!err)
			err = row_of(d, &index, t, m->op, &row);
		if (!err)
			count_allocation(row, d, event, m);
	}
	hash__done(&index.names);
	hash__done(&index.rows);
	hash__done(&index.unfreed);
	return err;
}

/* Several GPUs' allocators do not tell whose a cudaMalloc() was for. */
static bool has_one_allocator(const struct memory_usage *u, const struct memory_device *d)
{
	size_t nr = 0;

	for (size_t i = 0; i < u->devices.nr; i++)
		nr += u->devices.items[i].process == d->process &&
		      u->devices.items[i].type == GP_DEVICE_CUDA && u->devices.items[i].has_totals;
	return nr == 1;
}

static bool is_given_by_cuda(const struct tl_memory *m)
{
	return m->device_type == TL_DEVICE_CUDA_CALLS || m->device_type == TL_DEVICE_CUDA_PHYSICAL;
}

/* What PyTorch's allocator got from CUDA for the allocation that it reports: it asks on that
 * thread, in that op, and does nothing else in between. A call gives it all; of physical memory as
 * many pieces of one size are taken as are needed beside what is mapped already. */
static int64_t got_for_report(const struct timeline *t, size_t report)
{
	const struct tl_memory *m = &t->memory.items[report], *last = NULL;
	int64_t bytes = 0, most = (int64_t)m->reserved_bytes;

	if (m->bytes <= 0)
		return 0;
	for (size_t i = report; i-- > 0;) {
		const struct tl_memory *c = &t->memory.items[i];

		if (c->thread != m->thread)
			continue;
		if (!is_given_by_cuda(c) || c->op != m->op || c->bytes <= 0 ||
		    c->bytes > most - bytes)
			return bytes;
		if (!last && c->device_type == TL_DEVICE_CUDA_CALLS)
			return c->bytes >= m->bytes ? c->bytes : 0;
		if (last && (c->device_type != last->device_type || c->bytes != last->bytes))
			return bytes;
		last = c;
		bytes += c->bytes;
	}
	return bytes;
}

/* Compared when PyTorch's allocator tells its total: between a call and that, the two differ. What
 * it holds at its first report it had before the recording, but for what it got for that very
 * allocation. That is freed without a size, and so gets less unseen: it is never more than all that
 * the allocator holds. */
static void compare_with_pytorch(struct memory_device *d, const struct timeline *t)
{
	int64_t given = 0, before = 0;

	for (size_t i = 0; i < t->memory.nr; i++) {
		const struct tl_memory *m = &t->memory.items[i];
		int64_t outside, reserved;

		if (process_of(t, m) != d->process)
			continue;
		if (is_given_by_cuda(m))
			add_bytes(&given, m->bytes);
		if (m->device_type != GP_DEVICE_CUDA || m->reserved_bytes > INT64_MAX)
			continue;
		reserved = (int64_t)m->reserved_bytes;
		if (!d->has_outside)
			before = reserved - got_for_report(t, i);
		if (before > reserved)
			before = reserved;
		d->has_outside = true;
		outside = given;
		add_bytes(&outside, before - reserved);
		d->outside_end_bytes = outside;
		if (outside > d->outside_peak_bytes)
			d->outside_peak_bytes = outside;
	}
}

int memory_usage__init(struct memory_usage *u, const struct timeline *t)
{
	int err;

	*u = (struct memory_usage){};
	err = gather_events(u, t);
	for (size_t i = 0; !err && i < u->devices.nr; i++)
		err = add_up_ops(&u->devices.items[i], t);
	for (size_t i = 0; !err && i < u->devices.nr; i++)
		if (u->devices.items[i].type == TL_DEVICE_CUDA_CALLS &&
		    has_one_allocator(u, &u->devices.items[i]))
			compare_with_pytorch(&u->devices.items[i], t);
	return err;
}

void memory_usage__done(struct memory_usage *u)
{
	for (size_t i = 0; i < u->devices.nr; i++) {
		vec_done(&u->devices.items[i].events);
		vec_done(&u->devices.items[i].ops);
	}
	vec_done(&u->devices);
}

/* ---- what the peak is made of ---- */

static int hold(const struct memory_device *d, const struct timeline *t, bool *held)
{
	struct hash unfreed = {0};
	int err = 0;

	for (size_t i = 0; !err && i < d->events.nr && d->events.items[i] <= d->peak; i++) {
		uint32_t event = d->events.items[i];
		const struct tl_memory *m = &t->memory.items[event];
		uint64_t gone;

		if (m->bytes <= 0)
			continue;
		if (unfreed.nr && hash__delete(&unfreed, m->address, &gone))
			held[gone] = false;
		held[event] = m->partner > d->peak;
		if (m->partner == TL_NONE)
			err = hash__set(&unfreed, m->address, event);
	}
	hash__done(&unfreed);
	return err;
}

int memory_held_at_peak(const struct timeline *t, bool *held)
{
	struct memory_usage u = {0};
	int err = gather_events(&u, t);

	for (size_t i = 0; !err && i < u.devices.nr; i++)
		if (u.devices.items[i].peak != TL_NONE)
			err = hold(&u.devices.items[i], t, held);
	memory_usage__done(&u);
	return err;
}

void memory_device_name(int type, int index, char to[MEMORY_NAME_BYTES])
{
	if (type == GP_DEVICE_CPU)
		(void)snprintf(to, MEMORY_NAME_BYTES, "cpu");
	else if (type == GP_DEVICE_CUDA)
		(void)snprintf(to, MEMORY_NAME_BYTES, "cuda:%d", index);
	else if (type == TL_DEVICE_CUDA_CALLS)
		(void)snprintf(to, MEMORY_NAME_BYTES, "cudaMalloc");
	else if (type == TL_DEVICE_CUDA_HOST)
		(void)snprintf(to, MEMORY_NAME_BYTES, "cudaMallocHost");
	else if (type == TL_DEVICE_CUDA_PHYSICAL)
		(void)snprintf(to, MEMORY_NAME_BYTES, "cuMemCreate");
	else
		(void)snprintf(to, MEMORY_NAME_BYTES, "type %d:%d", (int16_t)type, (int16_t)index);
}

static int compare_names(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_ops(const struct memory_op *a, const struct memory_op *b, int64_t a_bytes,
		       int64_t b_bytes)
{
	int order = (a_bytes < b_bytes) - (a_bytes > b_bytes);

	if (!order)
		order = compare_names(a->op, b->op);
	return order ? order : compare_names(a->outermost, b->outermost);
}

int memory_op_by_allocated(const void *a, const void *b)
{
	const struct memory_op *x = a, *y = b;

	return compare_ops(x, y, x->allocated_bytes, y->allocated_bytes);
}

int memory_op_by_peak(const void *a, const void *b)
{
	const struct memory_op *x = a, *y = b;

	return compare_ops(x, y, x->peak_bytes, y->peak_bytes);
}

/* What one stretch of time keeps, by position in memory_device.events. */
struct bucket {
	size_t first, last, low, high;
};

static int keep_bucket(const struct memory_device *d, const struct bucket *b,
		       struct memory_points *points)
{
	size_t a = b->low < b->high ? b->low : b->high;
	size_t z = b->low < b->high ? b->high : b->low;
	const size_t kept[] = {b->first, a, z, b->last};
	int err = 0;

	for (size_t i = 0; !err && i < 4; i++) {
		if (!i || kept[i] != kept[i - 1])
			err = vec_push(&points->events, d->events.items[kept[i]]);
	}
	return err;
}

/* The end of the bucket that begins with event `from`; its extremes in *b. */
static size_t take_bucket(const struct memory_device *d, const struct timeline *t, size_t from,
			  uint64_t origin_ns, uint64_t bucket_ns, struct bucket *b)
{
	const struct tl_memory *all = t->memory.items;
	const uint32_t *events = d->events.items;
	uint64_t number = (all[events[from]].time_ns - origin_ns) / bucket_ns;
	size_t i;

	*b = (struct bucket){from, from, from, from};
	for (i = from; i < d->events.nr; i++) {
		if ((all[events[i]].time_ns - origin_ns) / bucket_ns != number)
			break;
		if (all[events[i]].total_bytes < all[events[b->low]].total_bytes)
			b->low = i;
		if (all[events[i]].total_bytes > all[events[b->high]].total_bytes)
			b->high = i;
		b->last = i;
	}
	return i;
}

int memory_device__points(const struct memory_device *d, const struct timeline *t, size_t max_nr,
			  struct memory_points *ret_points)
{
	bool thin = max_nr && d->events.nr > max_nr;
	uint64_t origin_ns, span_ns;
	int err = 0;

	*ret_points = (struct memory_points){};
	if (!thin) {
		for (size_t i = 0; !err && i < d->events.nr; i++)
			err = vec_push(&ret_points->events, d->events.items[i]);
		return err;
	}
	origin_ns = t->memory.items[d->events.items[0]].time_ns;
	span_ns = t->memory.items[d->events.items[d->events.nr - 1]].time_ns - origin_ns;
	ret_points->bucket_ns = span_ns / (max_nr / 4) + 1;
	for (size_t i = 0; !err && i < d->events.nr;) {
		struct bucket b;

		i = take_bucket(d, t, i, origin_ns, ret_points->bucket_ns, &b);
		err = keep_bucket(d, &b, ret_points);
	}
	return err;
}
