/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A chunk of events as differences: an event is much like the last one of its kind, so what is left
 * is mostly zeros, which pack to half of the bytes in half of the time. See FORMAT.md, type 4.
 * Private to this room.
 */
#ifndef GP_RECORDING_DELTA_H
#define GP_RECORDING_DELTA_H

#include <stddef.h>
#include <stdint.h>

/* `events`: `bytes` of runs, as the writer has made them. `to` has room for as many, and gets as
 * many. Both are aligned to 8 bytes. */
void delta_encode(const uint8_t *events, size_t bytes, uint8_t *to);

/* The reverse, in place; of anything. 0, or -EBADMSG: these are no runs of events. */
int delta_decode(uint8_t *events, size_t bytes);

#endif /* GP_RECORDING_DELTA_H */
