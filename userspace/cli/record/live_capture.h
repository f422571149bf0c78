/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Captures into memory, one recording after another, so that they can be read while the capture
 * goes on. `top` is made from these. Logs errors.
 */
#ifndef GP_CLI_RECORD_LIVE_CAPTURE_H
#define GP_CLI_RECORD_LIVE_CAPTURE_H

#include "base/reason.h"
#include "capture/capture.h"
#include "cli/view/loaded_recording.h"

#include <sys/types.h>

struct live_capture;

/* Loads, probes the processes and starts. Of `options` output_path and recording_path are not used.
 * Processes that have ended meanwhile are left out, as long as one is there. 0 or -errno with a
 * reason. */
int live_capture__new(const struct capture_options *options, const pid_t *pids, size_t pids_nr,
		      struct reason *why, struct live_capture **ret_live);

/* Waits at most timeout_ms for something to do and does it. Returns how many processes are still
 * there, or -errno with a reason. An interval with very many events is cut early. */
int live_capture__poll(struct live_capture *l, int timeout_ms, struct reason *why);

/* Asks that the recording in progress ends now and the next begins. 0 or -errno with a reason. */
int live_capture__cut(struct live_capture *l, struct reason *why);

/* The oldest recording that has ended and was not taken yet. Returns 1 and the caller owns *ret, 0:
 * there is none, or -EIO: one could not be read, which was logged. */
int live_capture__take(struct live_capture *l, struct loaded_recording *ret);

/* Restarts the capture with other options; finished recordings can be taken. Where that fails it
 * goes on with the old ones: -errno with a reason. */
int live_capture__change(struct live_capture *l, const struct capture_options *options,
			 struct reason *why);

/* Turns collection off or on again; while it is off the processes run at full speed. 0 or -errno
 * with a reason. */
int live_capture__pause(struct live_capture *l, bool paused, struct reason *why);

/* Ends the capture. The last recording can be taken. 0 or -errno with a reason. */
int live_capture__stop(struct live_capture *l, struct reason *why);
void live_capture__free(struct live_capture *l);

/* Sums over all that was recorded since live_capture__new(). */
struct live_status {
	uint64_t events_nr;
	uint64_t lost_nr;
	uint32_t sites_nr, functions_nr;
	uint32_t processes_nr; /* now */
	uint32_t callbacks_nr; /* of them: operators by callback */
	const char *method;
};
void live_capture__status(const struct live_capture *l, struct live_status *ret_status);

#endif /* GP_CLI_RECORD_LIVE_CAPTURE_H */
