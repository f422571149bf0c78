/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Builds the graph as torch.profiler's DataFlowGraph does: storages by address and time, then nodes
 * by start, each with what all ops below it do. Two things differ. A tensor that gets another
 * storage becomes another tensor (torch.profiler holds on to each tensor to follow it). And a
 * storage is as large as PyTorch reports, not as its largest view.
 */
#include "timeline/model/data_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "common/step_annotations.h"

/* How inputs were observed whose use no schema describes. */
enum { SEEN_READ = 1, SEEN_WRITTEN = 2, SEEN_UNKNOWN = 4 };

struct flow_build {
	struct data_flow *f;
	struct build *b;
	struct hash *live; /* of each process: device and address -> storage */
	uint32_t *node_of; /* by op: its node, or TL_NONE; then by build.memory */
	bool *backward;	   /* by op: is an autograd node, or in one */
	uint32_t *optimizer;
	uint32_t *memory_next, *memory_first, *memory_last; /* events of each node, by time */
	/* While a node is built: the storage's edge; valid if not before the node's first. */
	uint32_t *edge_of;
	uint8_t *seen; /* of each edge of the node */
	size_t seen_cap;
};

static void flow_build__done(struct flow_build *w)
{
	for (size_t i = 0; w->live && i < w->b->t->processes.nr; i++)
		hash__done(&w->live[i]);
	free(w->live);
	free(w->node_of);
	free(w->backward);
	free(w->optimizer);
	free(w->memory_next);
	free(w->memory_first);
	free(w->memory_last);
	free(w->edge_of);
	free(w->seen);
}

static uint32_t *indexes(size_t nr)
{
	uint32_t *p = malloc((nr + 1) * sizeof(*p));

	if (p)
		memset(p, 0xff, (nr + 1) * sizeof(*p));
	return p;
}

/* ---- storages ---- */

static uint8_t device_of(const struct raw_memory *m)
{
	if (m->device_type == GP_DEVICE_CPU)
		return GP_TENSOR_CPU;
	if (m->device_type == GP_DEVICE_CUDA && m->device_index >= 0 &&
	    m->device_index < GP_TENSOR_CUDA_NR)
		return (uint8_t)(GP_TENSOR_CUDA + m->device_index);
	return GP_TENSOR_OTHER;
}

/* Finds or makes the storage that lies there now. TL_NONE: out of memory. */
static uint32_t storage_at(struct flow_build *w, uint32_t process, uint8_t device, uint64_t address)
{
	struct storage fresh = {.process = process, .device = device};
	const uint64_t *known = hash__find(&w->live[process], address);

	if (known) {
		/* Each device has its own addresses. */
		if (w->f->storages.items[*known].device != device)
			w->b->tensors.device_nr++;
		return (uint32_t)*known;
	}
	if (w->f->storages.nr >= TL_NONE - 1 ||
	    hash__set(&w->live[process], address, w->f->storages.nr) ||
	    vec_push(&w->f->storages, fresh))
		return TL_NONE;
	return (uint32_t)w->f->storages.nr - 1;
}

static uint32_t process_of(const struct build *b, uint32_t thread)
{
	return b->t->threads.items[thread].process;
}

static int see_memory(struct flow_build *w, uint32_t index)
{
	const struct raw_memory *m = &w->b->memory.items[index];
	uint32_t process = process_of(w->b, m->thread), at;
	struct storage *s;

	if (m->flags & GP_MEMORY_OOM || !build_memory_possible(m))
		return 0;
	/* An address given out again was free, so its free is missing. */
	if (!(m->flags & GP_MEMORY_FREE))
		(void)hash__delete(&w->live[process], m->address, NULL);
	at = storage_at(w, process, device_of(m), m->address);
	if (at == TL_NONE)
		return -ENOMEM;
	w->f->memory_storage[index] = at;
	s = &w->f->storages.items[at];
	if (!(m->flags & GP_MEMORY_FREE)) {
		s->allocated = true;
		s->allocated_ns = m->time_ns;
		s->bytes = m->bytes;
		return 0;
	}
	s->freed = true;
	s->freed_ns = m->time_ns;
	if (!s->bytes)
		s->bytes = -m->bytes;
	(void)hash__delete(&w->live[process], m->address, NULL);
	return 0;
}

