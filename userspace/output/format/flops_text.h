/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Floating-point operations below a table. Private to this room.
 */
#ifndef GP_OUTPUT_FORMAT_FLOPS_TEXT_H
#define GP_OUTPUT_FORMAT_FLOPS_TEXT_H

#include "base/buf.h"
#include "timeline/analysis/peak.h"

/* One line of what GPUs did, and what share of their peaks that is; nothing if they did none. */
void flops_text_gpu(struct buf *out, const struct gpu_flops *gpu);

#endif /* GP_OUTPUT_FORMAT_FLOPS_TEXT_H */
