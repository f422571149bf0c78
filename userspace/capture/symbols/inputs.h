/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One numbering of lists of inputs for the recordings of a capture: each collector has its own, and
 * equal lists of two processes are one.
 */
#ifndef GP_CAPTURE_SYMBOLS_INPUTS_H
#define GP_CAPTURE_SYMBOLS_INPUTS_H

#include "base/buf.h"
#include "base/hash.h"
#include "base/vec.h"
#include "capture/recordings/segment.h"

#include <stdint.h>

struct inputs_ids {
	struct hash by_content;
	struct hash by_source; /* source << 32 | its number -> number */
	VEC(size_t) lists;     /* by number less 1: where its event begins in `events` */
	struct buf events;     /* with the capture's numbers, one behind the other */
};

/* Gives the list of a judged event the capture's number. 0 or -errno. */
int inputs_ids__add(struct inputs_ids *n, uint32_t source, const struct gp_ev_inputs *ev,
		    size_t bytes);

/* Tells the recording of the list with this number, if it has not been told; 0 is none. 0 or a
 * writer's error. */
int inputs_ids__emit(const struct inputs_ids *n, struct segment *to, uint32_t number);

/* The number that a source's own number was given, 0 if none. */
uint32_t inputs_ids__find(const struct inputs_ids *n, uint32_t source, uint32_t id);

/* Nothing more comes from this source: its numbers are forgotten, not the lists. */
void inputs_ids__forget(struct inputs_ids *n, uint32_t source);

void inputs_ids__done(struct inputs_ids *n);

#endif /* GP_CAPTURE_SYMBOLS_INPUTS_H */
