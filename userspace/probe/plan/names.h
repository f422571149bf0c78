/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the names of operators. The symbol `add__Tensor` can stand for `add_.Tensor` or
 * `add._Tensor`: it does not show where the overload begins. The library's schema texts,
 * "add_.Tensor(Tensor(a!) self, ...) -> Tensor(a!)", do.
 */
#ifndef GP_PROBE_PLAN_NAMES_H
#define GP_PROBE_PLAN_NAMES_H

#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>

/* One op that a library defines. */
struct op_name {
	const char *joined;   /* "add__Tensor", as in the symbol */
	const char *name;     /* "aten::add_"; NULL: no schema seen */
	const char *overload; /* "Tensor" or "" */
	bool whole;	      /* the schema text is a whole string, not the end of a longer one */
};

/* All zero is an empty table. */
struct op_names {
	struct intern *texts;
	VEC(struct op_name) items;
	struct hash index; /* hash of `joined` -> item; of two with one hash, the first */
};

/* Finds the part of "_ZN2at4_ops10add_Tensor4callE..." between "_ops" and "call". 0 with
 * *ret_joined pointing into symbol, or -EINVAL for other symbols. */
int op_symbol_parse(const char *symbol, const char **ret_joined, size_t *ret_bytes);

/* Does the same for at::_ops::NAME::call, redispatch, and parts that the compiler split off. */
int op_frame_parse(const char *symbol, const char **ret_joined, size_t *ret_bytes);

/* "_ZN5torch8autograd9generated11MmBackward05applyE..." -> "MmBackward0"; a class that is not
 * generated keeps its namespace: "torch::autograd::AccumulateGrad". 0 or -EINVAL. */
int node_frame_parse(const char *symbol, char *ret_name, size_t name_bytes);

/* The event of an autograd node has this in front of the node's name. */
#define NODE_EVENT "autograd::engine::evaluate_function: "

#define NODE_NAME_BYTES 192

/* "_ZTVN5torch8autograd9generated11MmBackward0E" -> "MmBackward0"; a class that is not generated
 * keeps its namespace, as in Node::name(); template arguments are dropped. 0 or -EINVAL. */
int node_name_parse(const char *symbol, char *ret_name, size_t name_bytes);

/* Adds a name to be resolved. 0 or -ENOMEM. */
int op_names__add(struct op_names *names, const char *joined, size_t bytes);

/* Adds all operators of a library and resolves their names. 0 or -errno. */
int op_names__read(struct op_names *names, const char *path);

/* Searches a library's read-only data for the schema texts of the added names. 0 or -ENOMEM. */
int op_names__scan(struct op_names *names, const unsigned char *data, size_t bytes);

/* Returns the item, or NULL if it was never added. */
const struct op_name *op_names__find(const struct op_names *names, const char *joined,
				     size_t bytes);

void op_names__done(struct op_names *names);

#endif /* GP_PROBE_PLAN_NAMES_H */
