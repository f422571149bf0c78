/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What collectors report between windows: the ends of annotations, or, where even that is over the
 * budget, only those right before and after a window, so that its steps can be compared with some
 * outside. Pure: state in, orders out; capture/control/budget_windows.c carries them out.
 */
#ifndef GP_CAPTURE_POLICY_ANNOTATION_MUTE_H
#define GP_CAPTURE_POLICY_ANNOTATION_MUTE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at first: annotations are told. Times are of the monotonic clock, nanoseconds. */
struct annotation_mute {
	bool dark;	/* they are too dear */
	bool is_near;	/* while dark: they are told for a while */
	bool was_muted; /* ever: so it is not known how many steps there were */
	uint64_t muted_until_ns;
	uint64_t look_ns; /* while dark: since when a window is wanted, 0: none is */
	uint64_t seen_ns; /* since when they are told without a gap, UINT64_MAX: not yet */
};

struct mute_input {
	uint64_t now_ns;
	uint64_t off_ns;     /* when the last window ended */
	bool follows;	     /* the collectors do what they were asked last */
	bool is_over_budget; /* see budget__mute_over_budget() */
	bool may_open;	     /* a window */
};

enum mute_order {
	MUTE_GO_ON = 0,
	MUTE_ASK = 1,  /* the collectors for what annotation_mute__is_blind() says now */
	MUTE_OPEN = 2, /* a window */
};

/* Whether annotations are not to be told. */
bool annotation_mute__is_blind(const struct annotation_mute *r);

/* No window is there, and time has gone on. */
enum mute_order annotation_mute__poll(struct annotation_mute *r, const struct mute_input *in);

/* A window that was wanted is wanted no more. */
void annotation_mute__give_up(struct annotation_mute *r);

#endif /* GP_CAPTURE_POLICY_ANNOTATION_MUTE_H */
