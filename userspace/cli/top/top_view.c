/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sorts rows, fits their columns to a width and writes them.
 */
#include "cli/top/top_view.h"

#include "cli/top/top_units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME_WIDTH 24 /* columns give way for so much of a name */

static const struct top_column op_columns[] = {
	{"self_pct", "SELF%", TOP_SHARE, TOTALS_SELF_CPU_NS, 6, 0, false},
	{"self", "SELF", TOP_TIME, TOTALS_SELF_CPU_NS, 8, 0, false},
	{"total", "TOTAL", TOP_TIME, TOTALS_CPU_NS, 8, 2, false},
	{"avg", "AVG", TOP_MEAN, TOTALS_CPU_NS, 8, 4, false},
	{"calls", "CALLS", TOP_COUNT, TOTALS_CALLS, 8, 1, false},
	{"gpu", "GPU SELF", TOP_TIME, TOTALS_SELF_CUDA_NS, 8, 3, true},
	{"gpu_total", "GPU TOT", TOP_TIME, TOTALS_CUDA_NS, 8, 1, true},
};

/* By samples; ~ marks what is estimated from them. Of lines, too. */
static const struct top_column sampled_columns[] = {
	{"self_pct", "~SELF%", TOP_SHARE, TOTALS_SELF_CPU_NS, 7, 0, false},
	{"self", "~SELF", TOP_TIME, TOTALS_SELF_CPU_NS, 8, 0, false},
	{"total", "~TOTAL", TOP_TIME, TOTALS_CPU_NS, 8, 2, false},
	{"off", "~OFF CPU", TOP_TIME, TOTALS_OFF_NS, 9, 3, false},
	{"samples", "SAMPLES", TOP_COUNT, TOTALS_SAMPLES, 8, 1, false},
};

static const struct top_column kernel_columns[] = {
	{"time_pct", "TIME%", TOP_SHARE, TOTALS_SELF_CUDA_NS, 6, 0, false},
	{"busy", "OF WALL", TOP_OF_WALL, TOTALS_SELF_CUDA_NS, 7, 3, false},
	{"time", "TIME", TOP_TIME, TOTALS_SELF_CUDA_NS, 8, 0, false},
	{"avg", "AVG", TOP_MEAN, TOTALS_SELF_CUDA_NS, 8, 2, false},
	{"calls", "CALLS", TOP_COUNT, TOTALS_CALLS, 8, 1, false},
};

static const struct top_column line_columns[] = {
	{"self_pct", "SELF%", TOP_SHARE, TOTALS_SELF_CPU_NS, 6, 0, false},
	{"self", "SELF", TOP_TIME, TOTALS_SELF_CPU_NS, 8, 2, false},
	{"total", "TOTAL", TOP_TIME, TOTALS_CPU_NS, 8, 0, false},
	{"calls", "OPS", TOP_COUNT, TOTALS_CALLS, 8, 3, false},
	{"gpu", "GPU SELF", TOP_TIME, TOTALS_SELF_CUDA_NS, 8, 2, true},
	{"gpu_total", "GPU TOT", TOP_TIME, TOTALS_CUDA_NS, 8, 1, true},
};

static const struct top_column memory_columns[] = {
	{"bytes", "CPU MEM", TOP_BYTES, TOTALS_CPU_BYTES, 9, 0, false},
	{"kept", "KEPT", TOP_BYTES, TOTALS_CPU_KEPT_BYTES, 9, 1, false},
	{"gpu_bytes", "GPU MEM", TOP_BYTES, TOTALS_CUDA_BYTES, 9, 0, true},
	{"gpu_kept", "GPU KEPT", TOP_BYTES, TOTALS_CUDA_KEPT_BYTES, 9, 1, true},
	{"calls", "ALLOCS", TOP_COUNT, TOTALS_ALLOCATIONS, 8, 2, false},
};

static const struct top_column thread_columns[] = {
	{"cpu_pct", "CPU%", TOP_OF_WALL, TOTALS_RAN_NS, 6, 0, false},
	{"ops_pct", "IN OPS%", TOP_OF_WALL, TOTALS_CPU_NS, 7, 1, false},
	{"calls", "OPS", TOP_COUNT, TOTALS_CALLS, 8, 2, false},
	{"tid", "THREAD", TOP_THREAD, TOTALS_CALLS, 8, 0, false},
};

static const struct top_column sampled_thread_columns[] = {
	{"cpu_pct", "CPU%", TOP_OF_WALL, TOTALS_RAN_NS, 6, 0, false},
	{"ops_pct", "~IN OPS%", TOP_OF_WALL, TOTALS_CPU_NS, 9, 1, false},
	{"samples", "SAMPLES", TOP_COUNT, TOTALS_SAMPLES, 8, 2, false},
	{"tid", "THREAD", TOP_THREAD, TOTALS_CALLS, 8, 0, false},
};

