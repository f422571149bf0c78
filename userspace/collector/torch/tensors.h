/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Where the tensors lie that an op is called with, as gp_ev_tensors has it: nothing of them is
 * read, only where they are and how long.
 */
#ifndef GP_COLLECTOR_TORCH_TENSORS_H
#define GP_COLLECTOR_TORCH_TENSORS_H

#include "collector/runtime/ring_writer.h"
#include "collector/torch/layout.h"

/* Writes what is known of the inputs of the op that begins with `record`, which is live: only in
 * its start callback. `head` becomes the head of each event. */
void tensors_write(const struct torch_layout *l, struct ring_writer *w, const void *record,
		   const struct gp_ev_head *head, uint64_t instance);

#endif /* GP_COLLECTOR_TORCH_TENSORS_H */
