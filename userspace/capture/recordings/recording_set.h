/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The recordings that a capture writes one after another: the one in progress, and the one before
 * it while its last events still come. What a recording says of the capture comes from above, by
 * hooks.
 */
#ifndef GP_CAPTURE_RECORDINGS_RECORDING_SET_H
#define GP_CAPTURE_RECORDINGS_RECORDING_SET_H

#include "base/reason.h"
#include "capture/core/options.h"
#include "capture/core/run.h"
#include "capture/recordings/segment.h"

#include <stdbool.h>
#include <stdint.h>

/* Each returns 0 or -errno. NULL: nothing is written. */
struct recording_hooks {
	/* A new recording: what is known of the capture and of its processes. */
	int (*describe)(void *arg, struct segment *s);
	/* The counters so far. */
	int (*write_losses)(void *arg, struct segment *s);
	/* Its last records; it may be broken already, or be so afterwards. */
	int (*finish)(void *arg, struct segment *s);
	/* It has been written whole. */
	void (*finished)(void *arg);
	void *arg;
};

struct recording_set {
	const struct capture_options *options; /* borrowed */
	struct capture_run *run;	       /* borrowed */
	struct recording_hooks hooks;
	struct segments segments;
	uint64_t ended_bytes; /* of recordings that have ended */
	uint32_t begun_nr;    /* recordings that have a file */
	uint32_t ended_nr;    /* those that have ended */
	bool keeps;	      /* each is to have its name */
};

/* The next recording becomes segments.current: it has a file and its description. 0 or -errno with
 * a reason; segments.current is NULL then. */
int recording_set__open(struct recording_set *r, struct reason *why);

/* The window of segments.current begins. 0 or -errno. */
int recording_set__begin(struct recording_set *r, uint64_t start_ns);

/* Finishes a recording and frees it. 0 or -errno. */
int recording_set__end(struct recording_set *r, struct segment **segment);

/* Everything that has come so far is in the files afterwards. 0 or -errno. */
int recording_set__flush(struct recording_set *r);

/* The recordings that are open have their names from now on, and so have later ones. 0 or -errno.
 */
int recording_set__keep(struct recording_set *r);

/* An error on the way into `s` (may be NULL). Where the capture is to outlive a full disk that
 * recording alone is given up. 0, or the error, which the capture fails with. */
int recording_set__note_error(struct recording_set *r, struct segment *s, int err);

/* Writes an event of no process into segments.current, if that can be written. 0 or -errno, noted.
 */
int recording_set__put(struct recording_set *r, const void *event, size_t bytes);

/* Writes a number under this key of the recording's description. 0 or -errno. */
int recording_set__write_number(struct segment *s, const char *key, uint64_t n);

/* Bytes of all recordings, and of the one in progress. */
uint64_t recording_set__bytes(const struct recording_set *r, uint64_t *ret_current);

/* Frees what is open, which goes unless it has its name. */
void recording_set__done(struct recording_set *r);

#endif /* GP_CAPTURE_RECORDINGS_RECORDING_SET_H */
