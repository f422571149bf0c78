/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Turns a chunk of events into differences and back. An event is much like the last one of its
 * kind, so most words become zero, and the chunk packs to half the bytes in half the time. See
 * FORMAT.md, type 4. Private to this room.
 */
#ifndef GP_RECORDING_DELTA_H
#define GP_RECORDING_DELTA_H

#include <stddef.h>
#include <stdint.h>

/* Encodes `bytes` of runs, as the writer made them, into `to`, which has the same length. Both are
 * aligned to 8 bytes. */
void delta_encode(const uint8_t *events, size_t bytes, uint8_t *to);

/* Decodes in place. The input is not trusted. 0, or -EBADMSG: these are no runs of events. */
int delta_decode(uint8_t *events, size_t bytes);

#endif /* GP_RECORDING_DELTA_H */
