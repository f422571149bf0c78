/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Builds the whole table: selects rows, sorts them, and sums up.
 */
#include "timeline/analysis/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "timeline/analysis/table_rows.h"
#include "timeline/analysis/table_sort.h"

void table__free(struct table *table)
{
	if (!table)
		return;
	vec_done(&table->rows);
	vec_done(&table->gaps);
	compensation__done(&table->compensation);
	free(table);
}

static uint32_t characters(const char *text)
{
	uint32_t nr = 0;

	for (; *text; text++)
		nr += (*text & 0xc0) != 0x80;
	return nr;
}

static uint64_t least_positive(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static void sum_up(struct table *table)
{
	for (size_t i = 0; i < table->rows.nr; i++) {
		const struct table_row *row = &table->rows.items[i];
		uint32_t nr = characters(row->name);

		if (table->has_modules || (row->device == TABLE_CUDA && !row->is_user_annotation))
			table->self_cuda_total_ns += row->self_cuda_ns;
		if (table->has_flops) {
			table->least_flops = least_positive(table->least_flops, row->flops);
			table->least_all_flops =
				least_positive(table->least_all_flops, row->all_flops);
		}
		table->has_cuda_time |= row->self_cuda_ns > 0;
		table->has_cuda_memory |= row->self_cuda_bytes > 0;
		if (nr > table->longest_name)
			table->longest_name = nr;
	}
}

/* Includes values that compensation made negative, so that the total does not depend on how rows
 * are grouped. */
static void sum_up_cpu(struct table *table)
{
	for (size_t i = 0; i < table->rows.nr; i++)
		table->self_cpu_total_ns += table->rows.items[i].self_cpu_ns;
}

/* Rows from which compensation took more than there was get 0. */
static void end_compensation(struct table *table)
{
	compensation__done(&table->compensation);
	if ((int64_t)table->self_cpu_total_ns < 0)
		table->self_cpu_total_ns = 0;
	for (size_t i = 0; i < table->rows.nr; i++) {
		struct table_row *row = &table->rows.items[i];

		if ((int64_t)row->self_cpu_ns < 0)
			row->self_cpu_ns = 0;
		if ((int64_t)row->cpu_total_ns < (int64_t)row->self_cpu_ns)
			row->cpu_total_ns = row->self_cpu_ns;
	}
}

static void keep_top_level(struct table *table)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->rows.nr; i++)
		if (!table->rows.items[i].has_parent)
			table->rows.items[kept++] = table->rows.items[i];
	table->rows.nr = kept;
}

static void set_windows(struct table *table, const struct timeline *t)
{
	struct table_windows *w = &table->windows;
	bool by_steps = estimate_is_by_steps(t);
	uint64_t wanted_ns = timeline__wanted_ns(t);

	table->has_estimates = estimate_is_possible(t);
	w->nr = t->windows.nr;
	for (size_t i = 0; i < t->windows.nr; i++) {
		w->ns += t->windows.items[i].end_ns - t->windows.items[i].start_ns;
		w->inside_ns += t->windows.items[i].inside_ns;
		w->steps_nr += by_steps ? t->windows.items[i].steps_nr : 0;
	}
	w->all_steps_nr = by_steps ? t->all_steps_nr : 0;
	if (wanted_ns > 0)
		w->share_of_time = (double)w->ns / (double)(w->ns < wanted_ns ? wanted_ns : w->ns);
}

static const char *join_keys(char *text, size_t bytes)
{
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; table_sort_keys[i] && at < bytes; i++)
		at += (size_t)snprintf(text + at, bytes - at, "%s%s", i ? ", " : "",
				       table_sort_keys[i]);
	return text;
}

int table__new(const struct timeline *t, const struct table_options *options, struct reason *why,
	       struct table **ret_table)
{
	CLEANUP(cleanup_table) struct table *table = NULL;
	char keys[400];
	int err;

	if (options->sort && !table_sort_key_known(options->sort))
		return reason_set(why, -EINVAL, "unknown sort key '%s': use one of %s",
				  options->sort, join_keys(keys, sizeof(keys)));
	table = calloc(1, sizeof(*table));
	if (!table)
		return reason_set(why, -ENOMEM, "out of memory");
	table->recording = t->recording;
	table->has_modules = options->by_module;
	table->is_tree = options->by_module && options->tree;
	set_windows(table, t);
	err = options->compensate ? compensation__find(t, why, &table->compensation) : 0;
	if (err)
		return err;
	err = options->by_module ? table_add_modules(t, options, table)
				 : table_add_rows(t, options, table);
	if (err)
		return reason_set(why, err, "out of memory");
	sum_up_cpu(table);
	if (options->compensate)
		end_compensation(table);
	table->has_memory =
		t->memory.nr || t->out_of_memory.nr || recording__is_on(t->recording, "memory");
	table->has_stacks = options->by_stack > 0 || options->between;
	table->parts = options->parts;
	table->has_flops = recording__is_on(t->recording, "flops");
	err = table->has_flops ? gpu_flops_find(t, &table->gpu) : 0;
	if (err)
		return reason_set(why, err, "out of memory");
	sum_up(table);
	if (options->top_level)
		keep_top_level(table);
	err = options->sort && !table->is_tree ? table_sort_by_key(table, options->sort) : 0;
	if (err)
		return reason_set(why, err, "out of memory");
	*ret_table = TAKE(table);
	return 0;
}
