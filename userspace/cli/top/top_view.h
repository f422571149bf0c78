/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes the views of `top` as text, the same for the terminal and for --once. Pure.
 */
#ifndef GP_CLI_TOP_TOP_VIEW_H
#define GP_CLI_TOP_TOP_VIEW_H

#include "base/buf.h"
#include "cli/top/top_facts.h"
#include "output/summary/live_totals.h"

#include <stdbool.h>

enum top_unit {
	TOP_SHARE,   /* of the sum of all rows */
	TOP_OF_WALL, /* of the interval */
	TOP_TIME,
	TOP_MEAN, /* of a call */
	TOP_BYTES,
	TOP_COUNT,
	TOP_THREAD, /* number of the thread */
};

struct top_column {
	const char *key; /* of --sort */
	const char *title;
	enum top_unit unit;
	enum totals_value value;
	int width;
	int rank;      /* those of higher ranks go first where there is no room; 0: never */
	bool gpu_only; /* only where there was GPU activity */
};

struct top_view_info {
	const char *name; /* of --view */
	char letter;
	const char *label;	/* the letter in brackets: "[o]ps" */
	const char *name_title; /* of the last column */
	const char *empty;	/* what to say where there is no row */
	const char *about;	/* one line for the help */
	const struct top_column *columns;
	size_t columns_nr;
};
struct top_view {
	enum totals_view view;
	const struct top_column *sort[TOTALS_VIEWS];
	bool reverse[TOTALS_VIEWS];
	char filter[64]; /* part of a name, in any case; "": all */
	enum totals_span span;
	double interval_s; /* 0: a recording, no live view */
	bool sampled;	   /* what is shown comes from samples */
	bool ascii;
};
/* Each view sorted by its first column. */
void top_view__init(struct top_view *v, bool sampled);

/* A view's names, columns and texts. */
const struct top_view_info *top_view_info(const struct top_view *v, enum totals_view view);

/* The column of a key in the view that is shown, or NULL. */
const struct top_column *top_column_find(const struct top_view *v, const char *key);

/* Rows that have anything and fit the filter, in order. The caller frees with vec_done(). 0 or
 * -ENOMEM. */
struct top_rows {
	VEC(const struct totals_row *) list;
	uint64_t totals[TOTALS_VALUES]; /* of all rows, those that do not fit too */
};
int top_rows__fill(struct top_rows *r, const struct top_view *v, const struct live_totals *y);

/* How a terminal is to show what follows; in texts for a terminal only. */
enum top_mark { TOP_PLAIN = 1, TOP_BOLD = 2, TOP_BAR = 3, TOP_ALARM = 4 };

/* Appends the lines above the rows, without marks if `plain`. */
struct top_header {
	const struct live_totals *totals;
	const struct top_facts *facts; /* NULL: a recording */
	uint64_t uptime_ns;
	double events_per_s;
	uint64_t lost_nr;
	bool has_memory; /* it is recorded */
	bool plain;
	int columns; /* of the terminal, 0: any number */
	int devices_max;
};
void top_put_header(struct buf *out, const struct top_view *v, const struct top_header *h);

/* Which columns find room beside a name of some length: a bit each. columns 0: all. */
uint32_t top_columns_shown(const struct top_view *v, bool has_gpu, int columns);

/* The titles, and one row without its name, as far as columns are shown: bits. Both end where the
 * name begins. */
void top_put_titles(struct buf *out, const struct top_view *v, uint32_t shown);
void top_put_cells(struct buf *out, const struct top_view *v, uint32_t shown,
		   const struct totals_row *row, const struct top_rows *rows, uint64_t wall_ns);

/* The name of a row, of which directories give way where it has more than `room` bytes (0: any
 * number). */
void top_put_name(struct buf *out, const struct top_view *v, const struct totals_row *row,
		  size_t room);

#endif /* GP_CLI_TOP_TOP_VIEW_H */