static int see_op(struct flow_build *w, uint32_t op)
{
	struct tensors_reader r = tensors_of(w->b, w->f->op_tensors[op]);
	uint32_t process = process_of(w->b, w->b->t->ops.items[op].thread), from, to, at, word;
	char letter;

	while (tensors_reader__next(&r, &letter, &from, &to))
		for (at = from; (word = tensors_next_stored(r.words, &at, to)) != TL_NONE;) {
			uint64_t bytes = r.words[word + 1];
			struct storage *s;
			uint32_t found =
				storage_at(w, process, (uint8_t)GP_TENSOR_DEVICE(r.words[word]),
					   GP_TENSOR_ADDRESS(r.words[word]));

			if (found == TL_NONE)
				return -ENOMEM;
			s = &w->f->storages.items[found];
			s->is_tensor = true;
			if (!s->allocated && bytes < (uint64_t)TL_SIZE_END &&
			    s->bytes < (int64_t)bytes)
				s->bytes = (int64_t)bytes;
			w->f->word_storage[word] = found;
		}
	w->b->tensors.invalid_nr += r.at < r.end;
	return 0;
}

/* Orders allocations and the begins of ops by time. */
static int find_storages(struct flow_build *w)
{
	const struct build *b = w->b;
	size_t ops = b->t->ops.nr, nr = 0;
	CLEANUP(cleanup_free)
	struct sort_item *order = malloc((ops + b->memory.nr + 1) * sizeof(*order));
	int err = order && ops + b->memory.nr < TL_NONE ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < ops && !err; i++)
		if (w->f->op_tensors[i] != TL_NONE)
			order[nr++] = (struct sort_item){b->t->ops.items[i].start_ns, i};
	for (size_t i = 0; i < b->memory.nr && !err; i++)
		order[nr++] = (struct sort_item){b->memory.items[i].time_ns, (uint32_t)(ops + i)};
	err = err ? err : sort_items(order, nr);
	for (size_t i = 0; i < nr && !err; i++)
		err = order[i].index < ops ? see_op(w, order[i].index)
					   : see_memory(w, order[i].index - (uint32_t)ops);
	return err;
}

/* ---- nodes ---- */

static bool is_leaf(struct build *b, uint32_t op, uint32_t tensors)
{
	bool writes[TENSORS_INPUTS_MAX];
	const struct tl_op *o = &b->t->ops.items[op];

	if (o->flags & GP_OP_ASYNC || o->scope == GP_SCOPE_USER)
		return false;
	return o->scope == GP_SCOPE_BACKWARD || tensors_match(b, op, tensors, writes);
}

/* Adds a node, made of `from`: an op, or, counting on behind the ops, a memory event. */
static int add_node(struct flow_build *w, struct flow_node node, uint32_t from)
{
	w->node_of[from] = (uint32_t)w->f->nodes.nr;
	return vec_push(&w->f->nodes, node);
}

/* Parents come before their children. */
static int add_op(struct flow_build *w, uint32_t op)
{
	const struct tl_op *o = &w->b->t->ops.items[op];
	bool has_parent = o->parent < op;

	w->backward[op] = o->scope == GP_SCOPE_BACKWARD || (has_parent && w->backward[o->parent]);
	w->optimizer[op] = has_parent ? w->optimizer[o->parent] : TL_NONE;
	if (o->scope == GP_SCOPE_USER && step_marker_by_prefix(o->name) == STEP_MARKER_OPTIMIZER)
		w->optimizer[op] = op;
	if (has_parent && w->node_of[o->parent] != TL_NONE) {
		w->node_of[op] = w->node_of[o->parent];
		return 0;
	}
	if (!is_leaf(w->b, op, w->f->op_tensors[op]))
		return 0;
	return add_node(w,
			(struct flow_node){.start_ns = o->start_ns,
					   .op = op,
					   .optimizer = w->optimizer[op],
					   .backward = w->backward[op]},
			op);
}

static int add_memory(struct flow_build *w, uint32_t index)
{
	const struct raw_memory *m = &w->b->memory.items[index];
	uint32_t ops = (uint32_t)w->b->t->ops.nr;
	struct flow_node node = {.start_ns = m->time_ns, .op = TL_NONE, .optimizer = TL_NONE};

	if (w->f->memory_storage[index] == TL_NONE)
		return 0;
	if (m->op != TL_NONE && w->node_of[m->op] != TL_NONE) {
		w->node_of[ops + index] = w->node_of[m->op];
		return 0;
	}
	if (m->op != TL_NONE) {
		node.optimizer = w->optimizer[m->op];
		node.backward = w->backward[m->op];
	}
	return add_node(w, node, ops + index);
}

