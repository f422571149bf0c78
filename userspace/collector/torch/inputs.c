/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Encoding the inputs of an op. A tensor's shape is read only if the tensor is of a kind that keeps
 * its sizes where a plain one does, and if the sizes multiply to its number of elements. Any other
 * tensor is encoded as opaque. All counts are bounded.
 */
#include "collector/torch/inputs.h"

#include "collector/runtime/compat.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define INPUTS_SLOTS	   32768 /* a power of two */
#define INPUTS_MAX	   24000
#define INPUTS_ARENA_BYTES (16U << 20)
/* Kept free for the marks of where something was cut. */
#define CUT_BYTES    2
#define VARINT_BYTES 10
#define POINTER_MIN  65536

struct encoder {
	uint8_t *to;
	size_t nr;
	bool full;
	bool values; /* encode those of scalars */
};

/* ---- bytes ---- */

static bool has_room(struct encoder *e, size_t bytes)
{
	if (e->nr + bytes + CUT_BYTES > GP_INPUTS_BYTES_MAX)
		e->full = true;
	return !e->full;
}

static void put(struct encoder *e, uint8_t byte)
{
	e->to[e->nr++] = byte;
}

static void put_varint(struct encoder *e, uint64_t n)
{
	for (; n >= 0x80; n >>= 7)
		put(e, (uint8_t)(n | 0x80));
	put(e, (uint8_t)n);
}

/* ---- tensors ---- */

struct shape {
	size_t dims;
	const int64_t *sizes, *strides;
};

static bool is_sparse(const struct torch_layout *l, const uint64_t *impl)
{
	return impl[0] == l->sparse || impl[0] == l->sparse_rows;
}

/* False: the tensor has no sizes of its own, or its numbers do not agree. */
static bool shape_of(const struct torch_layout *l, const uint64_t *impl, struct shape *ret_shape)
{
	const uint64_t *at = impl + l->sizes;
	struct shape s = {.dims = at[0]};
	uint64_t numel = 1;

	if (impl[0] != l->plain && impl[0] != l->quantized && !is_sparse(l, impl))
		return false;
	if (impl[l->extra] || s.dims > GP_INPUT_DIMS_MAX)
		return false;
	if (s.dims <= LAYOUT_INLINE_DIMS) {
		s.sizes = (const int64_t *)(at + 1);
		s.strides = s.sizes + LAYOUT_INLINE_DIMS;
	} else {
		if (at[1] < POINTER_MIN || at[1] % 8)
			return false;
		s.sizes = (const int64_t *)(uintptr_t)at[1];
		s.strides = s.sizes + s.dims;
	}
	for (size_t i = 0; i < s.dims; i++)
		if (s.sizes[i] < 0 || __builtin_mul_overflow(numel, (uint64_t)s.sizes[i], &numel))
			return false;
	*ret_shape = s;
	return numel == impl[l->numel];
}

/* Whether the strides follow from the sizes, so that they need not be encoded. */
static bool is_dense(const struct shape *s)
{
	int64_t stride = 1;

	for (size_t i = s->dims; i-- > 0;) {
		if (s->strides[i] != stride ||
		    __builtin_mul_overflow(stride, s->sizes[i] ? s->sizes[i] : 1, &stride))
			return false;
	}
	return true;
}

static void put_tensor(struct encoder *e, const struct torch_layout *l, uint64_t payload)
{
	const uint64_t *impl = (const uint64_t *)(uintptr_t)payload;
	enum gp_input what = GP_INPUT_STRIDED;
	uint16_t type = 0;
	struct shape s;

	if (payload < POINTER_MIN || !shape_of(l, impl, &s)) {
		if (has_room(e, 1))
			put(e, GP_INPUT_OPAQUE);
		return;
	}
	memcpy(&type, (const char *)impl + l->type_bytes, sizeof(type));
	if (is_sparse(l, impl))
		what = GP_INPUT_SPARSE;
	else if (is_dense(&s))
		what = GP_INPUT_TENSOR;
	if (!has_room(e, 3 + (what == GP_INPUT_STRIDED ? 2 : 1) * s.dims * VARINT_BYTES))
		return;
	put(e, (uint8_t)what);
	put(e, type < 255 ? (uint8_t)type : 255);
	put(e, (uint8_t)s.dims);
	for (size_t i = 0; i < s.dims; i++)
		put_varint(e, (uint64_t)s.sizes[i]);
	for (size_t i = 0; i < s.dims && what == GP_INPUT_STRIDED; i++)
		put_varint(e, (uint64_t)s.strides[i]);
}

