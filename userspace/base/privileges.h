/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Drops the capabilities that gpuprof no longer needs. The kernel keeps them per thread, and a new
 * thread inherits what its starter has left. This does not isolate threads, which share memory; it
 * limits what a mistake can do.
 */
#ifndef GP_BASE_PRIVILEGES_H
#define GP_BASE_PRIVILEGES_H

#include "base/reason.h"

#include <stdint.h>

/* Returns the capabilities that attaching to processes takes, as bits 1 << CAP_*. */
uint64_t privileges_of_capture(void);

/* Returns the capabilities that root needs to read recordings and to write results into a user's
 * folders and hand them over. */
uint64_t privileges_of_output(void);

/* Keeps those of `keep` that this thread has and drops the rest for good, from the bounding set
 * too. Programs that it starts cannot gain any. 0 or -errno with a reason. */
int privileges_keep(uint64_t keep, struct reason *why);

#endif /* GP_BASE_PRIVILEGES_H */
