/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The rate of samples of a capture: capture/policy/sampling_rate.h decides it, here it is measured
 * for, put in force and told. Does nothing where nothing is sampled. Private to this room.
 */
#ifndef GP_CAPTURE_CONTROL_SAMPLING_H
#define GP_CAPTURE_CONTROL_SAMPLING_H

#include "capture/policy/sampling_rate.h"

#include <stdint.h>

struct capture;
struct segment;

struct sampling {
	struct sampling_rate rate;
	uint64_t poll_cpu_ns; /* CPU time of the thread that polls the capture, in that */
	bool over_emitted;
};

/* The capture is about to start. */
void sampling_start(struct capture *c);

/* It has been polled, which took so much CPU time. */
void sampling_poll(struct capture *c, uint64_t cpu_ns);

/* A recording begins; ends. */
void sampling_begin(struct capture *c, uint64_t now_ns);
void sampling_end(struct capture *c, struct segment *s, uint64_t now_ns);

/* What it is to cost, and how often samples were due, into the recording's description. 0 or
 * -errno. */
int sampling_describe(const struct capture *c, struct segment *s);
int sampling_write(const struct capture *c, struct segment *s);

#endif /* GP_CAPTURE_CONTROL_SAMPLING_H */
