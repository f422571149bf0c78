/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Inputs of ops as gp_ev_inputs has them, and the ids that stand for them in the ring. Append-only,
 * without locks, like the names: announced in the ring before an id is given out.
 */
#ifndef GP_COLLECTOR_TORCH_INPUTS_H
#define GP_COLLECTOR_TORCH_INPUTS_H

#include "collector/runtime/ring_writer.h"
#include "collector/torch/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the inputs of the op that begins with `record` into at most GP_INPUTS_BYTES_MAX bytes at
 * `to` (in wire.h's form). Returns how many. The record is live: only in its start callback.
 * Without `values` scalars do not tell theirs. */
size_t inputs_encode(const struct torch_layout *l, const void *record, bool values, uint8_t *to);

struct inputs;

/* NULL when out of memory. */
struct inputs *inputs__new(void);
void inputs__free(struct inputs *n);

/* Whether it is less than half full. After that values are to be left out: an optimizer's, say,
 * change with every step, and shapes are few. */
bool inputs__have_room(const struct inputs *n);

/* The id of these bytes, announced in `w` if they are new. 0 for no bytes; GP_INPUTS_LOST if there
 * is no place for them. */
uint32_t inputs__id(struct inputs *n, struct ring_writer *w, const uint8_t *data, size_t bytes);

#endif /* GP_COLLECTOR_TORCH_INPUTS_H */
