/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "capture/rest.h"

#include <stddef.h>

#define SECOND_NS 1000000000ULL
#define CALM_NS	  (60 * SECOND_NS) /* until what was too dear is tried again */
#define NEAR_NS	  (SECOND_NS / 20) /* what is looked at, on either side of a window */
#define NOT_YET	  UINT64_MAX

bool rest__is_blind(const struct rest *r)
{
	return r->dark && !r->is_near;
}

static enum rest_order look(struct rest *r, bool dark, bool is_near)
{
	if (!dark || is_near)
		r->seen_ns = NOT_YET;
	r->dark = dark;
	r->is_near = is_near;
	return REST_ASK;
}

/* Whether there are steps to compare a window with; or that there will be none. */
static bool has_looked(const struct rest *r, uint64_t now)
{
	return (r->seen_ns != NOT_YET && now - r->seen_ns >= NEAR_NS) ||
	       now - r->look_ns >= SECOND_NS;
}

static enum rest_order turn_dark(struct rest *r, const struct rest_input *in)
{
	if (r->look_ns) {
		if (!has_looked(r, in->now_ns))
			return REST_GO_ON;
		r->look_ns = 0;
		return REST_OPEN;
	}
	if (in->may_open) {
		r->look_ns = in->now_ns;
		return look(r, true, true);
	}
	if (r->is_near && in->now_ns - in->off_ns >= NEAR_NS)
		return look(r, true, false);
	return REST_GO_ON;
}

enum rest_order rest__turn(struct rest *r, const struct rest_input *in)
{
	if (r->seen_ns == NOT_YET && in->follows)
		r->seen_ns = in->now_ns;
	if (!r->dark && in->is_dear) {
		r->was_dark = true;
		r->dark_until_ns = in->now_ns + CALM_NS;
		return look(r, true, false);
	}
	if (r->dark && !r->look_ns && in->now_ns >= r->dark_until_ns && !in->is_dear)
		return look(r, false, false);
	if (r->dark)
		return turn_dark(r, in);
	return in->may_open ? REST_OPEN : REST_GO_ON;
}

void rest__give_up(struct rest *r)
{
	r->look_ns = 0;
}
