/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One capture: from processes to a recording. It probes the processes (and, where wanted, puts the
 * collector into them), drains the kernel's ring and the collectors' rings, and writes each event
 * once. The targets are left as they were found, whatever ends it.
 */
#ifndef GP_CAPTURE_CAPTURE_H
#define GP_CAPTURE_CAPTURE_H

#include "base/reason.h"
#include "capture/core/options.h"
#include "capture/core/status.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct capture;

/* Loads the kernel side and creates the recording. 0 or -errno with a reason. */
int capture__new(const struct capture_options *options, struct reason *why,
		 struct capture **ret_capture);

/* Probes one process; also while events flow. Before that, one without a Python that can be walked
 * is refused where stacks are wanted; later it is taken as it is. 0 or -errno with a reason;
 * -EEXIST if it is in already. */
int capture__add(struct capture *c, pid_t pid, struct reason *why);

/* Events flow from here on. 0 or -errno. */
int capture__start(struct capture *c, struct reason *why);

/* Recordings are to stay: from here on each has its name, one by steps when it has ended. Until
 * then they go when the capture is freed, and what has their names stays. 0 or -errno with a
 * reason. */
int capture__keep(struct capture *c, struct reason *why);

/* Waits at most timeout_ms for something to do and does it. Returns how many processes are still
 * there, or -errno with a reason (the recording cannot be written any more, say). */
int capture__poll(struct capture *c, int timeout_ms, struct reason *why);

/* Asks for collection to go off or on; it has where capture_status.switching is false again. -EBUSY
 * with a reason for a capture by steps, and for one side of one within a budget. */
int capture__switch(struct capture *c, uint32_t sides, bool on, struct reason *why);

/* Asks that the recording in progress ends and the next begins: they have where
 * capture_status.recordings_nr has gone up. Each is whole by itself. An event is in the recording
 * in which it ended, so an op that is open at the border is in the later one; what a GPU did may
 * come later than that, and then is in the recording that was in progress. Asked again meanwhile,
 * it does it once. -EBUSY with a reason for a capture by steps, -EINVAL for one that has one name
 * only or does not run. */
int capture__rotate(struct capture *c, struct reason *why);

/* What has set off a trigger since the last call, of several the last, or the last that someone
 * asked for; it is in the recording in progress, or in one that ended less than
 * CAPTURE_TRIGGER_LATE_NS ago: refused memory is reported once the ops have ended in
 * which that was, if they do so within that time. False: nothing. */
bool capture__take_trigger(struct capture *c, struct gp_ev_trigger *ret_trigger);

/* Sets one off: GP_TRIGGER_SIGNAL or GP_TRIGGER_ASKED. */
void capture__trigger(struct capture *c, enum gp_trigger what);

/* A word of the user's own in the recording; of several with one key the last counts. 0 or -errno
 * with a reason. */
int capture__describe(struct capture *c, const char *key, const char *value, struct reason *why);

/* Everything that has come so far is in the recording's file afterwards. 0 or -errno with a reason.
 */
int capture__flush(struct capture *c, struct reason *why);

/* Takes the probes away, drains the rest and finishes the recording. Idempotent. 0 or -errno with a
 * reason. */
int capture__stop(struct capture *c, struct reason *why);

/* Stops if need be, and frees. */
void capture__free(struct capture *c);

/* How far the capture is. */
void capture__status(const struct capture *c, struct capture_status *ret_status);

#endif /* GP_CAPTURE_CAPTURE_H */
