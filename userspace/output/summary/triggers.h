/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What made a flight recorder write: in words and as JSON. output_triggers_text() prints the words.
 * Private to this room.
 */
#ifndef GP_OUTPUT_SUMMARY_TRIGGERS_H
#define GP_OUTPUT_SUMMARY_TRIGGERS_H

#include "base/buf.h"
#include "base/json_writer.h"
#include "timeline/model/timeline.h"

/* "slow step", "out of memory", "hang", "signal", "asked for". */
const char *trigger_name(const struct tl_trigger *trigger);

/* Appends what is known of it: "step 124 took 512.000 ms, more than 3.0 times the usual 12.000 ms".
 */
void trigger_words(struct buf *out, const struct timeline *t, const struct tl_trigger *trigger);

/* An array of {kind, time_us (from the start), pid, tid (null: none), us, bound_us, usual_us, step,
 * bytes}; for a hang also threads: [{pid, tid, stack: [innermost first]}]. */
void triggers_json(struct json_writer *j, const struct timeline *t);

#endif /* GP_OUTPUT_SUMMARY_TRIGGERS_H */
