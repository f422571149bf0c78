/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Requests for memory that were refused, and what held the memory at that moment, as JSON.
 * output_out_of_memory_text() prints the same. Private to this room.
 */
#ifndef GP_OUTPUT_MEMORY_OUT_OF_MEMORY_H
#define GP_OUTPUT_MEMORY_OUT_OF_MEMORY_H

#include "base/json_writer.h"
#include "timeline/model/timeline.h"

/* Writes the array that out_of_memory.c describes. 0 or -ENOMEM. */
int out_of_memory_json(struct json_writer *j, const struct timeline *t);

#endif /* GP_OUTPUT_MEMORY_OUT_OF_MEMORY_H */
