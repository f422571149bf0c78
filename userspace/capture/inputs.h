/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One numbering of lists of inputs for the recording: each collector has its own, and equal lists
 * of two processes are one.
 */
#ifndef GP_CAPTURE_INPUTS_H
#define GP_CAPTURE_INPUTS_H

#include "base/hash.h"
#include "recording/recording.h"

#include <stdint.h>

struct inputs_ids {
	struct hash by_content;
	struct hash by_source; /* source << 32 | its number -> number */
	uint32_t nr;
};

/* Gives the list of a judged event the recording's number and writes it if it is new, also to
 * `also` (may be NULL). 0 or -errno. */
int inputs_ids__add(struct inputs_ids *n, struct recording_writer *w, struct recording_writer *also,
		    uint32_t source, const struct gp_ev_inputs *ev, size_t bytes);

/* The number that a source's own number was given, 0 if none. */
uint32_t inputs_ids__find(const struct inputs_ids *n, uint32_t source, uint32_t id);

void inputs_ids__done(struct inputs_ids *n);

#endif /* GP_CAPTURE_INPUTS_H */
