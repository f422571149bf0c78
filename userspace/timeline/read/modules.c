/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads and nests calls of modules. A call names its ops by their instances, and lies in another
 * call if its ops do. Modules are numbered as in torch.profiler: within each type, by their first
 * calls.
 */
#include "timeline/read/context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

int build_module_call(struct build *b, const struct gp_ev_module_call *e)
{
	struct raw_module_call raw = {
		.call = {.start_ns = e->start_ns,
			 .end_ns = e->head.time_ns,
			 .first = e->first,
			 .last = e->last,
			 .parent = TL_NONE,
			 .depth = e->depth},
		.object = e->object,
	};

	if (e->start_ns > e->head.time_ns || e->head.time_ns >= TL_TIME_END_NS || !e->first ||
	    e->last < e->first || e->depth >= GP_MODULE_DEPTH ||
	    b->modules.calls.nr >= TL_NONE - 1) {
		b->modules.invalid_nr++;
		return 0;
	}
	if (!build_in_window(b, e->start_ns, e->head.time_ns))
		return 0;
	raw.call.thread = build_thread_of(b, &e->head);
	raw.type =
		build_intern(b, recording__name(b->t->recording, e->name_id, &(const char *){0}));
	return b->err ? b->err : vec_push(&b->modules.calls, raw);
}

/* ---- order and modules ---- */

/* Outer calls first. Of two with the same ops the lower depth is the outer one. */
static int by_place(const void *a, const void *b)
{
	const struct tl_module_call *x = &((const struct raw_module_call *)a)->call;
	const struct tl_module_call *y = &((const struct raw_module_call *)b)->call;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

static int by_time(const void *a, const void *b)
{
	const struct tl_module_call *x = &(*(const struct raw_module_call *const *)a)->call;
	const struct tl_module_call *y = &(*(const struct raw_module_call *const *)b)->call;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

struct module_finder {
	struct build *b;
	struct hash module_of; /* of process, object and type */
	struct hash types;     /* of process and type: how many there are */
};

static int add_module(struct module_finder *f, uint64_t key, const struct raw_module_call *raw)
{
	struct timeline *t = f->b->t;
	struct tl_module module = {
		.process = t->threads.items[raw->call.thread].process,
		.object = raw->object,
		.type = raw->type,
	};
	uint64_t type_key = hash_mix((uintptr_t)raw->type ^ hash_mix(module.process + 1));
	const uint64_t *known = hash__find(&f->types, type_key);
	CLEANUP(cleanup_free) char *name = NULL, *backward = NULL;

	module.number = known ? (uint32_t)*known : 0;
	if (asprintf(&name, "nn.Module: %s_%u", raw->type, module.number) < 0 ||
	    asprintf(&backward, "%s [backward]", name) < 0)
		return -ENOMEM;
	module.name = build_intern(f->b, name);
	module.backward_name = build_intern(f->b, backward);
	if (f->b->err || hash__set(&f->types, type_key, module.number + 1) ||
	    hash__set(&f->module_of, key, t->modules.nr))
		return -ENOMEM;
	return vec_push(&t->modules, module);
}

static int find_module(struct module_finder *f, struct raw_module_call *raw)
{
	uint64_t process = f->b->t->threads.items[raw->call.thread].process;
	uint64_t key = hash_mix(raw->object ^ hash_mix((uintptr_t)raw->type ^ hash_mix(process)));
	const uint64_t *known = hash__find(&f->module_of, key);
	int err = 0;

	if (!known) {
		err = add_module(f, key, raw);
		known = hash__find(&f->module_of, key);
	}
	raw->call.module = err ? 0 : (uint32_t)*known;
	return err;
}

/* In order of time, by which they are numbered. */
static int find_modules(struct build *b)
{
	size_t nr = b->modules.calls.nr;
	CLEANUP(cleanup_free)
	struct raw_module_call **order = malloc((nr + 1) * sizeof(*order));
	struct module_finder f = {.b = b};
	int err = order ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && !err; i++)
		order[i] = &b->modules.calls.items[i];
	if (!err)
		qsort(order, nr, sizeof(*order), by_time);
	for (size_t i = 0; i < nr && !err; i++)
		err = find_module(&f, order[i]);
	hash__done(&f.module_of);
	hash__done(&f.types);
	return err;
}

/* ---- nesting ---- */

/* Finds the call around one that begins at `first`, among those up to `at`. */
static uint32_t still_open(const struct timeline *t, uint32_t at, uint64_t first)
{
	while (at != TL_NONE && t->module_calls.items[at].last < first)
		at = t->module_calls.items[at].parent;
	return at;
}

/* Drops calls that would cross others: they make no sense. */
static int nest_calls(struct build *b)
{
	struct timeline *t = b->t;
	uint32_t last = TL_NONE;
	int err = 0;

	for (size_t i = 0; i < b->modules.calls.nr && !err; i++) {
		struct tl_module_call call = b->modules.calls.items[i].call;
		const struct tl_module_call *around;

		call.parent = still_open(t, last, call.first);
		around = call.parent == TL_NONE ? NULL : &t->module_calls.items[call.parent];
		if (around && (around->last < call.last || around->thread != call.thread ||
			       around->start_ns > call.start_ns || around->end_ns < call.end_ns ||
			       around->depth + 1 >= GP_MODULE_DEPTH)) {
			b->modules.invalid_nr++;
			continue;
		}
		/* The recorded depth also counts calls that were dropped. */
		call.depth = around ? around->depth + 1 : 0;
		last = (uint32_t)t->module_calls.nr;
		err = vec_push(&t->module_calls, call);
	}
	return err;
}

/* Finds the innermost call, from `at` outwards, that holds the op also by time: an end that is only
 * a bound may lie behind the call's. */
static uint32_t holding(const struct timeline *t, uint32_t at, const struct tl_op *op)
{
	while (at != TL_NONE && (t->module_calls.items[at].start_ns > op->start_ns ||
				 t->module_calls.items[at].end_ns < op->end_ns))
		at = t->module_calls.items[at].parent;
	return at;
}

/* Walks ops and calls, both in order of instances. */
static void find_calls_of_ops(struct build *b)
{
	struct timeline *t = b->t;
	uint32_t open = TL_NONE;
	size_t next = 0;

	for (size_t i = 0; i < t->ops.nr; i++) {
		struct tl_op *op = &t->ops.items[b->tree.by_instance[i].index];
		uint64_t instance = b->tree.by_instance[i].key;

		while (next < t->module_calls.nr && t->module_calls.items[next].first <= instance)
			open = (uint32_t)next++;
		open = still_open(t, open, instance);
		op->module_call = holding(t, open, op);
	}
}

int build_modules(struct build *b)
{
	int err;

	if (!b->modules.calls.nr)
		return 0;
	err = find_modules(b);
	if (err)
		return err;
	qsort(b->modules.calls.items, b->modules.calls.nr, sizeof(*b->modules.calls.items),
	      by_place);
	err = nest_calls(b);
	if (!err)
		find_calls_of_ops(b);
	return err;
}
