/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The state of `top` that the screen and the printed interval share: the live capture (or
 * recording) it reads, the totals it keeps, and the view that is chosen.
 */
#ifndef GP_CLI_TOP_TOP_MODEL_H
#define GP_CLI_TOP_TOP_MODEL_H

#include "cli/record/live_capture.h"
#include "cli/top/top_facts.h"
#include "cli/top/top_view.h"

#include <stdbool.h>

struct top {
	struct live_capture *live; /* NULL: a recording is shown */
	struct capture_options capture;
	char *cache_dir;
	struct top_facts facts;
	struct live_totals *totals;
	struct top_view view;
	uint64_t start_ns, shown_ns; /* when it began, and when the last interval was taken */
	uint64_t cut_ns;	     /* when the interval in progress began */
	bool paused;		     /* nothing is recorded */
	uint64_t events_nr;	     /* at shown_ns */
	double events_per_s;
	bool over;		     /* no process is left */
	bool had_memory, had_stacks; /* the last interval that was taken */
	long limit;
};

/* Adds one interval's timeline to the totals. 0 or -errno. */
int top_add(struct top *top, const struct timeline *t);

/* Adds every interval whose recording has ended. Returns 1 if there was one, else 0, or -errno with
 * a reason. */
int top_take(struct top *top, struct reason *why);

/* Runs the live capture for up to timeout_ms milliseconds, and ends the interval when it is over.
 * Returns 1 if an interval was added, 0, or -errno with a reason. */
int top_poll(struct top *top, int timeout_ms, struct reason *why);

/* Fills in what the header shows. Its strings are the model's. */
void top_header_of(const struct top *top, struct top_header *ret_header);

/* Starts recording what the view needs, if it is not recorded yet. 0 or -errno with a reason. */
int top_want(struct top *top, enum totals_view view, struct reason *why);

/* Whether the capture records what the view needs. */
bool top_has(const struct top *top, enum totals_view view);

/* Whether the last interval has what the view needs. */
bool top_had(const struct top *top, enum totals_view view);

/* Turns collection off or on again. 0 or -errno with a reason. */
int top_pause(struct top *top, bool paused, struct reason *why);

#endif /* GP_CLI_TOP_TOP_MODEL_H */
