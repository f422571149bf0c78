/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What is told between windows of collection: the ends of annotations; or, where even that costs
 * too much, those right before and after a window alone, so that its steps can be compared with
 * some outside. Pure: what is in, what is to be done out; capture/windows.c carries it out. Private
 * to this room.
 */
#ifndef GP_CAPTURE_REST_H
#define GP_CAPTURE_REST_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at first: annotations are told. Times are of the monotonic clock, nanoseconds. */
struct rest {
	bool dark;     /* they are too dear */
	bool is_near;  /* while dark: they are told for a while */
	bool was_dark; /* ever: so it is not known how many steps there were */
	uint64_t dark_until_ns;
	uint64_t look_ns; /* while dark: since when a window is wanted, 0: none is */
	uint64_t seen_ns; /* since when they are told without a gap, UINT64_MAX: not yet */
};

struct rest_input {
	uint64_t now_ns;
	uint64_t off_ns; /* when the last window ended */
	bool follows;	 /* the collectors do what they were asked last */
	bool is_dear;	 /* see budget__rest_is_dear() */
	bool may_open;	 /* a window */
};

enum rest_order {
	REST_GO_ON = 0,
	REST_ASK = 1,  /* the collectors for what rest__is_blind() says now */
	REST_OPEN = 2, /* a window */
};

/* Whether annotations are not to be told. */
bool rest__is_blind(const struct rest *r);

/* No window is there, and time has gone on. */
enum rest_order rest__turn(struct rest *r, const struct rest_input *in);

/* A window that was wanted is wanted no more. */
void rest__give_up(struct rest *r);

#endif /* GP_CAPTURE_REST_H */
