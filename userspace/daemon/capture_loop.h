/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Captures for the daemon. One capture serves all processes, because each capture has a ring of
 * its own, and every further probe on a library slows all processes that run it. Discovered
 * processes join it. It writes recordings in memory, one after another. The capture restarts when
 * too many processes have gone through it, or when none has been in it for a while: its names,
 * stacks and processes go with it, so that memory stays bounded for months.
 */
#ifndef GP_DAEMON_CAPTURE_LOOP_H
#define GP_DAEMON_CAPTURE_LOOP_H

#include "base/reason.h"
#include "capture/capture.h"
#include "daemon/process_discovery.h"

#include <stdbool.h>
#include <stdint.h>

/* One recording that has ended; the descriptor is the receiver's. */
struct captured_recording {
	uint64_t nr; /* they count from 0 */
	int fd;
	uint64_t events_nr;
	uint64_t capture_nr; /* which capture it is from */
};

struct capture_loop_options {
	struct capture_options capture; /* paths and schedule are the watch's own */
	struct process_discovery_options find;
	uint64_t period_ns;  /* of a recording, at most */
	uint64_t events_max; /* a recording ends where it has so many */
	/* Called when the recording of this number begins, or would begin if a capture were
	 * running. Earlier events are in recordings of lower numbers, some of which may not have
	 * ended. */
	void (*began)(uint64_t nr, void *arg);
	void (*ended)(const struct captured_recording *recording, void *arg);
	void *arg;
};

struct capture_loop_counts {
	uint64_t processes_nr; /* captured now */
	uint64_t joined_nr;
	uint64_t gone_nr;     /* ended while they were being attached to */
	uint64_t refused_nr;  /* attempts to attach that failed otherwise */
	uint64_t captures_nr; /* captures begun */
	uint64_t failed_nr;   /* of them: ended by an error */
	uint64_t scan_failed_nr;
};

struct capture_loop;

/* Borrows what the options point to. NULL: out of memory. */
struct capture_loop *capture_loop__new(const struct capture_loop_options *options);

/* Ends the capture. Its last recording is handed over first. */
void capture_loop__free(struct capture_loop *w);

/* Loads the BPF programs once, so that a refusal comes at the start. 0 or -errno with a reason. */
int capture_loop__try(struct capture_loop *w, struct reason *why);

/* Does the work that is due, waiting at most timeout_ms milliseconds. Counts and logs errors. */
void capture_loop__poll(struct capture_loop *w, int timeout_ms);

/* Asks for the recording in progress to end now. False: none is in progress. */
bool capture_loop__cut(struct capture_loop *w);

/* The number that the next recording to begin will have. */
uint64_t capture_loop__next(const struct capture_loop *w);

/* Whether the process is captured now. */
bool capture_loop__has(const struct capture_loop *w, pid_t pid);
void capture_loop__counts(const struct capture_loop *w, struct capture_loop_counts *ret_counts);

#endif /* GP_DAEMON_CAPTURE_LOOP_H */
