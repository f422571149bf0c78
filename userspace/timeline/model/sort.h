/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Stable sorting of many 64-bit keys, each with an index.
 */
#ifndef GP_TIMELINE_MODEL_SORT_H
#define GP_TIMELINE_MODEL_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_item {
	uint64_t key;
	uint32_t index;
};

/* Sorts by key ascending; equal keys keep their order. 0 or -ENOMEM. */
int sort_items(struct sort_item *items, size_t nr);

#endif /* GP_TIMELINE_MODEL_SORT_H */
