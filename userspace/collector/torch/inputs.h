/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The inputs of ops, encoded as struct gp_ev_inputs says, and the ids that stand for them in the
 * ring. The table is append-only and without locks, as in runtime/names.h: inputs are announced in
 * the ring before their id is used.
 */
#ifndef GP_COLLECTOR_TORCH_INPUTS_H
#define GP_COLLECTOR_TORCH_INPUTS_H

#include "collector/runtime/ring_writer.h"
#include "collector/torch/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Encodes the inputs of the op that begins with `record` into at most GP_INPUTS_BYTES_MAX bytes at
 * `to`. Returns the number of bytes. Call it only in the record's start callback. Without `values`
 * the values of scalars are left out. */
size_t inputs_encode(const struct torch_layout *l, const void *record, bool values, uint8_t *to);

struct inputs;

/* NULL when out of memory. */
struct inputs *inputs__new(void);
void inputs__free(struct inputs *n);

/* Whether the table is less than half full. After that leave values out: some change with every
 * step, as an optimizer's do, while shapes are few. */
bool inputs__have_room(const struct inputs *n);

/* Returns the id of these bytes, which are announced in `w` if they are new. 0 for no bytes;
 * GP_INPUTS_LOST if there is no room for them. */
uint32_t inputs__id(struct inputs *n, struct ring_writer *w, const uint8_t *data, size_t bytes);

#endif /* GP_COLLECTOR_TORCH_INPUTS_H */
