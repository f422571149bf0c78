/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table as one JSON object, with one row per line. A column that was not captured is absent.
 * "bounded_calls" is the number of calls whose time is only an upper bound, because an exception
 * left them; it is absent where there are none.
 */
#include "output/summary/table_json.h"

#include "output/format/columns.h"
#include "output/format/metadata.h"
#include "output/format/output.h"

#include "base/banned.h"

void table_json_windows(struct json_writer *j, const struct table *table)
{
	const struct table_windows *w = &table->windows;

	json__object(j, &json_spaced);
	json__put_u64(j, "windows", w->nr);
	json__put_fixed(j, "share_of_time", w->share_of_time, 6);
	json__put_fixed(j, "us", (double)w->ns / 1000, 3);
	json__put_fixed(j, "inside_us", (double)w->inside_ns / 1000, 3);
	if (w->all_steps_nr) {
		json__put_u64(j, "steps", w->steps_nr);
		json__put_u64(j, "all_steps", w->all_steps_nr);
	}
	columns_estimate_json(j, "self_cpu_total_us", &w->self_cpu_total_ns, 1000);
	json__end(j);
}

static void row_object(struct json_writer *j, const struct table *table, const struct table_row *r)
{
	const struct columns to = {.json = j};

	json__object(j, &json_spaced);
	json__put_text(j, "name", r->name);
	if (r->overload)
		json__put_text(j, "overload", r->overload);
	if (r->shapes)
		json__put_text(j, "input_shapes", r->shapes);
	if (table->is_tree)
		json__put_u64(j, "depth", r->depth);
	if (table->parts && r->part >= 0)
		json__put_i64(j, table->parts == TABLE_BY_RANK ? "rank" : "pid", r->part);
	json__put_word(j, "device", r->device == TABLE_CUDA ? "CUDA" : "CPU");
	json__put_u64(j, "calls", r->calls);
	if (r->bounded_calls)
		json__put_u64(j, "bounded_calls", r->bounded_calls);
	columns_of_table(&to, table, r);
	columns_estimates(&to, table, r);
	if (r->stack) {
		columns_stack(&to, table->recording, r->stack, r->stack_nr, r->is_forward_stack);
		json__put_bool(j, "is_forward_stack", r->is_forward_stack);
	}
	json__put_bool(j, "is_async", r->is_async);
	json__put_bool(j, "is_user_annotation", r->is_user_annotation);
	json__end(j);
}

void table_json_rows(struct json_writer *j, const struct table *table, long limit)
{
	json__array(j, &json_rows);
	for (size_t i = 0; i < table->rows.nr && (limit < 0 || i < (size_t)limit); i++)
		row_object(j, table, &table->rows.items[i]);
	json__end(j);
}

/* A rate that the GPUs could reach at most, and what share of it they did reach. */
static void peak_keys(struct json_writer *j, const struct gpu_flops *gpu, const char *peak_name,
		      const char *share_name, double peak)
{
	if (peak <= 0)
		return;
	json__put_fixed(j, peak_name, peak, 0);
	json__put_fixed(j, share_name, gpu->per_s / peak, 6);
}

/* FLOPs of the whole capture, beside what its GPUs could do at most where that is known. */
static void flops_object(struct json_writer *j, const struct timeline *t,
			 const struct gpu_flops *gpu)
{
	uint64_t ns = t->end_ns - t->start_ns;

	json__object(j, &json_spaced);
	json__put_u64(j, "all", t->all_flops);
	if (ns > t->paused_ns)
		json__put_fixed(j, "all_per_s",
				(double)t->all_flops / (double)(ns - t->paused_ns) * 1e9, 0);
	if (gpu->flops) {
		json__put_u64(j, "gpu", gpu->flops);
		json__put_fixed(j, "gpu_per_s", gpu->per_s, 0);
		peak_keys(j, gpu, "peak_single_per_s", "share_of_single", gpu->peak.single);
		peak_keys(j, gpu, "peak_matrix16_per_s", "share_of_matrix16", gpu->peak.matrix16);
	}
	json__end(j);
}

static void compensation_object(struct json_writer *j, const struct table *table)
{
	json__object(j, &json_spaced);
	json__put_u64(j, "callback_ns", table->compensation.callback_ns);
	json__put_u64(j, "callback_timed", table->compensation.timed_nr);
	json__end(j);
}

int output_table_json(struct sink *s, const struct timeline *t, const struct table *table,
		      long limit)
{
	struct buf out = {0};
	struct json_writer j;

	json__init(&j, &out);
	json__object(&j, &json_document);
	json__key(&j, "rows");
	table_json_rows(&j, table, limit);
	if (table->has_estimates) {
		json__key(&j, "estimated");
		table_json_windows(&j, table);
	}
	if (table->compensation.callback_ns) {
		json__key(&j, "compensated");
		compensation_object(&j, table);
	}
	if (table->has_flops) {
		json__key(&j, "flops");
		flops_object(&j, t, &table->gpu);
	}
	metadata_whole(&j, t);
	json__end(&j);
	buf__char(&out, '\n');
	return sink__write_buf(s, &out);
}
