/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * From CUPTI's records to events in the ring. Each record becomes one event or is counted: as
 * open_at_start if it began before the clock was first read, cupti_time if it has no plausible
 * times, cupti_clock if they cannot be converted, record if it is too short for its kind. Calls and
 * waits of the collector's own thread are left out.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_RECORDS_H
#define GP_COLLECTOR_CUPTI_CUPTI_RECORDS_H

#include "collector/cupti/cupti_abi.h"
#include "collector/cupti/cupti_clock.h"
#include "collector/cupti/cupti_library.h"
#include "collector/runtime/names.h"

#include <stdbool.h>

#define RECORDS_CBIDS	2048
#define RECORDS_KERNELS 1024 /* a power of two */

/* Whether a function only queries something. */
enum asks { ASKS_UNKNOWN = 0, ASKS_NO = 1, ASKS_ONLY = 2 };

struct kernel_name {
	const char *pointer;
	const struct name *name;
};

/* All borrowed but the caches, which are valid as long as `names`. */
struct cupti_records {
	struct ring_writer *ring;
	struct names *names;
	const struct cupti_library *library;
	const struct cupti_clock *clock;
	uint32_t own_thread; /* the collector's; 0: none */
	bool reader_gone;    /* gpuprof has not made room in time */
	bool graphs_seen;    /* calls or work of CUDA graphs were among the records */
	uint32_t api_names[2][RECORDS_CBIDS]; /* runtime, driver; 0: not looked up yet */
	uint8_t asks[RECORDS_CBIDS];	      /* of the driver: enum asks */
	struct kernel_name kernel_names[RECORDS_KERNELS];
};

/* Empties the caches. All pointers are borrowed for as long as records are converted. */
void cupti_records__init(struct cupti_records *r, struct ring_writer *ring, struct names *names,
			 const struct cupti_library *library, const struct cupti_clock *clock);

/* Sets the collector's thread, by its TID. It may be set after the first records, and another
 * thread may convert them. */
void cupti_records__set_own_thread(struct cupti_records *r, uint32_t tid);

/* Converts all records of a completed buffer. Only on the collector's thread or the one that ends
 * the process, because it may wait for gpuprof to make room in the ring. */
void cupti_records__convert(struct cupti_records *r, uint8_t *buffer, size_t valid_bytes);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_RECORDS_H */
