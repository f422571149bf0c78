/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names of operators. A symbol says `add__Tensor` for both what PyTorch calls `add_.Tensor` and
 * what it might call `add.Tensor` with another spelling: where the overload begins cannot be told
 * from it. The library's own schema texts, "add_.Tensor(Tensor(a!) self, ...) -> Tensor(a!)", can.
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
	bool whole;	      /* the schema text began where the string began */
};

/* All zero is an empty table. */
struct op_names {
	struct intern *texts;
	VEC(struct op_name) items;
	struct hash index; /* hash of `joined` -> item; two that share a hash: the first */
};

/* The part of "_ZN2at4_ops10add_Tensor4callE..." between "_ops" and "call": 0 with *ret_joined
 * pointing into symbol, or -EINVAL if it is no such symbol. */
int op_symbol_parse(const char *symbol, const char **ret_joined, size_t *ret_bytes);

/* The same of a symbol of any of the functions at::_ops::NAME::call and redispatch, or of a part
 * that the compiler split off. */
int op_frame_parse(const char *symbol, const char **ret_joined, size_t *ret_bytes);

/* "_ZN5torch8autograd9generated11MmBackward05applyE..." -> "MmBackward0"; those that are not
 * generated keep their namespace: "torch::autograd::AccumulateGrad". 0 or -EINVAL. */
int node_frame_parse(const char *symbol, char *ret_name, size_t name_bytes);

/* What an autograd node's event is called before the node's own name. */
#define NODE_EVENT "autograd::engine::evaluate_function: "

#define NODE_NAME_BYTES 192

/* "_ZTVN5torch8autograd9generated11MmBackward0E" -> "MmBackward0"; classes that are not generated
 * keep their namespace, as Node::name() has it; of a template's arguments nothing is kept. 0 or
 * -EINVAL. */
int node_name_parse(const char *symbol, char *ret_name, size_t name_bytes);

/* Makes the name known, to be resolved. 0 or -ENOMEM. */
int op_names__add(struct op_names *names, const char *joined, size_t bytes);

/* Makes all operators of a library known and resolves their names. 0 or -errno. */
int op_names__read(struct op_names *names, const char *path);

/* Looks for schema texts of the known names in a library's read-only data. 0 or -ENOMEM. */
int op_names__scan(struct op_names *names, const unsigned char *data, size_t bytes);

/* The item, or NULL if it was never added. */
const struct op_name *op_names__find(const struct op_names *names, const char *joined,
				     size_t bytes);

void op_names__done(struct op_names *names);

#endif /* GP_PROBE_PLAN_NAMES_H */
