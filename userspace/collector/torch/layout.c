/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finding the layout. The operators are called through exported functions, whose mangled names fix
 * their arguments. A callback reads the record while the op runs. A pointer is followed only where
 * it must be valid: into the stack of the thread that is in the op, or out of an object whose other
 * members have the expected values. The operators work on a few hundred numbers on the CPU, so only
 * a lack of memory could make them throw.
 */
#include "collector/torch/layout.h"

#include "collector/runtime/compat.h"
#include "collector/runtime/symbol.h"

#include <pthread.h>
#include <string.h>

#define TENSOR_WORDS 23 /* no TensorImpl is smaller */
#define LIST_WORDS   6	/* no ListImpl is smaller */
#define RECORD_WORDS 64
#define STACK_BYTES  65536
#define POINTER_MIN  65536
#define HALF_BITS    0x3fd0000000000000ULL /* 0.25 */
#define SCOPE_OP     0

/* Behind a record on the stack lie our own frames, too, which AddressSanitizer would object to. */
#define FRAMES_READ __attribute__((no_sanitize("address")))

/* at::Tensor: one pointer. Returned in memory of the caller. */
struct ops_api {
	void (*zeros)(const uint64_t **ret, const int64_t *sizes, size_t nr, uint64_t dtype,
		      uint64_t layout, uint64_t device, uint64_t pinned);
	void (*to_byte)(const uint64_t **ret, const uint64_t *const *self, bool non_blocking);
	void (*to_half)(const uint64_t **ret, const uint64_t *const *self, bool non_blocking);
	void (*to_double)(const uint64_t **ret, const uint64_t *const *self, bool non_blocking);
	void (*to_long)(const uint64_t **ret, const uint64_t *const *self, bool non_blocking);
	void (*transpose)(const uint64_t **ret, const uint64_t *const *self);
	void (*dropout)(const uint64_t **ret, const uint64_t *const *self, double p, bool train);
	void (*stack)(const uint64_t **ret, const uint64_t *const *tensors, size_t nr, int64_t dim);
	void (*set_requires_grad)(const uint64_t *impl, bool on);
};

/* The known tensors. */
enum { CUBE, SECOND, BYTE, HALF, DOUBLE, LONG, FLAT, TURNED, LONG_SHAPE, KNOWN_NR };

struct known {
	const uint64_t *impl[KNOWN_NR];
	const uint64_t *result[2];
};

static struct {
	pthread_t thread;
	const struct torch_api *api;
	struct torch_layout *layout;
	const uint64_t *first, *second; /* tensors that the op is called with */
	unsigned found_nr, seen_nr;
	bool list_ok;
} probe;

/* ---- the inputs in a record ---- */

static bool on_stack(uint64_t address, const void *record)
{
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);

	return address > here && address % 8 == 0 &&
	       address < (uint64_t)(uintptr_t)record + STACK_BYTES;
}

/* Finds the inputs and the tags of three kinds of values, in dropout(t, 0.25, false). */
FRAMES_READ static void find_inputs(const uint64_t *record)
{
	struct torch_layout *l = probe.layout;

	for (size_t at = 0; at + 1 < RECORD_WORDS; at++) {
		const struct torch_value *v = (const struct torch_value *)(uintptr_t)record[at];

		if (record[at + 1] != 3 || !on_stack(record[at], record))
			continue;
		if (v[0].payload != (uint64_t)(uintptr_t)probe.first || v[1].payload != HALF_BITS ||
		    (v[2].payload & 0xff) || v[0].tag == v[1].tag || v[1].tag == v[2].tag ||
		    v[0].tag == v[2].tag)
			continue;
		l->inputs = at;
		l->tensor = v[0].tag;
		l->real = v[1].tag;
		l->boolean = v[2].tag;
		probe.found_nr++;
	}
}

