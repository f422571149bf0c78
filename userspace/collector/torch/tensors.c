/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Recording where the tensors of an op are stored. Only plain and quantized tensors are read, as
 * with their shapes; their layout was verified with known tensors. Each event is filled on the
 * stack.
 */
#include "collector/torch/tensors.h"

#include "collector/runtime/compat.h"

#include <stdbool.h>
#include <string.h>

#define WORDS	    ((GP_RING_EVENT_BYTES - sizeof(struct gp_ev_tensors)) / 8)
#define POINTER_MIN 65536
#define ADDRESS_END (1ULL << 48)
#define WHAT_SHIFT  56

struct sender {
	const struct torch_layout *l;
	struct ring_writer *w;
	bool full; /* the rest of this op is dropped: the ring is full, or it has too many inputs */
	struct {
		struct gp_ev_tensors ev;
		uint64_t words[WORDS];
	} out;
};

static void send(struct sender *s)
{
	struct gp_ev_tensors *ev = &s->out.ev;

	if (!ev->words_nr)
		return;
	if (!ring_writer__write(s->w, &s->out, sizeof(*ev) + (size_t)ev->words_nr * 8))
		s->full = true;
	ev->first += ev->words_nr;
	ev->words_nr = 0;
}

static void put(struct sender *s, uint64_t what, uint64_t word)
{
	if (s->full)
		return;
	s->out.words[s->out.ev.words_nr++] = what << WHAT_SHIFT | word;
	if (s->out.ev.words_nr == WORDS)
		send(s);
}

/* c10::Device: two signed bytes. */
static uint64_t device_of(uint64_t word)
{
	int8_t type = (int8_t)word, index = (int8_t)(word >> 8);

	if (type == GP_DEVICE_CPU)
		return GP_TENSOR_CPU;
	if (type == GP_DEVICE_CUDA && index >= 0)
		return GP_TENSOR_CUDA + (uint64_t)index;
	return GP_TENSOR_OTHER;
}

static void put_tensor(struct sender *s, uint64_t payload)
{
	const struct torch_layout *l = s->l;
	const uint64_t *impl = (const uint64_t *)(uintptr_t)payload, *storage;

	if (payload < POINTER_MIN || (impl[0] != l->plain && impl[0] != l->quantized) ||
	    impl[l->storage] < POINTER_MIN || impl[l->storage] % 8) {
		put(s, GP_TENSOR_NONE, 0);
		return;
	}
	storage = (const uint64_t *)(uintptr_t)impl[l->storage];
	if (!storage[l->data] || storage[l->data] >= ADDRESS_END) {
		put(s, GP_TENSOR_NONE, 0);
		return;
	}
	put(s, GP_TENSOR_STORED, device_of(storage[l->device]) << 48 | storage[l->data]);
	put(s, 0, storage[l->storage_bytes]);
}

/* Finds the items of a list of tensors. False: it is another list. */
static bool list_of(const struct torch_layout *l, uint64_t payload,
		    const struct torch_value **ret_items, uint64_t *ret_nr)
{
	const uint64_t *list = (const uint64_t *)(uintptr_t)payload;

	if (payload < POINTER_MIN || list[l->item_type] != l->tensor_type ||
	    list[l->items + 1] < list[l->items] ||
	    (list[l->items + 1] - list[l->items]) % sizeof(**ret_items))
		return false;
	*ret_items = (const struct torch_value *)(uintptr_t)list[l->items];
	*ret_nr = (list[l->items + 1] - list[l->items]) / sizeof(**ret_items);
	return true;
}

static bool has_room(struct sender *s, uint64_t words)
{
	if (s->out.ev.first + s->out.ev.words_nr + words < GP_TENSOR_WORDS_MAX)
		return !s->full;
	put(s, GP_TENSOR_CUT, 0);
	send(s);
	s->full = true;
	return false;
}

static void put_value(struct sender *s, const struct torch_value *v)
{
	const struct torch_value *items;
	uint64_t nr;

	if (v->tag == s->l->tensor) {
		if (has_room(s, 2))
			put_tensor(s, v->payload);
	} else if (v->tag == s->l->list && list_of(s->l, v->payload, &items, &nr)) {
		/* A list is written whole or not at all. */
		if (nr >= GP_TENSOR_WORDS_MAX || !has_room(s, 1 + 2 * nr)) {
			(void)has_room(s, GP_TENSOR_WORDS_MAX);
			return;
		}
		put(s, GP_TENSOR_LIST, nr);
		for (uint64_t i = 0; i < nr; i++)
			put_tensor(s, items[i].tag == s->l->tensor ? items[i].payload : 0);
	} else if (has_room(s, 1)) {
		put(s, GP_TENSOR_NOT, 0);
	}
}

void tensors_write(const struct torch_layout *l, struct ring_writer *w, const void *record,
		   const struct gp_ev_head *head, uint64_t instance)
{
	const uint64_t *words = record;
	const struct torch_value *v = (const struct torch_value *)(uintptr_t)words[l->inputs];
	uint64_t nr = words[l->inputs + 1];
	struct sender s;

	if ((uint64_t)(uintptr_t)v < POINTER_MIN || (uint64_t)(uintptr_t)v % 8)
		return;
	s.l = l;
	s.w = w;
	s.full = false;
	s.out.ev = (struct gp_ev_tensors){.head = *head, .instance = instance};
	s.out.ev.head.kind = GP_EV_TENSORS;
	for (uint64_t i = 0; i < nr && !s.full; i++)
		put_value(&s, &v[i]);
	if (!s.full)
		send(&s);
}
