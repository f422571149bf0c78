/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The buffers that CUPTI writes its records to. CUPTI requests and returns them on any thread, the
 * process's own included, so those two calls take no lock and allocate nothing. Returned buffers
 * wait in a list for the collector's thread.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_BUFFERS_H
#define GP_COLLECTOR_CUPTI_CUPTI_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUFFERS_NR   128
#define BUFFER_BYTES (2U << 20)

/* Maps the memory; unused pages cost nothing. If CUPTI has kept more than half of the buffers of an
 * earlier session, those are left to it and new memory is mapped. False when out of memory. */
bool cupti_buffers__open(void);
/* Unmaps the memory if CUPTI has returned all buffers (it may keep some for ever). From here on
 * requests get spare buffers. Fine when not open. */
void cupti_buffers__close(void);

/* Gives CUPTI a buffer, on any thread. If all are in use, that is a spare buffer, whose records are
 * only counted. If those are in use, too, and `may_refuse`, it is NULL, and CUPTI counts what it
 * drops. CUPTI before CUDA 12.9 may crash on NULL: without `may_refuse` it is one last buffer that
 * all requests share. */
void cupti_buffers__request(bool may_refuse, uint8_t **ret_buffer, size_t *ret_bytes);
/* Takes a buffer back from CUPTI. True: its records are to be read. False: it is a spare one, or
 * not ours. */
bool cupti_buffers__complete(uint8_t *buffer, size_t valid_bytes);

/* Whether it is a spare buffer that one request had to itself, so that its records can be counted.
 * The last buffer is shared, and a buffer that is not ours belongs to another user of CUPTI. */
bool cupti_buffers__spare_is_own(const uint8_t *buffer);
/* Makes the spare buffer available again. */
void cupti_buffers__release_spare(const uint8_t *buffer);

/* Takes the buffers that CUPTI has returned, in that order. ret_indices has room for BUFFERS_NR.
 * Returns how many. */
uint32_t cupti_buffers__take(uint8_t *ret_indices);
/* The content of a taken buffer. */
uint8_t *cupti_buffers__content(uint8_t index, size_t *ret_valid_bytes);
/* Makes the buffer available again. */
void cupti_buffers__release(uint8_t index);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_BUFFERS_H */