/* Finds the items in a list of our two tensors. */
static bool find_items(const uint64_t *list)
{
	struct torch_layout *l = probe.layout;

	if ((uint64_t)(uintptr_t)list < POINTER_MIN)
		return false;
	for (size_t at = 1; at + 3 <= LIST_WORDS; at++) {
		const struct torch_value *v = (const struct torch_value *)(uintptr_t)list[at];

		if (list[at] < POINTER_MIN || list[at] % 8 ||
		    list[at + 1] - list[at] != 2 * sizeof(*v) || list[at + 2] < list[at + 1])
			continue;
		if (v[0].payload != (uint64_t)(uintptr_t)probe.first || v[0].tag != l->tensor ||
		    v[1].payload != (uint64_t)(uintptr_t)probe.second || v[1].tag != l->tensor)
			return false;
		l->items = at;
		l->item_type = at + 3;
		l->tensor_type = list[at + 3];
		return l->tensor_type >= POINTER_MIN;
	}
	return false;
}

/* Finds the tags of lists and integers, and the layout of lists, in stack([a, b], 1). */
FRAMES_READ static void find_list(const uint64_t *record)
{
	struct torch_layout *l = probe.layout;
	const struct torch_value *v = (const struct torch_value *)(uintptr_t)record[l->inputs];

	if (record[l->inputs + 1] != 2 || !on_stack(record[l->inputs], record) ||
	    v[1].payload != 1 || v[0].tag == v[1].tag)
		return;
	l->list = v[0].tag;
	l->integer = v[1].tag;
	if (l->list == l->tensor || l->list == l->real || l->list == l->boolean ||
	    l->integer == l->tensor || l->integer == l->real || l->integer == l->boolean)
		return;
	probe.list_ok = find_items((const uint64_t *)(uintptr_t)v[0].payload);
}

FRAMES_READ static void *on_known_op(void **ret_context, const void *record)
{
	const char *name;

	*ret_context = NULL;
	if (!pthread_equal(probe.thread, pthread_self()))
		return ret_context;
	name = probe.api->record_name(record);
	if (name && !strcmp(name, "aten::dropout")) {
		probe.seen_nr++;
		find_inputs(record);
	} else if (name && !strcmp(name, "aten::stack") && probe.found_nr == 1) {
		probe.seen_nr++;
		find_list(record);
	}
	return ret_context;
}

static void on_known_op_end(const void *record, void *context)
{
}

static const char *find_values(const struct ops_api *o, struct known *k)
{
	struct torch_callback callback = {
		.start = on_known_op,
		.end = on_known_op_end,
		.probability = 1.0,
		.needs_inputs = 1,
	};
	const uint64_t *two[2] = {k->impl[CUBE], k->impl[SECOND]};
	uint64_t handle;

	probe.first = two[0];
	probe.second = two[1];
	callback.scopes[SCOPE_OP] = 1;
	handle = torch_api__add(probe.api, callback);
	o->dropout(&k->result[0], &k->impl[CUBE], 0.25, false);
	if (probe.found_nr == 1)
		o->stack(&k->result[1], two, 2, 1);
	torch_api__remove(probe.api, handle);
	if (probe.seen_nr != 2 || probe.found_nr != 1)
		return "shapes: the inputs of a known operator were not found";
	return probe.list_ok ? NULL : "shapes: a list of known tensors was not found";
}

/* ---- tensors ---- */

static bool has_shape(const uint64_t *impl, size_t at, const int64_t *sizes, const int64_t *strides,
		      size_t nr)
{
	const uint64_t *inside = impl + at + 1;

	if (impl[at] != nr)
		return false;
	if (nr <= LAYOUT_INLINE_DIMS)
		return !memcmp(inside, sizes, nr * 8) &&
		       !memcmp(inside + LAYOUT_INLINE_DIMS, strides, nr * 8);
	if (impl[at + 1] < POINTER_MIN || impl[at + 1] % 8)
		return false;
	inside = (const uint64_t *)(uintptr_t)impl[at + 1];
	return !memcmp(inside, sizes, nr * 8) && !memcmp(inside + nr, strides, nr * 8);
}

