/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sums over all processes that are, or have been, in a capture.
 */
#ifndef GP_CAPTURE_PROCESS_PROCESS_TOTALS_H
#define GP_CAPTURE_PROCESS_PROCESS_TOTALS_H

#include "capture/process/process_state.h"

/* Adds what collectors lost, and which processes were missed. */
void process_totals__losses(const struct process_set *s, uint64_t losses[GP_LOSS_NR]);

/* What collectors have timed of callbacks. */
struct callback_cost process_totals__timed(const struct process_set *s);

/* Processes whose operators come, or came, from the collector. */
uint32_t process_totals__callbacks_nr(const struct process_set *s);

#endif /* GP_CAPTURE_PROCESS_PROCESS_TOTALS_H */
