/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What CUPTI reports after the end of the capture. Operators have ended by then, but records go on
 * for up to a second, until the process's threads are held outside of CUDA. Calls that began after
 * the end are not part of the capture, and neither is what they launched. Calls and work come in
 * any order, so all is kept until the last has come.
 */
#ifndef GP_CAPTURE_RECORDINGS_LATE_RECORDS_H
#define GP_CAPTURE_RECORDINGS_LATE_RECORDS_H

#include "base/buf.h"
#include "base/hash.h"

#include <stdbool.h>

struct late_records {
	struct buf held;   /* events, each padded to 8 bytes behind its length */
	struct hash calls; /* process << 32 | correlation id, of calls; 1: it began later */
};

/* Keeps the event (of a kind of CUPTI's), unless it began later. False: there is no room for more;
 * what is put then although it was launched later has no call, and is counted as that. */
bool late_records__keep(struct late_records *t, const void *event, size_t bytes, uint64_t end_ns);

typedef int (*tail_fn)(const void *event, size_t bytes, void *arg);

/* Calls fn for each that was not launched later; the first error ends that and is returned, -ENOMEM
 * where some could not be kept. */
int late_records__each(const struct late_records *t, tail_fn fn, void *arg);

void late_records__done(struct late_records *t);

#endif /* GP_CAPTURE_RECORDINGS_LATE_RECORDS_H */
