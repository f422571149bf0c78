/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The state of `top`, which its parts share: what it is fed from and what is shown.
 */
#ifndef GP_CLI_TOP_TOP_H
#define GP_CLI_TOP_TOP_H

#include "cli/record/live_capture.h"
#include "cli/top/top_facts.h"
#include "cli/top/top_view.h"

#include <stdbool.h>

struct top {
	struct live_capture *live; /* NULL: a recording is shown */
	struct capture_options capture;
	char *cache_dir;
	struct top_facts facts;
	struct live_totals *tally;
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

/* Waits at most timeout_ms for something to do and does it. Returns 1 if an interval was added, 0,
 * or -errno with a reason. */
int top_poll(struct top *top, int timeout_ms, struct reason *why);

/* What the header is to show, by now. */
void top_header_of(const struct top *top, struct top_header *ret_header);

/* Records what the view needs and is not recorded yet. 0 or -errno with a reason. */
int top_want(struct top *top, enum totals_view view, struct reason *why);

/* Whether a view can have rows by what is recorded. */
bool top_has(const struct top *top, enum totals_view view);

/* Whether the last interval was recorded with what the view needs. */
bool top_had(const struct top *top, enum totals_view view);

/* Collection off, or on again. 0 or -errno with a reason. */
int top_pause(struct top *top, bool paused, struct reason *why);

/* The view on the terminal until a key or a signal ends it. An enum cli_status. */
int top_screen(struct top *top);

/* The last interval on stdout. 0 or -errno. */
int top_print_text(const struct top *top);
int top_print_json(const struct top *top);

#endif /* GP_CLI_TOP_TOP_H */