#define COLUMNS(list) .columns = list, .columns_nr = sizeof(list) / sizeof(list[0])

static const struct top_view_info traced_views[TOTALS_VIEWS] = {
	[TOTALS_OPS] = {.name = "ops",
			.letter = 'o',
			.label = "[o]ps",
			.name_title = "OPERATOR",
			.empty = "no operator ran",
			.about = "operators: time of their own and with what they call",
			COLUMNS(op_columns)},
	[TOTALS_KERNELS] = {.name = "kernels",
			    .letter = 'k',
			    .label = "[k]ernels",
			    .name_title = "KERNEL OR COPY",
			    .empty = "no work of a GPU was seen",
			    .about = "GPU work: kernels, copies, memsets",
			    COLUMNS(kernel_columns)},
	[TOTALS_LINES] = {.name = "lines",
			  .letter = 'l',
			  .label = "[l]ines",
			  .name_title = "LINE OF PYTHON",
			  .empty = "no line called an operator",
			  .about = "lines of Python: time in operators they call, backward too",
			  COLUMNS(line_columns)},
	[TOTALS_MEMORY] = {.name = "memory",
			   .letter = 'm',
			   .label = "[m]emory",
			   .name_title = "OPERATOR",
			   .empty = "nothing was allocated",
			   .about = "operators that allocate; KEPT: not freed in the same interval",
			   COLUMNS(memory_columns)},
	[TOTALS_THREADS] = {.name = "threads",
			    .letter = 't',
			    .label = "[t]hreads",
			    .name_title = "NAME",
			    .empty = "no thread ran",
			    .about = "threads: time on a CPU, and in operators",
			    COLUMNS(thread_columns)},
};

/* Views that samples fill in another way; the others are the same. */
static const struct top_view_info sampled_views[TOTALS_VIEWS] = {
	[TOTALS_OPS] = {.name = "ops",
			.letter = 'o',
			.label = "[o]ps",
			.name_title = "OPERATOR",
			.empty = "no thread ran",
			.about = "operators by samples: time of their own and with what they call",
			COLUMNS(sampled_columns)},
	[TOTALS_LINES] = {.name = "lines",
			  .letter = 'l',
			  .label = "[l]ines",
			  .name_title = "LINE OF PYTHON",
			  .empty = "no thread ran",
			  .about = "lines of Python by samples: time in them and in what they call",
			  COLUMNS(sampled_columns)},
	[TOTALS_THREADS] = {.name = "threads",
			    .letter = 't',
			    .label = "[t]hreads",
			    .name_title = "NAME",
			    .empty = "no thread ran",
			    .about = "threads: time on a CPU, and in operators by samples",
			    COLUMNS(sampled_thread_columns)},
};

const struct top_view_info *top_view_info(const struct top_view *v, enum totals_view view)
{
	return v->sampled && sampled_views[view].name ? &sampled_views[view] : &traced_views[view];
}

const struct top_column *top_column_find(const struct top_view *v, const char *key)
{
	const struct top_view_info *info = top_view_info(v, v->view);

	for (size_t i = 0; i < info->columns_nr; i++)
		if (!strcmp(info->columns[i].key, key))
			return &info->columns[i];
	return NULL;
}

void top_view__init(struct top_view *v, bool sampled)
{
	*v = (struct top_view){.sampled = sampled};
	for (int i = 0; i < TOTALS_VIEWS; i++)
		v->sort[i] = &top_view_info(v, (enum totals_view)i)->columns[0];
}

/* ---- rows ---- */

static double number_of(const struct totals_row *row, const struct top_column *c,
			enum totals_span span)
{
	const uint64_t *values = row->values[span];

	if (c->unit == TOP_THREAD)
		return row->tid;
	if (c->unit == TOP_MEAN)
		return values[TOTALS_CALLS]
			       ? (double)values[c->value] / (double)values[TOTALS_CALLS]
			       : 0;
	return (double)values[c->value];
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct totals_row *x = *(const struct totals_row *const *)a;
	const struct totals_row *y = *(const struct totals_row *const *)b;
	const struct top_view *v = arg;
	const struct top_column *c = v->sort[v->view];
	double p = number_of(x, c, v->span), q = number_of(y, c, v->span);
	int order = p < q ? 1 : p > q ? -1 : strcmp(x->name, y->name);

	if (!order)
		order = x->tid < y->tid ? -1 : x->tid > y->tid;
	return v->reverse[v->view] ? -order : order;
}

