/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * From CUPTI's clock to CLOCK_MONOTONIC. The two are read together again and again; a time is
 * converted along the line between the two readings around it, so what it is wrong by can be told
 * from the readings alone (struct gp_ev_clock in wire.h). Where the clock was set between two
 * readings (CUPTI's own is another until CUDA is ready), a time is converted from the reading that
 * it can only belong to; what could mean several moments is not converted.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_CLOCK_H
#define GP_COLLECTOR_CUPTI_CUPTI_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_READINGS 4096 /* kept; a power of two */
#define CLOCK_GAPS     16

struct clock_reading {
	uint64_t time_ns;  /* CLOCK_MONOTONIC, in the middle */
	uint64_t gpu_ns;   /* CUPTI's */
	uint64_t width_ns; /* the clock was read within this time */
};

/* Times of CUPTI's clock that say nothing. */
struct clock_gap {
	uint64_t from_ns, to_ns;
};

struct cupti_clock {
	uint64_t nr;			    /* readings ever taken */
	uint64_t least_gpu_ns, most_gpu_ns; /* of all of them */
	uint64_t steps_nr;		    /* how often it was set */
	uint32_t gaps_nr;
	struct clock_gap gaps[CLOCK_GAPS];
	struct clock_reading readings[CLOCK_READINGS];
};

enum clock_result {
	CLOCK_CONVERTED = 0,
	CLOCK_EARLY = 1,   /* before the first reading */
	CLOCK_UNSTEADY = 2 /* in a gap, or nowhere near a reading */
};

/* Begins anew. */
void cupti_clock__init(struct cupti_clock *c);

/* Reads both clocks, some times over, and keeps the tightest. False if CUPTI gives no time. */
bool cupti_clock__read(int (*get_timestamp)(uint64_t *ret_ns), struct clock_reading *ret_reading);

/* Adds a reading; they come in order of time_ns. False if the clock was not steady since the last
 * one. */
bool cupti_clock__add(struct cupti_clock *c, const struct clock_reading *reading);

/* CLOCK_MONOTONIC of the last reading; 0: there is none. */
uint64_t cupti_clock__last_ns(const struct cupti_clock *c);

/* A time of CUPTI's clock as CLOCK_MONOTONIC, set if CLOCK_CONVERTED only. */
enum clock_result cupti_clock__convert(const struct cupti_clock *c, uint64_t gpu_ns,
				       uint64_t *ret_ns);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_CLOCK_H */
