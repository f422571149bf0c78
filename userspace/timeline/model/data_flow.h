/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The graph of which op reads and writes which memory: torch.profiler's memory timeline takes its
 * categories from it. Nodes are the outermost ops that PyTorch's schemas describe, autograd nodes,
 * and allocations outside of these. Edges say what a node does to a tensor's storage. Private to
 * this room.
 */
#ifndef GP_TIMELINE_MODEL_DATA_FLOW_H
#define GP_TIMELINE_MODEL_DATA_FLOW_H

#include "timeline/model/build.h"

/* Memory between one allocation and its free. The same address given out again is another
 * storage. */
struct storage {
	uint32_t process;
	uint8_t device; /* GP_TENSOR_CPU and on */
	bool is_tensor; /* an op was called with a tensor in it */
	bool allocated; /* its allocation, or its free, was seen at: */
	bool freed;
	uint64_t allocated_ns, freed_ns;
	int64_t bytes;
	uint32_t version;     /* how often it was written so far; in the end its last version */
	uint32_t versions_at; /* of its first version, in an array of all storages' */
};

/* An edge: what a node does to one storage. */
struct flow_edge {
	uint32_t storage;
	uint32_t version; /* before the node; meaningless if allocated */
	bool allocated, freed;
	bool written; /* never if freed */
};

struct flow_node {
	uint64_t start_ns;
	uint32_t op; /* TL_NONE: an allocation or free outside of any */
	uint32_t edges_at, edges_nr;
	uint32_t optimizer; /* the Optimizer.step that it is in, or TL_NONE */
	bool backward;	    /* is an autograd node, or in one */
};

struct data_flow {
	VEC(struct storage) storages;
	VEC(struct flow_node) nodes; /* by start */
	VEC(struct flow_edge) edges;
	uint32_t *op_tensors;	  /* of each op: of build.tensors.of_ops, TL_NONE: none */
	uint32_t *word_storage;	  /* of each of build.tensors.words that is a tensor with one */
	uint32_t *memory_storage; /* of each of build.memory, TL_NONE: none */
	size_t versions_nr;	  /* of all storages */
};

/* Builds the graph from the recording's events. 0 or -ENOMEM; the caller calls data_flow__done() in
 * either case. */
int data_flow__init(struct data_flow *f, struct build *b);
void data_flow__done(struct data_flow *f);

/* Whether the node outputs a version of the edge's storage, and which. */
static inline bool flow_edge_writes(const struct flow_edge *e)
{
	return (e->allocated && !e->freed) || e->written;
}

static inline uint32_t flow_edge_output(const struct flow_edge *e)
{
	return e->allocated ? 0 : e->version + 1;
}

/* ---- what ops were called with ---- */

/* How an input was observed: a letter of gp_ev_schemas, or one of these. */
#define OBSERVED_NONE  'n' /* a tensor without storage */
#define OBSERVED_MIXED 'm' /* a list in which some have none */

/* Walks over the words of one op. */
struct tensors_reader {
	const uint64_t *words;
	uint32_t at, end;
};

/* Takes the next input: its letter, and its tensors in the words from *ret_from to before *ret_to.
 * False at the end, or, with `at` before it, where the words make no sense. */
bool tensors_reader__next(struct tensors_reader *r, char *ret_letter, uint32_t *ret_from,
			  uint32_t *ret_to);

/* Finds the next word from *at to before `end` that is a tensor with storage, and moves *at past
 * it. TL_NONE: none. */
uint32_t tensors_next_stored(const uint64_t *words, uint32_t *at, uint32_t end);

/* The words of an op. `tensors`: of build.tensors.of_ops, or TL_NONE for none. */
struct tensors_reader tensors_of(const struct build *b, uint32_t tensors);

#define TENSORS_INPUTS_MAX 128

/* Whether a schema of the op fits what it was called with. If so, ret_writes says for each input
 * whether a fitting schema writes to it. */
bool tensors_match(struct build *b, uint32_t op, uint32_t tensors,
		   bool ret_writes[TENSORS_INPUTS_MAX]);

#endif /* GP_TIMELINE_MODEL_DATA_FLOW_H */