static const int64_t cube_sizes[] = {3, 5, 7}, cube_strides[] = {35, 7, 1};
static const int64_t flat_sizes[] = {3, 5};
static const int64_t turned_sizes[] = {5, 3}, turned_strides[] = {1, 5};
static const int64_t long_sizes[] = {2, 1, 3, 1, 2, 1}, long_strides[] = {6, 6, 2, 2, 1, 1};

static bool find_shape(struct torch_layout *l, const struct known *k)
{
	size_t shapes_nr = 0, numels_nr = 0;

	for (size_t at = 1; at < TENSOR_WORDS; at++) {
		if (at + 1 + LAYOUT_INLINE_DIMS + 3 <= TENSOR_WORDS &&
		    has_shape(k->impl[CUBE], at, cube_sizes, cube_strides, 3)) {
			l->sizes = at;
			shapes_nr++;
		}
		if (k->impl[CUBE][at] == 105 && k->impl[TURNED][at] == 15 &&
		    k->impl[LONG_SHAPE][at] == 12) {
			l->numel = at;
			numels_nr++;
		}
	}
	return shapes_nr == 1 && numels_nr == 1 &&
	       has_shape(k->impl[TURNED], l->sizes, turned_sizes, turned_strides, 2) &&
	       has_shape(k->impl[LONG_SHAPE], l->sizes, long_sizes, long_strides, 6);
}

static uint16_t type_at(const uint64_t *impl, size_t at)
{
	uint16_t type;

	memcpy(&type, (const char *)impl + at, sizeof(type));
	return type;
}

static bool find_type(struct torch_layout *l, const struct known *k)
{
	size_t nr = 0;

	for (size_t at = 8; at + 2 <= TENSOR_WORDS * 8; at += 2) {
		if (type_at(k->impl[BYTE], at) != 0 || type_at(k->impl[HALF], at) != 5 ||
		    type_at(k->impl[DOUBLE], at) != 7 || type_at(k->impl[LONG], at) != 4)
			continue;
		l->type_bytes = at;
		nr++;
	}
	return nr == 1;
}

/*
 * Finds the pointer to ExtraMeta, which tensors with symbolic sizes have. It follows the pointer to
 * the autograd data, which requiring a gradient sets. The version follows, which every tensor has.
 */
static bool find_extra(struct torch_layout *l, const struct ops_api *o, const struct known *k)
{
	const uint64_t *impl = k->impl[CUBE];
	uint64_t before[TENSOR_WORDS];
	size_t at = 0, nr = 0;

	memcpy(before, impl, sizeof(before));
	o->set_requires_grad(impl, true);
	for (size_t i = 1; i < TENSOR_WORDS; i++) {
		if (before[i] == impl[i])
			continue;
		at = i;
		nr++;
	}
	if (nr != 1 || before[at] || impl[at] < POINTER_MIN || at + 2 >= l->sizes)
		return false;
	for (size_t i = 0; i < KNOWN_NR; i++)
		if (k->impl[i][at + 1] || k->impl[i][at + 2] < POINTER_MIN)
			return false;
	l->extra = at + 1;
	return true;
}

static bool find_plain(struct torch_layout *l, const struct known *k)
{
	l->plain = k->impl[CUBE][0];
	for (size_t i = 0; i < KNOWN_NR; i++)
		if (k->impl[i][0] != l->plain)
			return false;
	return l->plain >= POINTER_MIN;
}

/* The first word of objects of a class, by the symbol of its vtable: the address behind the
 * offset to top and the type information. 1: the symbol is not exported. */
static uint64_t first_word(void *library, const char *vtable)
{
	uint64_t address = (uint64_t)(uintptr_t)dlsym(library, vtable);

	return address ? address + 16 : 1;
}