/* ---- values ---- */

static bool is_scalar(const struct torch_layout *l, const struct torch_value *v)
{
	return v->tag == l->integer || v->tag == l->real || v->tag == l->boolean;
}

static void put_scalar(struct encoder *e, const struct torch_layout *l, const struct torch_value *v)
{
	if (!has_room(e, 1 + VARINT_BYTES))
		return;
	if (!e->values) {
		put(e, GP_INPUT_NO_VALUE);
	} else if (v->tag == l->integer) {
		put(e, GP_INPUT_INT);
		put_varint(e, v->payload << 1 ^ (v->payload >> 63 ? UINT64_MAX : 0));
	} else if (v->tag == l->real) {
		put(e, GP_INPUT_DOUBLE);
		memcpy(e->to + e->nr, &v->payload, sizeof(v->payload));
		e->nr += sizeof(v->payload);
	} else {
		put(e, v->payload & 0xff ? GP_INPUT_TRUE : GP_INPUT_FALSE);
	}
}

/* Encodes a list. Its count is corrected if the list had to be cut. */
static void put_items(struct encoder *e, const struct torch_layout *l,
		      const struct torch_value *items, size_t nr, bool tensors)
{
	size_t count_at, done;

	if (!has_room(e, 2))
		return;
	put(e, tensors ? GP_INPUT_TENSOR_LIST : GP_INPUT_SCALAR_LIST);
	count_at = e->nr;
	put(e, 0);
	for (done = 0; done < nr && done < GP_INPUT_ITEMS_MAX; done++) {
		if (tensors)
			put_tensor(e, l, items[done].payload);
		else
			put_scalar(e, l, &items[done]);
		if (e->full)
			break;
	}
	e->to[count_at] = (uint8_t)done;
	if (done == nr)
		return;
	e->to[count_at]++;
	put(e, GP_INPUT_CUT);
}

static void put_list(struct encoder *e, const struct torch_layout *l, uint64_t payload)
{
	const uint64_t *list = (const uint64_t *)(uintptr_t)payload;
	const struct torch_value *items;
	uint32_t tag;
	size_t nr;

	if (payload < POINTER_MIN || list[l->items + 1] < list[l->items] ||
	    (list[l->items + 1] - list[l->items]) % sizeof(*items))
		goto other;
	items = (const struct torch_value *)(uintptr_t)list[l->items];
	nr = (list[l->items + 1] - list[l->items]) / sizeof(*items);
	tag = list[l->item_type] == l->tensor_type ? l->tensor : l->integer;
	for (size_t i = 0; i < nr && i < GP_INPUT_ITEMS_MAX; i++)
		if (tag == l->tensor ? items[i].tag != tag : !is_scalar(l, &items[i]))
			goto other;
	put_items(e, l, items, nr, tag == l->tensor);
	return;
other:
	if (has_room(e, 1))
		put(e, GP_INPUT_OTHER);
}

static void put_value(struct encoder *e, const struct torch_layout *l, const struct torch_value *v)
{
	if (v->tag == l->tensor)
		put_tensor(e, l, v->payload);
	else if (v->tag == l->list)
		put_list(e, l, v->payload);
	else if (is_scalar(l, v))
		put_scalar(e, l, v);
	else if (has_room(e, 1))
		put(e, GP_INPUT_OTHER);
}

size_t inputs_encode(const struct torch_layout *l, const void *record, bool values, uint8_t *to)
{
	const uint64_t *words = record;
	const struct torch_value *v = (const struct torch_value *)(uintptr_t)words[l->inputs];
	uint64_t nr = words[l->inputs + 1];
	struct encoder e = {.to = to, .values = values};

	if ((uint64_t)(uintptr_t)v < POINTER_MIN || (uint64_t)(uintptr_t)v % 8)
		return 0;
	for (uint64_t i = 0; i < nr && !e.full; i++) {
		if (i == GP_INPUTS_MAX)
			e.full = true;
		else
			put_value(&e, l, &v[i]);
	}
	if (e.full)
		put(&e, GP_INPUT_CUT);
	return e.nr;
}