/* Sorts nodes by start and adapts node_of. */
static int sort_nodes(struct flow_build *w)
{
	size_t nr = w->f->nodes.nr;
	CLEANUP(cleanup_free) struct sort_item *order = malloc((nr + 1) * sizeof(*order));
	CLEANUP(cleanup_free) struct flow_node *copy = malloc((nr + 1) * sizeof(*copy));
	CLEANUP(cleanup_free) uint32_t *now = malloc((nr + 1) * sizeof(*now));
	int err;

	if (!order || !copy || !now)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		order[i] = (struct sort_item){w->f->nodes.items[i].start_ns, i};
	err = sort_items(order, nr);
	if (err || !nr)
		return err;
	memcpy(copy, w->f->nodes.items, nr * sizeof(*copy));
	for (uint32_t i = 0; i < nr; i++) {
		w->f->nodes.items[i] = copy[order[i].index];
		now[order[i].index] = i;
	}
	for (size_t i = 0; i < w->b->t->ops.nr + w->b->memory.nr; i++)
		if (w->node_of[i] != TL_NONE)
			w->node_of[i] = now[w->node_of[i]];
	return 0;
}

static int chain_memory(struct flow_build *w)
{
	size_t ops = w->b->t->ops.nr, nr = w->b->memory.nr;
	CLEANUP(cleanup_free) struct sort_item *order = malloc((nr + 1) * sizeof(*order));
	int err = order ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < nr && !err; i++)
		order[i] = (struct sort_item){w->b->memory.items[i].time_ns, i};
	err = err ? err : sort_items(order, nr);
	for (size_t i = 0; i < nr && !err; i++) {
		uint32_t event = order[i].index, node = w->node_of[ops + event];

		if (node == TL_NONE)
			continue;
		if (w->memory_last[node] == TL_NONE)
			w->memory_first[node] = event;
		else
			w->memory_next[w->memory_last[node]] = event;
		w->memory_last[node] = event;
	}
	return err;
}

static int find_nodes(struct flow_build *w)
{
	int err = 0;

	for (uint32_t i = 0; i < w->b->t->ops.nr && !err; i++)
		err = add_op(w, i);
	for (uint32_t i = 0; i < w->b->memory.nr && !err; i++)
		err = add_memory(w, i);
	err = err ? err : sort_nodes(w);
	w->memory_next = indexes(w->b->memory.nr);
	w->memory_first = indexes(w->f->nodes.nr);
	w->memory_last = indexes(w->f->nodes.nr);
	if (!w->memory_next || !w->memory_first || !w->memory_last)
		return -ENOMEM;
	return err ? err : chain_memory(w);
}

/* ---- edges ---- */

/* Finds or makes the node's edge to this storage. NULL: out of memory. */
static struct flow_edge *edge_to(struct flow_build *w, const struct flow_node *n, uint32_t storage,
				 uint8_t seen)
{
	struct flow_edge fresh = {.storage = storage,
				  .version = w->f->storages.items[storage].version};
	uint32_t at = w->edge_of[storage];
	size_t local;

	if (at == TL_NONE || at < n->edges_at) {
		at = (uint32_t)w->f->edges.nr;
		if (w->f->edges.nr >= TL_NONE - 1 || vec_push(&w->f->edges, fresh))
			return NULL;
		w->edge_of[storage] = at;
		local = at - n->edges_at;
		if (vec_reserve_raw((void **)&w->seen, local, &w->seen_cap, 1, 1))
			return NULL;
		w->seen[local] = 0;
	}
	w->seen[at - n->edges_at] |= seen;
	return &w->f->edges.items[at];
}

static int add_inputs(struct flow_build *w, const struct flow_node *n, uint32_t op)
{
	bool writes[TENSORS_INPUTS_MAX];
	uint32_t tensors = w->f->op_tensors[op], from, to, at, word;
	struct tensors_reader r = tensors_of(w->b, tensors);
	bool known = tensors != TL_NONE && tensors_match(w->b, op, tensors, writes);
	char letter;

	for (size_t i = 0; tensors_reader__next(&r, &letter, &from, &to); i++) {
		uint8_t seen = SEEN_UNKNOWN;

		if (known)
			seen = writes[i] ? SEEN_WRITTEN : SEEN_READ;
		for (at = from; (word = tensors_next_stored(r.words, &at, to)) != TL_NONE;)
			if (!edge_to(w, n, w->f->word_storage[word], seen))
				return -ENOMEM;
	}
	return 0;
}