static void find_others(struct torch_layout *l, void *library)
{
	l->quantized = first_word(library, "_ZTVN2at11QTensorImplE");
	l->sparse = first_word(library, "_ZTVN2at16SparseTensorImplE");
	l->sparse_rows = first_word(library, "_ZTVN2at19SparseCsrTensorImplE");
}

static bool make_known(const struct ops_api *o, struct known *k)
{
	o->zeros(&k->impl[CUBE], cube_sizes, 3, 0, 0, 0, 0);
	o->zeros(&k->impl[SECOND], cube_sizes, 3, 0, 0, 0, 0);
	o->zeros(&k->impl[LONG_SHAPE], long_sizes, 6, 0, 0, 0, 0);
	o->zeros(&k->impl[FLAT], flat_sizes, 2, 0, 0, 0, 0);
	o->transpose(&k->impl[TURNED], &k->impl[FLAT]);
	o->to_byte(&k->impl[BYTE], &k->impl[CUBE], false);
	o->to_half(&k->impl[HALF], &k->impl[CUBE], false);
	o->to_double(&k->impl[DOUBLE], &k->impl[CUBE], false);
	o->to_long(&k->impl[LONG], &k->impl[CUBE], false);
	for (size_t i = 0; i < KNOWN_NR; i++)
		if ((uint64_t)(uintptr_t)k->impl[i] < POINTER_MIN)
			return false;
	return true;
}

/* ---- the functions ---- */

/* PyTorch 2.x uses std::optional. Empty, both kinds are zeros in a register. */
static bool find_zeros(void *l, struct ops_api *o)
{
	return symbol_find(l,
			   "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEESt8optionalINS2_"
			   "10ScalarTypeEES6_INS2_6LayoutEES6_INS2_6DeviceEES6_IbE",
			   &o->zeros) ||
	       symbol_find(l,
			   "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEENS2_8optionalINS2_"
			   "10ScalarTypeEEENS6_INS2_6LayoutEEENS6_INS2_6DeviceEEENS6_IbEE",
			   &o->zeros);
}

static bool find_ops(void *l, struct ops_api *o)
{
	return find_zeros(l, o) &&
	       symbol_find(l, "_ZN2at4_ops10_cast_Byte4callERKNS_6TensorEb", &o->to_byte) &&
	       symbol_find(l, "_ZN2at4_ops10_cast_Half4callERKNS_6TensorEb", &o->to_half) &&
	       symbol_find(l, "_ZN2at4_ops12_cast_Double4callERKNS_6TensorEb", &o->to_double) &&
	       symbol_find(l, "_ZN2at4_ops10_cast_Long4callERKNS_6TensorEb", &o->to_long) &&
	       symbol_find(l, "_ZN2at4_ops1t4callERKNS_6TensorE", &o->transpose) &&
	       symbol_find(l, "_ZN2at4_ops7dropout4callERKNS_6TensorEdb", &o->dropout) &&
	       symbol_find(l, "_ZN2at4_ops5stack4callEN3c108ArrayRefINS_6TensorEEEl", &o->stack) &&
	       symbol_find(l, "_ZN3c1010TensorImpl17set_requires_gradEb", &o->set_requires_grad);
}

/* Kept for good: no exported function frees a tensor. */
static struct known known;

const char *torch_layout__find(struct torch_layout *l, const struct torch_api *t)
{
	struct ops_api o = {0};
	const char *why;

	if (l->verified)
		return NULL;
#ifndef __x86_64__
	return "shapes: not built for this processor yet";
#endif
	if (!find_ops(t->library, &o))
		return "shapes: this PyTorch does not export what they need";
	memset(&probe, 0, sizeof(probe));
	probe.thread = pthread_self();
	probe.api = t;
	probe.layout = l;
	if (!make_known(&o, &known))
		return "shapes: no known tensors could be made";
	why = find_values(&o, &known);
	if (why)
		return why;
	if (!find_plain(l, &known) || !find_shape(l, &known))
		return "shapes: the sizes of known tensors were not found";
	if (!find_type(l, &known))
		return "shapes: the types of known tensors were not found";
	if (!find_extra(l, &o, &known))
		return "shapes: what marks symbolic sizes was not found";
	find_others(l, t->library);
	l->verified = true;
	return NULL;
}

