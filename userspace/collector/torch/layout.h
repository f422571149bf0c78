/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Where the inputs of an op lie in this process' PyTorch: in at::RecordFunction, c10::IValue, its
 * lists and c10::TensorImpl. Found on ops and tensors of our own making whose every value is known;
 * a layout that is not found whole is not used.
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
	uint32_t tensor, real, boolean, integer, list; /* tags of values */
	size_t items;				       /* in a list: begin, end */
	size_t item_type;			       /* in a list: what kind of items */
	uint64_t tensor_type;			       /* of a list of tensors */
	uint64_t plain; /* in a tensor, word 0: that of one without tricks */
	/* The same of those that have sizes like a plain one, and strides too if quantized; 1,
	 * which no tensor has: not known. */
	uint64_t quantized, sparse, sparse_rows;
	size_t extra; /* in a tensor: 0 unless symbolic or the like */
	size_t sizes; /* in a tensor: c10::impl::SizesAndStrides */
	size_t numel;
	size_t type_bytes; /* in a tensor: uint16_t c10::ScalarType */
	bool verified;
	/* The rest only once torch_layout__find_storage() has found it. */
	size_t storage; /* in a tensor: c10::StorageImpl */
	size_t data;	/* in a storage: its first byte's address */
	size_t device;	/* in a storage: type, then index, a signed byte each */
	size_t storage_bytes;
	bool storage_verified;
};

/* SizesAndStrides holds so many sizes and strides itself; more lie elsewhere. */
#define LAYOUT_INLINE_DIMS 5

/* Finds it, once per process; a few tensors of some hundred bytes stay behind. Runs some operators
 * on the calling thread. NULL, or why it cannot be had. */
const char *torch_layout__find(struct torch_layout *l, const struct torch_api *t);

/* The same of storages, once the rest is found. */
const char *torch_layout__find_storage(struct torch_layout *l, const struct torch_api *t);

#endif /* GP_COLLECTOR_TORCH_LAYOUT_H */
