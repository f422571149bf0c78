/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Where the inputs of an op lie in this process's PyTorch: in at::RecordFunction, c10::IValue, its
 * lists and c10::TensorImpl. The layout is found with ops and tensors of our own, whose values are
 * all known. It is used only if all of it is found.
 */
#ifndef GP_COLLECTOR_TORCH_LAYOUT_H
#define GP_COLLECTOR_TORCH_LAYOUT_H

#include "collector/torch/torch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* c10::IValue. */
struct torch_value {
	uint64_t payload;
	uint32_t tag;
	uint32_t reserved;
};

/* Offsets count words of 8 bytes unless they say bytes. */
struct torch_layout {
	size_t inputs; /* in a record: address, then number of its inputs */
	uint32_t tensor, real, boolean, integer, list; /* tags of c10::IValue */
	size_t items;				       /* in a list: begin, end */
	size_t item_type;			       /* in a list: the type of its items */
	uint64_t tensor_type;			       /* its value in a list of tensors */
	uint64_t plain;				       /* word 0 of a plain tensor: its vtable */
	/* The same for tensors that keep sizes like a plain one; quantized ones keep strides like
	 * it, too. 1, which no tensor has: not known. */
	uint64_t quantized, sparse, sparse_rows;
	size_t extra; /* in a tensor: ExtraMeta, 0 unless its sizes are symbolic or the like */
	size_t sizes; /* in a tensor: c10::impl::SizesAndStrides */
	size_t numel;
	size_t type_bytes; /* in a tensor: uint16_t c10::ScalarType */
	bool verified;
	/* Set by torch_layout__find_storage(). */
	size_t storage; /* in a tensor: c10::StorageImpl */
	size_t data;	/* in a storage: the address of its first byte */
	size_t device;	/* in a storage: type, then index, a signed byte each */
	size_t storage_bytes;
	bool storage_verified;
};

/* The number of sizes and strides that SizesAndStrides holds inline. */
#define LAYOUT_INLINE_DIMS 5

/* Finds the layout, once per process, by running some operators on the calling thread. A few
 * tensors of some hundred bytes stay allocated. NULL, or why it was not found. */
const char *torch_layout__find(struct torch_layout *l, const struct torch_api *t);

/* The same for storages, after torch_layout__find(). */
const char *torch_layout__find_storage(struct torch_layout *l, const struct torch_api *t);

#endif /* GP_COLLECTOR_TORCH_LAYOUT_H */