/* ---- storages ---- */

#define DATA_LAST  4	  /* no StorageImpl ends before this and the fields after it */
#define CPU_DEVICE 0xff00 /* type 0, index -1 */

static const uint64_t *storage_at(size_t tensor, size_t at)
{
	return (const uint64_t *)(uintptr_t)known.impl[tensor][at];
}

/* Whether the word may be the storage: a tensor and its view share it, all others differ. A view
 * shares the version, too, which follows ExtraMeta. */
static bool is_storage(const struct torch_layout *l, size_t at)
{
	if (at == l->extra + 1 || storage_at(FLAT, at) != storage_at(TURNED, at))
		return false;
	for (size_t i = 0; i < KNOWN_NR; i++) {
		if (known.impl[i][at] < POINTER_MIN || known.impl[i][at] % 8)
			return false;
		for (size_t k = 0; k < i; k++)
			if (storage_at(i, at) == storage_at(k, at) && !(k == FLAT && i == TURNED))
				return false;
	}
	return true;
}

/* Finds the data's address, the first of two equal words; the second is what to free. */
static bool find_data(struct torch_layout *l, float *(*data_ptr)(const uint64_t *const *tensor))
{
	static const size_t floats[] = {CUBE, SECOND, FLAT, TURNED, LONG_SHAPE};

	for (size_t at = 1; at <= DATA_LAST; at++) {
		size_t fit = 0;

		for (size_t i = 0; i < sizeof(floats) / sizeof(*floats); i++)
			fit += storage_at(floats[i], l->storage)[at] ==
			       (uint64_t)(uintptr_t)data_ptr(&known.impl[floats[i]]);
		if (fit < sizeof(floats) / sizeof(*floats))
			continue;
		l->data = at;
		return true;
	}
	return false;
}

/* The address is followed by the pointer to free and its deleter, the device and the size. */
static bool find_bytes(struct torch_layout *l)
{
	static const uint64_t bytes[KNOWN_NR] = {
		[CUBE] = 420, [SECOND] = 420, [BYTE] = 105,  [HALF] = 210,	[DOUBLE] = 840,
		[LONG] = 840, [FLAT] = 60,    [TURNED] = 60, [LONG_SHAPE] = 48,
	};

	l->device = l->data + 3;
	l->storage_bytes = l->data + 4;
	for (size_t i = 0; i < KNOWN_NR; i++) {
		const uint64_t *s = storage_at(i, l->storage);

		if (s[l->storage_bytes] != bytes[i] || (s[l->device] & 0xffff) != CPU_DEVICE)
			return false;
	}
	return true;
}

const char *torch_layout__find_storage(struct torch_layout *l, const struct torch_api *t)
{
	float *(*data_ptr)(const uint64_t *const *tensor);
	size_t nr = 0;

	if (l->storage_verified)
		return NULL;
	if (!l->verified)
		return "memory categories: shapes are not available";
	if (!symbol_find(t->library, "_ZNK2at10TensorBase8data_ptrIfEEPT_v", &data_ptr))
		return "memory categories: this PyTorch does not export what they need";
	for (size_t at = 1; at < TENSOR_WORDS; at++) {
		if (!is_storage(l, at))
			continue;
		l->storage = at;
		nr++;
	}
	if (nr != 1 || !find_data(l, data_ptr) || !find_bytes(l))
		return "memory categories: the storages of known tensors were not found";
	l->storage_verified = true;
	return NULL;
}
