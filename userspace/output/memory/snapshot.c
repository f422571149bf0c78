/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A memory snapshot for PyTorch's memory_viz, as torch.cuda.memory._snapshot() returns it: the
 * allocations and frees of each device in order, and what was alive at the end. CUDA's device n is
 * number n, and the CPU follows the last one, as in torch.profiler's snapshots. The segments of
 * PyTorch's allocator are not known: each run of adjacent allocations stands for one.
 */
#include "output/format/output.h"
#include "output/format/output_format.h"
#include "output/memory/pickle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"

/* More devices than any machine has. */
#define DEVICES_MAX 1024

struct block {
	uint64_t address;
	int64_t bytes;
	uint32_t stack_id;
	uint32_t device;
};

struct snapshot {
	struct pickle p;
	const struct timeline *t;
	uint32_t process;
	uint32_t devices_nr; /* the CPU the last of them */
	struct hash frames;  /* stack id -> place in the memo */
	VEC(struct block) blocks;
};

static void snapshot__done(struct snapshot *s)
{
	pickle__done(&s->p);
	hash__done(&s->frames);
	vec_done(&s->blocks);
}

static bool is_ours(const struct snapshot *s, const struct tl_memory *m)
{
	return s->t->threads.items[m->thread].process == s->process &&
	       (m->device_type == GP_DEVICE_CPU ||
		(m->device_type == GP_DEVICE_CUDA && m->device_index >= 0 &&
		 m->device_index < DEVICES_MAX));
}

static uint32_t device_of(const struct snapshot *s, const struct tl_memory *m)
{
	return m->device_type == GP_DEVICE_CPU ? s->devices_nr - 1 : (uint32_t)m->device_index;
}

static void count_devices(struct snapshot *s)
{
	s->devices_nr = 1;
	for (size_t i = 0; i < s->t->memory.nr + s->t->out_of_memory.nr; i++) {
		const struct tl_memory *m =
			i < s->t->memory.nr ? &s->t->memory.items[i]
					    : &s->t->out_of_memory.items[i - s->t->memory.nr];

		if (is_ours(s, m) && m->device_type == GP_DEVICE_CUDA &&
		    (uint32_t)m->device_index + 2 > s->devices_nr)
			s->devices_nr = (uint32_t)m->device_index + 2;
	}
}

/* ---- stacks ---- */

static void add_frames(struct snapshot *s, uint32_t stack_id)
{
	const uint64_t *known = hash__find(&s->frames, stack_id);
	const uint32_t *frames = NULL;
	size_t nr = 0;

	pickle__text(&s->p, "frames");
	if (known) {
		pickle__again(&s->p, (uint32_t)*known);
		return;
	}
	if (stack_id)
		frames = recording__stack(s->t->recording, stack_id, &nr, NULL);
	pickle__list(&s->p);
	for (size_t i = 0; i < nr; i++) {
		struct recording_frame f = recording__frame(s->t->recording, frames[i]);

		pickle__dict(&s->p);
		pickle__key_text(&s->p, "filename", f.file);
		pickle__key_int(&s->p, "line", f.line);
		pickle__key_text(&s->p, "name", f.function);
		pickle__dict_end(&s->p);
	}
	pickle__list_end(&s->p);
	if (hash__set(&s->frames, stack_id, pickle__remember(&s->p)))
		s->p.err = s->p.err ? s->p.err : -ENOMEM;
}

/* ---- what happened ---- */

static void add_entry(struct snapshot *s, const char *action, const struct tl_memory *m,
		      uint32_t stack_id)
{
	uint64_t unix_ns = m->time_ns + s->t->realtime_offset_ns;

	pickle__dict(&s->p);
	pickle__key_text(&s->p, "action", action);
	pickle__key_int(&s->p, "addr", (int64_t)m->address);
	pickle__key_int(&s->p, "size", m->bytes < 0 ? -m->bytes : m->bytes);
	pickle__key_int(&s->p, "stream", 0);
	pickle__key_int(&s->p, "time_us", (int64_t)(unix_ns / 1000));
	add_frames(s, stack_id);
}

static void add_event(struct snapshot *s, const struct tl_memory *m)
{
	/* A free has the stack of its allocation, as memory_viz shows it. */
	uint32_t stack_id = m->partner != TL_NONE && m->bytes < 0
				    ? s->t->memory.items[m->partner].stack_id
				    : m->stack_id;

	add_entry(s, m->bytes < 0 ? "free_requested" : "alloc", m, stack_id);
	pickle__dict_end(&s->p);
	if (m->bytes >= 0)
		return;
	add_entry(s, "free_completed", m, stack_id);
	pickle__dict_end(&s->p);
}

/* How much the device had left is not known. */
static void add_refused(struct snapshot *s, const struct tl_memory *m)
{
	add_entry(s, "oom", m, m->stack_id);
	pickle__key_int(&s->p, "device_free", -1);
	pickle__dict_end(&s->p);
}

