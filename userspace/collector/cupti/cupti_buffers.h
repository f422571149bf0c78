/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The memory that CUPTI writes its records to. CUPTI asks for buffers and gives them back on
 * whatever thread it likes, the target's own among them: those two calls take no lock and allocate
 * nothing. What came back waits in a list for the collector's thread.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_BUFFERS_H
#define GP_COLLECTOR_CUPTI_CUPTI_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUFFERS_NR   128
#define BUFFER_BYTES (2U << 20)

/* Sets the memory aside; pages that are not used cost nothing. Where CUPTI has kept half of what
 * there was, that stays its own, and there is new memory. False when there is none. */
bool cupti_buffers__open(void);
/* Gives the memory back if CUPTI has returned all of it (it may keep some for ever); requests are
 * answered with spare buffers from here on. Fine when not open. */
void cupti_buffers__close(void);

/* For CUPTI, on any thread. When all are in use it is a spare one, whose records are only counted,
 * and where those are too, NULL if `may_refuse`: CUPTI then counts what it drops. Before CUDA 12.9
 * it may crash on that: there it is one that everybody writes to. */
void cupti_buffers__request(bool may_refuse, uint8_t **ret_buffer, size_t *ret_bytes);
/* Takes a buffer back; true if it holds records to be read, false if it is a spare one. */
bool cupti_buffers__complete(uint8_t *buffer, size_t valid_bytes);

/* Whether this spare one has been with one user only. The last one goes to everybody, and what is
 * not ours at all may come from whoever else has called CUPTI. */
bool cupti_buffers__spare_is_own(const uint8_t *buffer);
/* Done with it. */
void cupti_buffers__release_spare(const uint8_t *buffer);

/* The buffers that have come back, in that order: how many. */
uint32_t cupti_buffers__take(uint8_t *ret_indices);
uint8_t *cupti_buffers__content(uint8_t index, size_t *ret_valid_bytes);
/* Done with it. */
void cupti_buffers__release(uint8_t index);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_BUFFERS_H */
