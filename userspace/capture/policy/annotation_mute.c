/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "capture/policy/annotation_mute.h"

#include <stddef.h>

#define SECOND_NS 1000000000ULL
#define CALM_NS	  (60 * SECOND_NS) /* until what was too dear is tried again */
#define NEAR_NS	  (SECOND_NS / 20) /* what is looked at, on either side of a window */
#define NOT_YET	  UINT64_MAX

bool annotation_mute__is_blind(const struct annotation_mute *r)
{
	return r->dark && !r->is_near;
}

static enum mute_order look(struct annotation_mute *r, bool dark, bool is_near)
{
	if (!dark || is_near)
		r->seen_ns = NOT_YET;
	r->dark = dark;
	r->is_near = is_near;
	return MUTE_ASK;
}

/* Whether there are steps to compare a window with; or that there will be none. */
static bool has_looked(const struct annotation_mute *r, uint64_t now)
{
	return (r->seen_ns != NOT_YET && now - r->seen_ns >= NEAR_NS) ||
	       now - r->look_ns >= SECOND_NS;
}

static enum mute_order poll_muted(struct annotation_mute *r, const struct mute_input *in)
{
	if (r->look_ns) {
		if (!has_looked(r, in->now_ns))
			return MUTE_GO_ON;
		r->look_ns = 0;
		return MUTE_OPEN;
	}
	if (in->may_open) {
		r->look_ns = in->now_ns;
		return look(r, true, true);
	}
	if (r->is_near && in->now_ns - in->off_ns >= NEAR_NS)
		return look(r, true, false);
	return MUTE_GO_ON;
}

enum mute_order annotation_mute__poll(struct annotation_mute *r, const struct mute_input *in)
{
	if (r->seen_ns == NOT_YET && in->follows)
		r->seen_ns = in->now_ns;
	if (!r->dark && in->is_over_budget) {
		r->was_muted = true;
		r->muted_until_ns = in->now_ns + CALM_NS;
		return look(r, true, false);
	}
	if (r->dark && !r->look_ns && in->now_ns >= r->muted_until_ns && !in->is_over_budget)
		return look(r, false, false);
	if (r->dark)
		return poll_muted(r, in);
	return in->may_open ? MUTE_OPEN : MUTE_GO_ON;
}

void annotation_mute__give_up(struct annotation_mute *r)
{
	r->look_ns = 0;
}
