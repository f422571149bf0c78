/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What every JSON output says about its capture, each one JSON object on one line. Private to this
 * room.
 */
#ifndef GP_OUTPUT_FORMAT_METADATA_H
#define GP_OUTPUT_FORMAT_METADATA_H

#include "base/buf.h"
#include "timeline/model/timeline.h"

/* Name -> count, zeros too. */
void describe_losses(struct buf *out, const struct timeline *t);

/* Everything the recording's metadata holds, as text; "damage" if the file is not whole. */
void describe_capture(struct buf *out, const struct timeline *t);

/* What the capture took of the processes' CPU time, in nanoseconds, as the recording tells it:
 * callbacks, records of CUPTI, probes, samples and the collectors' threads; NAN where some of it
 * was not measured. */
double describe_inside_ns(const struct timeline *t);

/* The metadata about probes, numbers as numbers; with a measured probe_ns_per_hit also the share of
 * the capture's time. */
void describe_overhead(struct buf *out, const struct timeline *t);

/* One object for each process with steps: how they were found, their number, and the mean, least
 * and most time of one in microseconds. */
void describe_steps(struct buf *out, const struct timeline *t);

/*
 * What the GPUs did: "sum_us", all durations added up; "busy_us", the time at least one kernel,
 * copy or memset ran, added up over the devices; the same for each device and stream, with the
 * delay from call to begin; how well the clocks are known to agree. Call it where timeline.gpu.any.
 */
void describe_gpu(struct buf *out, const struct timeline *t);

/* Collections of Python's garbage collector: number, time, what they collected, by generation. Call
 * it where there are any. */
void describe_python_gc(struct buf *out, const struct timeline *t);

/* All of these as the last members of the table's JSON object, which it ends. */
void describe_whole(struct buf *out, const struct timeline *t);

#endif /* GP_OUTPUT_FORMAT_METADATA_H */
