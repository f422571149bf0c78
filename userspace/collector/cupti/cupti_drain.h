/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * From CUPTI's buffers to the ring: the two callbacks by which CUPTI gets and returns buffers, on
 * any thread; and taking what it has returned, for the thread that is inside cupti_gate.h. The
 * clock is read each time, so that every record lies between two readings.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_DRAIN_H
#define GP_COLLECTOR_CUPTI_CUPTI_DRAIN_H

#include "collector/cupti/cupti_library.h"
#include "collector/runtime/ring_writer.h"

#include <stdbool.h>

/* Readies buffers, names and the clock. Both arguments are borrowed until cupti_drain__end(). False
 * when out of memory. cupti_drain__end() in any case. */
bool cupti_drain__begin(struct ring_writer *ring, const struct cupti_library *library);
/* Gives the callbacks to CUPTI: enum cupti_result. */
int cupti_drain__register(void);
/* Gives back what CUPTI does not hold. Callbacks may still come, and find only what stays. */
void cupti_drain__end(void);

/* Reads both clocks once and writes the reading to the ring. False if CUPTI gives no time. */
bool cupti_drain__read_clock(void);

/* Converts the buffers that CUPTI has returned, after asking for those it holds if `flush`. */
void cupti_drain__take(bool flush);
/* The same, after a flush that makes CUPTI give up incomplete records, too. Those have no times and
 * are counted. */
void cupti_drain__take_incomplete(void);
/* Counts and drops what CUPTI returned as it was finalized: nothing can be asked about it now. */
void cupti_drain__drop_late(void);

/* Writes the GPUs to the ring, unless that was done since cupti_drain__begin(). Not while threads
 * are held: it needs the locks of the loader and the driver, which they may have. */
void cupti_drain__emit_devices(void);

/* The collector's thread, whose own calls are left out. */
void cupti_drain__set_own_thread(uint32_t tid);

/* In a fork's child. */
void cupti_drain__forget(void);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_DRAIN_H */
