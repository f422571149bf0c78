/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The line about FLOPs below a table. Private to this room.
 */
#ifndef GP_OUTPUT_FORMAT_FLOPS_TEXT_H
#define GP_OUTPUT_FORMAT_FLOPS_TEXT_H

#include "base/buf.h"
#include "timeline/analysis/peak.h"

/* Appends a line with the rate of the GPUs and its share of their peaks, or nothing if they did no
 * FLOPs. */
void flops_text_gpu(struct buf *out, const struct gpu_flops *gpu);

#endif /* GP_OUTPUT_FORMAT_FLOPS_TEXT_H */
