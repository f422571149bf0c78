/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Converting CUPTI's clock to CLOCK_MONOTONIC. Both clocks are read together again and again, and a
 * time is converted along the line between the two readings around it, so the readings alone tell
 * the error (struct gp_ev_clock in wire.h). CUPTI's clock may be set between two readings; it is
 * another one until CUDA is ready. Then a time is converted from the only reading it can belong to.
 * A time that could mean several moments is not converted.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_CLOCK_H
#define GP_COLLECTOR_CUPTI_CUPTI_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_READINGS 4096 /* kept; a power of two */
#define CLOCK_GAPS     16

struct clock_reading {
	uint64_t time_ns;  /* CLOCK_MONOTONIC, in the middle of the reading */
	uint64_t gpu_ns;   /* CUPTI's */
	uint64_t width_ns; /* how long the reading took */
};

/* Times of CUPTI's clock that are ambiguous. */
struct clock_gap {
	uint64_t from_ns, to_ns;
};

struct cupti_clock {
	uint64_t nr;			    /* all readings so far */
	uint64_t least_gpu_ns, most_gpu_ns; /* among all readings */
	uint64_t steps_nr;		    /* how often the clock was set */
	uint32_t gaps_nr;
	struct clock_gap gaps[CLOCK_GAPS];
	struct clock_reading readings[CLOCK_READINGS];
};

enum clock_result {
	CLOCK_CONVERTED = 0,
	CLOCK_EARLY = 1,   /* before the first reading */
	CLOCK_UNSTEADY = 2 /* in a gap, or not near any reading */
};

/* Forgets all readings. */
void cupti_clock__init(struct cupti_clock *c);

/* Reads both clocks several times and returns the reading that took least time. False if CUPTI
 * gives no time. */
bool cupti_clock__read(int (*get_timestamp)(uint64_t *ret_ns), struct clock_reading *ret_reading);

/* Adds a reading, in order of time_ns. False if the clock was set since the last one. */
bool cupti_clock__add(struct cupti_clock *c, const struct clock_reading *reading);

/* CLOCK_MONOTONIC of the last reading; 0: there is none. */
uint64_t cupti_clock__last_ns(const struct cupti_clock *c);

/* Converts a time of CUPTI's clock to CLOCK_MONOTONIC. *ret_ns is set with CLOCK_CONVERTED only. */
enum clock_result cupti_clock__convert(const struct cupti_clock *c, uint64_t gpu_ns,
				       uint64_t *ret_ns);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_CLOCK_H */
