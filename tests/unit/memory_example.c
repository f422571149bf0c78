/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Timelines made by hand. Totals are kept per device and process as timeline/ keeps them.
 */
#include "unit/memory_example.h"

#include <stdlib.h>

#define START_NS 5000000000ULL

#define push_or_abort(v, item)                                                                     \
	do {                                                                                       \
		if (vec_push((v), (item)))                                                         \
			abort();                                                                   \
	} while (0)

void example__init(struct timeline *t)
{
	*t = (struct timeline){.start_ns = START_NS,
			       .end_ns = START_NS + 1000000000,
			       .realtime_offset_ns = 1700000000000000000ULL};
	(void)example__thread(t, example__process(t, 4242, "python3"));
}

void example__done(struct timeline *t)
{
	vec_done(&t->processes);
	vec_done(&t->threads);
	vec_done(&t->ops);
	vec_done(&t->memory);
	vec_done(&t->out_of_memory);
	vec_done(&t->categories);
	vec_done(&t->losses);
}

uint32_t example__process(struct timeline *t, int32_t pid, const char *comm)
{
	struct tl_process p = {.pid = pid, .rank = -1, .comm = comm, .cmdline = comm};

	push_or_abort(&t->processes, p);
	return (uint32_t)t->processes.nr - 1;
}

uint32_t example__thread(struct timeline *t, uint32_t process)
{
	struct tl_thread thread = {.process = process, .comm = "worker"};

	thread.tid = 100 + (uint32_t)t->threads.nr;
	push_or_abort(&t->threads, thread);
	return (uint32_t)t->threads.nr - 1;
}

uint32_t example__op(struct timeline *t, const char *name, uint32_t parent, uint32_t scope)
{
	struct tl_op op = {.name = name, .overload = "", .parent = parent, .scope = scope};

	push_or_abort(&t->ops, op);
	return (uint32_t)t->ops.nr - 1;
}

static uint32_t process_of(const struct timeline *t, uint32_t thread)
{
	return thread < t->threads.nr ? t->threads.items[thread].process : TL_NONE;
}

static int64_t total_before(const struct timeline *t, const struct tl_memory *m)
{
	uint32_t process = process_of(t, m->thread);

	for (size_t i = t->memory.nr; i-- > 0;) {
		const struct tl_memory *o = &t->memory.items[i];

		if (o->device_type == m->device_type && o->device_index == m->device_index &&
		    process_of(t, o->thread) == process)
			return o->total_bytes;
	}
	return 0;
}

static uint32_t add_event(struct timeline *t, struct tl_memory m)
{
	if (__builtin_add_overflow(total_before(t, &m), m.bytes, &m.total_bytes))
		m.total_bytes = INT64_MAX;
	push_or_abort(&t->memory, m);
	return (uint32_t)t->memory.nr - 1;
}

uint32_t example__alloc_on(struct timeline *t, uint64_t time_us, int64_t bytes, uint32_t op,
			   uint32_t thread, int16_t type, int16_t index)
{
	struct tl_memory m = {.time_ns = t->start_ns + time_us * 1000,
			      .address = 0x1000 * (t->memory.nr + 1),
			      .bytes = bytes,
			      .thread = thread,
			      .op = op,
			      .partner = TL_NONE,
			      .device_type = type,
			      .device_index = index};

	return add_event(t, m);
}

uint32_t example__alloc(struct timeline *t, uint64_t time_us, int64_t bytes, uint32_t op)
{
	return example__alloc_on(t, time_us, bytes, op, 0, GP_DEVICE_CPU, -1);
}

uint32_t example__free(struct timeline *t, uint64_t time_us, uint32_t allocation)
{
	struct tl_memory m = t->memory.items[allocation];
	uint32_t event;

	m.time_ns = t->start_ns + time_us * 1000;
	m.bytes = -m.bytes;
	m.op = TL_NONE;
	m.partner = allocation;
	event = add_event(t, m);
	t->memory.items[allocation].partner = event;
	return event;
}

void example__refuse(struct timeline *t, uint64_t time_us, int64_t bytes, uint32_t op, int16_t type,
		     int16_t index)
{
	struct tl_memory m = {.time_ns = t->start_ns + time_us * 1000,
			      .bytes = bytes,
			      .allocated_bytes = 3ULL << 30,
			      .reserved_bytes = 4ULL << 30,
			      .op = op,
			      .partner = TL_NONE,
			      .device_type = type,
			      .device_index = index};

	push_or_abort(&t->out_of_memory, m);
}

void example__change(struct timeline *t, uint64_t time_us, enum tl_change change, int64_t bytes,
		     enum tl_category from, enum tl_category to, uint8_t device)
{
	struct tl_category_change c = {.time_ns = time_us ? t->start_ns + time_us * 1000 : 0,
				       .bytes = bytes,
				       .change = (uint8_t)change,
				       .from = (uint8_t)from,
				       .to = (uint8_t)to,
				       .device = device};

	t->has_categories = true;
	push_or_abort(&t->categories, c);
}

void example__loss(struct timeline *t, const char *name, uint64_t count)
{
	struct tl_loss loss = {.name = name, .count = count};

	push_or_abort(&t->losses, loss);
}