static void add_trace(struct snapshot *s, uint32_t device)
{
	const struct timeline *t = s->t;
	size_t refused = 0;

	pickle__list(&s->p);
	for (size_t i = 0; i <= t->memory.nr && !s->p.err; i++) {
		const struct tl_memory *m = i < t->memory.nr ? &t->memory.items[i] : NULL;

		for (; refused < t->out_of_memory.nr; refused++) {
			const struct tl_memory *o = &t->out_of_memory.items[refused];

			if (m && o->time_ns > m->time_ns)
				break;
			if (is_ours(s, o) && device_of(s, o) == device)
				add_refused(s, o);
		}
		if (m && is_ours(s, m) && device_of(s, m) == device && m->bytes)
			add_event(s, m);
	}
	pickle__list_end(&s->p);
}

/* ---- what was alive at the end ---- */

static int compare_blocks(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

/* The last allocation of an address counts: others of it were freed unseen. */
static int find_blocks(struct snapshot *s)
{
	const struct timeline *t = s->t;
	struct hash last = {0};
	int err = 0;

	for (size_t i = 0; i < t->memory.nr && !err; i++)
		if (is_ours(s, &t->memory.items[i]))
			err = hash__set(&last,
					t->memory.items[i].address ^
						(uint64_t)device_of(s, &t->memory.items[i]) << 52,
					i);
	for (size_t i = 0; i < t->memory.nr && !err; i++) {
		const struct tl_memory *m = &t->memory.items[i];
		struct block b = {m->address, m->bytes, m->stack_id, 0};
		const uint64_t *at;

		if (!is_ours(s, m) || m->bytes <= 0 || m->partner != TL_NONE)
			continue;
		b.device = device_of(s, m);
		at = hash__find(&last, m->address ^ (uint64_t)b.device << 52);
		if (at && *at == i)
			err = vec_push(&s->blocks, b);
	}
	hash__done(&last);
	if (s->blocks.nr)
		qsort(s->blocks.items, s->blocks.nr, sizeof(struct block), compare_blocks);
	return err;
}

static void add_block(struct snapshot *s, const struct block *b)
{
	pickle__dict(&s->p);
	pickle__key_int(&s->p, "address", (int64_t)b->address);
	pickle__key_int(&s->p, "size", b->bytes);
	pickle__key_int(&s->p, "requested_size", b->bytes);
	pickle__key_text(&s->p, "state", "active_allocated");
	add_frames(s, b->stack_id);
	pickle__dict_end(&s->p);
}

/* The blocks from `from` on that follow each other without a gap; where the next segment begins. */
static size_t add_segment(struct snapshot *s, size_t from)
{
	const struct block *first = &s->blocks.items[from];
	uint64_t bytes = (uint64_t)first->bytes;
	size_t to = from + 1;

	while (to < s->blocks.nr && s->blocks.items[to].device == first->device &&
	       s->blocks.items[to].address == first->address + bytes)
		bytes += (uint64_t)s->blocks.items[to++].bytes;
	pickle__dict(&s->p);
	pickle__key_int(&s->p, "device", first->device);
	pickle__key_int(&s->p, "address", (int64_t)first->address);
	pickle__key_int(&s->p, "total_size", (int64_t)bytes);
	pickle__key_int(&s->p, "stream", 0);
	pickle__key_text(&s->p, "segment_type", "large");
	pickle__key_int(&s->p, "allocated_size", (int64_t)bytes);
	pickle__key_int(&s->p, "active_size", (int64_t)bytes);
	pickle__key_int(&s->p, "requested_size", (int64_t)bytes);
	add_frames(s, 0);
	pickle__text(&s->p, "blocks");
	pickle__list(&s->p);
	for (size_t i = from; i < to; i++)
		add_block(s, &s->blocks.items[i]);
	pickle__list_end(&s->p);
	pickle__dict_end(&s->p);
	return to;
}

static void add_all(struct snapshot *s)
{
	pickle__dict(&s->p);
	pickle__text(&s->p, "segments");
	pickle__list(&s->p);
	for (size_t i = 0; i < s->blocks.nr && !s->p.err;)
		i = add_segment(s, i);
	pickle__list_end(&s->p);
	pickle__text(&s->p, "device_traces");
	pickle__list(&s->p);
	for (uint32_t i = 0; i < s->devices_nr; i++)
		add_trace(s, i);
	pickle__list_end(&s->p);
	pickle__text(&s->p, "external_annotations");
	pickle__list(&s->p);
	pickle__list_end(&s->p);
	pickle__text(&s->p, "allocator_settings");
	pickle__dict(&s->p);
	pickle__dict_end(&s->p);
	pickle__dict_end(&s->p);
}

int output_snapshot(struct sink *sink, const struct timeline *t, uint32_t process)
{
	CLEANUP(snapshot__done) struct snapshot s = {.t = t, .process = process};
	int err;

	pickle__begin(&s.p, sink);
	count_devices(&s);
	err = find_blocks(&s);
	if (err)
		return err;
	add_all(&s);
	return pickle__end(&s.p);
}

int output_format_snapshot(struct sink *s, const struct timeline *t,
			   const struct output_request *request)
{
	return output_snapshot(s, t, request->process);
}