static bool has_any(const struct totals_row *row, enum totals_span span)
{
	for (int i = 0; i < TOTALS_VALUES; i++)
		if (row->values[span][i])
			return true;
	return false;
}

int top_rows__fill(struct top_rows *r, const struct top_view *v, const struct live_totals *y)
{
	r->list.nr = 0;
	memset(r->totals, 0, sizeof(r->totals));
	for (size_t i = 0; i < y->rows[v->view].nr; i++) {
		const struct totals_row *row = &y->rows[v->view].items[i];

		if (!has_any(row, v->span))
			continue;
		for (int value = 0; value < TOTALS_VALUES; value++)
			r->totals[value] += row->values[v->span][value];
		if ((!v->filter[0] || strcasestr(row->name, v->filter)) && vec_push(&r->list, row))
			return -ENOMEM;
	}
	if (r->list.nr)
		qsort_r(r->list.items, r->list.nr, sizeof(r->list.items[0]), compare, (void *)v);
	return 0;
}

/* ---- columns ---- */

uint32_t top_columns_shown(const struct top_view *v, bool has_gpu, int columns)
{
	const struct top_view_info *info = top_view_info(v, v->view);
	uint32_t shown = 0;
	int width = 0;

	for (size_t i = 0; i < info->columns_nr; i++)
		if (has_gpu || !info->columns[i].gpu_only) {
			shown |= 1U << i;
			width += info->columns[i].width + 1;
		}
	while (columns && width + NAME_WIDTH > columns) {
		int worst = -1;

		for (int i = 0; i < (int)info->columns_nr; i++)
			if ((shown & 1U << i) && info->columns[i].rank &&
			    (worst < 0 || info->columns[i].rank > info->columns[worst].rank))
				worst = i;
		if (worst < 0)
			break;
		shown &= ~(1U << worst);
		width -= info->columns[worst].width + 1;
	}
	return shown;
}

void top_put_titles(struct buf *out, const struct top_view *v, uint32_t shown)
{
	const struct top_view_info *info = top_view_info(v, v->view);

	for (size_t i = 0; i < info->columns_nr; i++) {
		const struct top_column *c = &info->columns[i];

		if (!(shown & 1U << i))
			continue;
		/* The one that sorts has an arrow before it, which has room in every title. */
		if (v->sort[v->view] == c) {
			const char *arrow = v->ascii ? (v->reverse[v->view] ? "^" : "v")
						     : (v->reverse[v->view] ? "\u25b4" : "\u25be");

			buf__printf(out, "%*s%s%s ", c->width - (int)strlen(c->title) - 1, "",
				    arrow, c->title);
		} else {
			buf__printf(out, "%*s ", c->width, c->title);
		}
	}
}

static void put_cell(struct buf *out, const struct top_column *c, const struct totals_row *row,
		     enum totals_span span, const struct top_rows *rows, uint64_t wall_ns)
{
	double n = number_of(row, c, span);
	double of = c->unit == TOP_SHARE ? (double)rows->totals[c->value] : (double)wall_ns;
	char text[32];

	switch (c->unit) {
	case TOP_SHARE:
	case TOP_OF_WALL:
		top_percent(text, sizeof(text), of > 0 ? 100 * n / of : 0);
		break;
	case TOP_TIME:
	case TOP_MEAN:
		top_time(text, sizeof(text), n);
		break;
	case TOP_BYTES:
		top_bytes(text, sizeof(text), n);
		break;
	case TOP_COUNT:
		top_count(text, sizeof(text), n);
		break;
	default:
		(void)snprintf(text, sizeof(text), "%.0f", n);
	}
	buf__printf(out, "%*s ", c->width, text);
}

void top_put_cells(struct buf *out, const struct top_view *v, uint32_t shown,
		   const struct totals_row *row, const struct top_rows *rows, uint64_t wall_ns)
{
	const struct top_view_info *info = top_view_info(v, v->view);

	for (size_t i = 0; i < info->columns_nr; i++)
		if (shown & 1U << i)
			put_cell(out, &info->columns[i], row, v->span, rows, wall_ns);
}

void top_put_name(struct buf *out, const struct top_view *v, const struct totals_row *row,
		  size_t room)
{
	const char *dots = v->ascii ? "..." : "\u2026", *name = row->name, *cut = name, *next;

	while (v->view == TOTALS_LINES && room && strlen(cut) > room &&
	       (next = strchr(cut + 1, '/')) && next < cut + strcspn(cut, " "))
		cut = next;
	if (cut != name)
		buf__str(out, dots);
	buf__str(out, cut);
}