static int add_events(struct flow_build *w, const struct flow_node *n, uint32_t first, bool frees)
{
	for (uint32_t i = first; i != TL_NONE; i = w->memory_next[i]) {
		uint32_t storage = w->f->memory_storage[i];
		struct flow_edge *e;

		if (!w->f->storages.items[storage].is_tensor ||
		    !(w->b->memory.items[i].flags & GP_MEMORY_FREE) == frees)
			continue;
		e = edge_to(w, n, storage, 0);
		if (!e)
			return -ENOMEM;
		if (frees)
			e->freed = true;
		else
			e->allocated = true;
	}
	return 0;
}

/* A storage counts as written if a schema says so, or if no schema describes it. */
static void settle(struct flow_build *w, const struct flow_node *n)
{
	for (uint32_t i = 0; i < n->edges_nr; i++) {
		struct flow_edge *e = &w->f->edges.items[n->edges_at + i];

		e->written = !e->freed && !e->allocated &&
			     (w->seen[i] & SEEN_WRITTEN || w->seen[i] == SEEN_UNKNOWN);
		w->f->storages.items[e->storage].version += e->written;
	}
}

static int compare_edges(const void *a, const void *b)
{
	const struct flow_edge *x = a, *y = b;

	return (x->storage > y->storage) - (x->storage < y->storage);
}

static int add_edges(struct flow_build *w, uint32_t node)
{
	struct flow_node *n = &w->f->nodes.items[node];
	const struct tl_op *ops = w->b->t->ops.items;
	int err = 0;

	n->edges_at = (uint32_t)w->f->edges.nr;
	/* The ops below an op follow it, with a greater depth. */
	for (uint32_t i = n->op; i < w->b->t->ops.nr && !err; i++) {
		if (i != n->op &&
		    (ops[i].depth <= ops[n->op].depth || ops[i].thread != ops[n->op].thread))
			break;
		err = add_inputs(w, n, i);
	}
	err = err ? err : add_events(w, n, w->memory_first[node], true);
	err = err ? err : add_events(w, n, w->memory_first[node], false);
	if (err)
		return err;
	n->edges_nr = (uint32_t)w->f->edges.nr - n->edges_at;
	settle(w, n);
	if (n->edges_nr)
		qsort(w->f->edges.items + n->edges_at, n->edges_nr, sizeof(struct flow_edge),
		      compare_edges);
	return 0;
}

static int find_edges(struct flow_build *w)
{
	int err = 0;

	w->edge_of = indexes(w->f->storages.nr);
	if (!w->edge_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->f->nodes.nr && !err; i++)
		err = add_edges(w, i);
	for (size_t i = 0; i < w->f->storages.nr && !err; i++) {
		struct storage *s = &w->f->storages.items[i];

		if (w->f->versions_nr + s->version + 1 >= TL_NONE)
			return -EFBIG;
		s->versions_at = (uint32_t)w->f->versions_nr;
		w->f->versions_nr += (size_t)s->version + 1;
	}
	return err;
}

/* ---- all ---- */

static void find_op_tensors(struct data_flow *f, const struct build *b)
{
	for (uint32_t i = 0; i < b->t->ops.nr; i++) {
		const uint64_t *at =
			hash__find(&b->tensors.by_instance, b->t->ops.items[i].instance);

		if (at)
			f->op_tensors[i] = (uint32_t)*at;
	}
}

int data_flow__init(struct data_flow *f, struct build *b)
{
	CLEANUP(flow_build__done) struct flow_build w = {.f = f, .b = b};
	size_t ops = b->t->ops.nr;
	int err;

	*f = (struct data_flow){
		.op_tensors = indexes(ops),
		.word_storage = indexes(b->tensors.words.nr),
		.memory_storage = indexes(b->memory.nr),
	};
	w.live = calloc(b->t->processes.nr + 1, sizeof(*w.live));
	w.node_of = indexes(ops + b->memory.nr);
	w.backward = calloc(ops + 1, sizeof(*w.backward));
	w.optimizer = indexes(ops);
	if (!f->op_tensors || !f->word_storage || !f->memory_storage || !w.live || !w.node_of ||
	    !w.backward || !w.optimizer)
		return -ENOMEM;
	find_op_tensors(f, b);
	/* Loops start at the items even if there are none. */
	err = vec_reserve(&f->nodes, 1) ?: vec_reserve(&f->edges, 1);
	err = err ? err : find_storages(&w);
	err = err ? err : find_nodes(&w);
	return err ? err : find_edges(&w);
}

void data_flow__done(struct data_flow *f)
{
	vec_done(&f->storages);
	vec_done(&f->nodes);
	vec_done(&f->edges);
	free(f->op_tensors);
	free(f->word_storage);
	free(f->memory_storage);
}
