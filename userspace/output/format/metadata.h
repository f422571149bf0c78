/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What every JSON output holds about its capture: its losses, its description, its cost. Each
 * function writes one value, on one line. Private to this room.
 */
#ifndef GP_OUTPUT_FORMAT_METADATA_H
#define GP_OUTPUT_FORMAT_METADATA_H

#include "base/json_writer.h"
#include "timeline/model/timeline.h"

/* An object: the name of each counter of losses and its value, zeros too. */
void metadata_losses(struct json_writer *j, const struct timeline *t);

/* An object of texts: all of the recording's metadata, and "damage" if the file is not whole. */
void metadata_capture(struct json_writer *j, const struct timeline *t);

/* The CPU time that the capture took inside the traced processes, in nanoseconds, as the recording
 * has it: callbacks, CUPTI's records, probes, samples and the collectors' threads. NAN if some of
 * it was not measured. */
double metadata_inside_ns(const struct timeline *t);

/* An object: the metadata about the capture's cost, numbers as numbers, and the shares of the
 * capture's time and of the processes' CPU time, as far as they are known. */
void metadata_overhead(struct json_writer *j, const struct timeline *t);

/* An array with an object for each process that has steps: how they were found, their number, and
 * the mean, least and most time of one in microseconds. */
void metadata_steps(struct json_writer *j, const struct timeline *t);

/*
 * An object: what the GPUs did. "sum_us" is the sum of all durations; "busy_us" is the time in
 * which at least one kernel, copy or memset ran, added up over the devices. Each device and stream
 * has the same, with the delay from call to start. Says also how well the clocks agree. Call it
 * where timeline.gpu.any.
 */
void metadata_gpu(struct json_writer *j, const struct timeline *t);

/* An object: collections of Python's garbage collector, their number, time and what they
 * collected, by generation. Call it where there are any. */
void metadata_python_gc(struct json_writer *j, const struct timeline *t);

/* Adds all of these to the table's object, as keys. */
void metadata_whole(struct json_writer *j, const struct timeline *t);

#endif /* GP_OUTPUT_FORMAT_METADATA_H */
