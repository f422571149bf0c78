/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads the recordings that the capture finishes, in a thread of its own without privileges: adds
 * them to the totals and to the profiles in progress, and puts them into the recording store.
 */
#ifndef GP_DAEMON_READER_H
#define GP_DAEMON_READER_H

#include "base/buf.h"
#include "base/reason.h"
#include "daemon/capture_loop.h"
#include "daemon/profiles.h"
#include "daemon/recording_store.h"

#include <stdint.h>

struct reader_counts {
	uint64_t dropped_nr;	    /* recordings that were not read, for want of time */
	uint64_t dropped_events_nr; /* events in these */
	uint64_t damaged_nr;	    /* that could not be read, wholly or in part */
	uint64_t unsaved_nr;	    /* that could not be kept where they were to be */
};

struct reader;

/* Borrows both. 0 or -errno with a reason. */
int reader__new(struct profiles *profiles, struct recording_store *store, struct reason *why,
		struct reader **ret_reader);

/* Reads the recordings that are left, then ends the thread. */
void reader__free(struct reader *r);

/* Hands a recording to the thread, with its descriptor. Never waits. */
void reader__give(struct reader *r, const struct captured_recording *recording);

/* Appends the metrics of the totals. */
void reader__metrics(struct reader *r, struct buf *out);
void reader__counts(struct reader *r, struct reader_counts *ret_counts);

/* Appends a row of an HTML table for each process. */
void reader__index(struct reader *r, struct buf *out);

#endif /* GP_DAEMON_READER_H */