/* ---- ids ---- */

struct known {
	uint64_t hash;
	uint32_t id;
	uint32_t bytes;
	uint8_t data[];
};

struct inputs {
	uint32_t next_id;
	uint32_t used_bytes;
	struct known *slots[INPUTS_SLOTS];
	unsigned char arena[INPUTS_ARENA_BYTES] __attribute__((aligned(8)));
};

struct inputs *inputs__new(void)
{
	void *p = mmap(NULL, sizeof(struct inputs), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void inputs__free(struct inputs *n)
{
	if (n)
		(void)munmap(n, sizeof(*n));
}

bool inputs__have_room(const struct inputs *n)
{
	return __atomic_load_n(&n->next_id, __ATOMIC_RELAXED) < INPUTS_MAX / 2 &&
	       __atomic_load_n(&n->used_bytes, __ATOMIC_RELAXED) < INPUTS_ARENA_BYTES / 2;
}

static uint64_t hash_of(const uint8_t *data, size_t bytes)
{
	uint64_t h = 0xcbf29ce484222325ULL ^ bytes, word;

	for (; bytes >= 8; bytes -= 8, data += 8) {
		memcpy(&word, data, 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, data, bytes);
	h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 29;
}

static struct known *add(struct inputs *n, uint64_t hash, const uint8_t *data, uint32_t bytes)
{
	uint32_t need = (uint32_t)(sizeof(struct known) + bytes + 7) & ~7U;
	uint32_t at = __atomic_load_n(&n->used_bytes, __ATOMIC_RELAXED);
	struct known *k;

	do {
		if (at + need > INPUTS_ARENA_BYTES)
			return NULL;
	} while (!__atomic_compare_exchange_n(&n->used_bytes, &at, at + need, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	k = (struct known *)(n->arena + at);
	k->hash = hash;
	k->id = __atomic_add_fetch(&n->next_id, 1, __ATOMIC_RELAXED);
	k->bytes = bytes;
	memcpy(k->data, data, bytes);
	return k;
}

/* Reserves in the ring first: what cannot be announced must not use up the arena. */
static struct known *announce(struct inputs *n, struct ring_writer *w, uint64_t hash,
			      const uint8_t *data, uint32_t bytes)
{
	struct gp_ev_inputs ev = {.head.kind = GP_EV_INPUTS};
	uint64_t position;
	struct known *k;

	if (__atomic_load_n(&n->next_id, __ATOMIC_RELAXED) >= INPUTS_MAX ||
	    !ring_writer__reserve(w, sizeof(ev) + ((bytes + 7U) & ~(size_t)7), &position))
		return NULL;
	k = add(n, hash, data, bytes);
	if (k) {
		ev.inputs_id = k->id;
		ev.bytes = bytes;
	}
	ring_writer__fill(w, position, 0, &ev, sizeof(ev));
	/* The ring's free bytes are zero, so the padding is. */
	ring_writer__fill(w, position, sizeof(ev), data, bytes);
	ring_writer__commit(w, position);
	return k;
}

uint32_t inputs__id(struct inputs *n, struct ring_writer *w, const uint8_t *data, size_t bytes)
{
	uint64_t hash = hash_of(data, bytes);
	uint32_t i = (uint32_t)hash & (INPUTS_SLOTS - 1);
	struct known *mine = NULL;

	if (!bytes)
		return 0;
	for (;; i = (i + 1) & (INPUTS_SLOTS - 1)) {
		struct known *there = __atomic_load_n(&n->slots[i], __ATOMIC_ACQUIRE);

		if (!there && !mine) {
			mine = announce(n, w, hash, data, (uint32_t)bytes);
			if (!mine)
				return GP_INPUTS_LOST;
		}
		if (!there && __atomic_compare_exchange_n(&n->slots[i], &there, mine, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return mine->id;
		if (there->hash == hash && there->bytes == bytes &&
		    !memcmp(there->data, data, bytes))
			return there->id;
	}
}
