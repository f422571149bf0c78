/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The way of an event from the rings: checked, written, and handed to the controllers and to its
 * process.
 */
#ifndef GP_CAPTURE_DISPATCH_H
#define GP_CAPTURE_DISPATCH_H

#include "base/buf.h"
#include "capture/control/controller.h"
#include "capture/events/event_writer.h"
#include "capture/process/process_state.h"
#include "capture/recordings/late_records.h"

struct dispatch {
	/* Borrowed. */
	struct capture_run *run;
	struct process_set *processes;
	struct event_writer *writer;
	struct controllers *controllers;
	/* Its own. */
	struct late_records late_records;
	/* By steps: events of the kernel's ring, until those of the collectors of the same time
	 * have been taken. */
	struct buf held;
};

/* Takes every event that is there, and holds threads of processes whose collectors ask for that.
 * `d` is a struct dispatch. An error stays in d->run->failed. */
void dispatch__drain(void *d);

/* Takes every event that is there, no more: while threads are held already. */
void dispatch__take(void *d);

/* Takes one event of a collector, of a kind that collectors may report (collector/events.c has
 * validated it). 0, or -errno, which is in d->run->failed. */
int dispatch__collector_event(const void *event, size_t bytes, void *d);

/* Takes what CUPTI has reported since the capture stopped and is part of it. 0 or -errno. */
int dispatch__put_late_records(struct dispatch *d);

void dispatch__done(struct dispatch *d);

#endif /* GP_CAPTURE_DISPATCH_H */
