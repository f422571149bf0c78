/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Why the BPF programs could not be loaded. Private to this room.
 */
#ifndef GP_PROBE_EXPLAIN_H
#define GP_PROBE_EXPLAIN_H

#include "base/reason.h"

/* Puts the words for -errno `err`, with the next step, into `why`. Returns err. */
int probe_explain_load(struct reason *why, int err);

#endif /* GP_PROBE_EXPLAIN_H */
