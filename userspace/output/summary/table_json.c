/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table as one JSON object, a row a line. A column that was not captured is absent.
 * "bounded_calls" says of how many calls the time is only an upper bound, as an exception left
 * them; it is absent where there are none.
 */
#include "output/summary/table_json.h"

#include "output/format/columns.h"
#include "output/format/metadata.h"
#include "output/format/output.h"

#include <math.h>

#include "base/banned.h"

void table_json_windows(struct buf *out, const struct table *table)
{
	const struct table_windows *w = &table->windows;

	buf__printf(out,
		    "{\"windows\": %zu, \"share_of_time\": %.6f, \"us\": %.3f, \"inside_us\": %.3f",
		    w->nr, w->share_of_time, (double)w->ns / 1000, (double)w->inside_ns / 1000);
	if (w->all_steps_nr)
		buf__printf(out, ", \"steps\": %llu, \"all_steps\": %llu",
			    (unsigned long long)w->steps_nr, (unsigned long long)w->all_steps_nr);
	buf__str(out, ", ");
	columns_estimate_json(out, "self_cpu_total_us", &w->self_cpu_total_ns, 1000);
	buf__char(out, '}');
}

static void row_object(struct buf *out, const struct table *table, const struct table_row *r)
{
	buf__str(out, "{\"name\": ");
	buf__json(out, r->name);
	if (r->overload) {
		buf__str(out, ", \"overload\": ");
		buf__json(out, r->overload);
	}
	if (r->shapes) {
		buf__str(out, ", \"input_shapes\": ");
		buf__json(out, r->shapes);
	}
	if (table->is_tree)
		columns_u64(out, COLUMNS_JSON, "depth", r->depth);
	if (table->parts && r->part >= 0)
		columns_i64(out, COLUMNS_JSON, table->parts == TABLE_BY_RANK ? "rank" : "pid",
			    r->part);
	buf__str(out, r->device == TABLE_CUDA ? ", \"device\": \"CUDA\"" : ", \"device\": \"CPU\"");
	columns_u64(out, COLUMNS_JSON, "calls", r->calls);
	if (r->bounded_calls)
		columns_u64(out, COLUMNS_JSON, "bounded_calls", r->bounded_calls);
	columns_of_table(out, COLUMNS_JSON, table, r);
	columns_estimates(out, COLUMNS_JSON, table, r);
	if (r->stack) {
		columns_stack(out, COLUMNS_JSON, table->recording, r->stack, r->stack_nr,
			      r->is_forward_stack);
		buf__str(out, ", \"is_forward_stack\": ");
		buf__str(out, r->is_forward_stack ? "true" : "false");
	}
	buf__str(out, ", \"is_async\": ");
	buf__str(out, r->is_async ? "true" : "false");
	buf__str(out, ", \"is_user_annotation\": ");
	buf__str(out, r->is_user_annotation ? "true}" : "false}");
}

void table_json_rows(struct buf *out, const struct table *table, long limit)
{
	buf__char(out, '[');
	for (size_t i = 0; i < table->rows.nr && (limit < 0 || i < (size_t)limit); i++) {
		buf__str(out, i ? ",\n    " : "\n    ");
		row_object(out, table, &table->rows.items[i]);
	}
	buf__str(out, "\n  ]");
}

static void of_peak(struct buf *out, const char *name, const struct gpu_flops *gpu, double peak)
{
	if (peak > 0)
		buf__printf(out, ", \"peak_%s_per_s\": %.0f, \"share_of_%s\": %.6f", name, peak,
			    name, gpu->per_s / peak);
}

/* Of the whole capture, and against what the GPUs in it could do at most where that is known. */
static void flops_part(struct buf *out, const struct timeline *t, const struct gpu_flops *gpu)
{
	buf__str(out, "  \"flops\": {\"all\": ");
	buf__u64(out, t->all_flops);
	if (t->end_ns - t->start_ns > t->paused_ns)
		buf__printf(out, ", \"all_per_s\": %.0f",
			    (double)t->all_flops /
				    (double)(t->end_ns - t->start_ns - t->paused_ns) * 1e9);
	if (gpu->flops) {
		buf__printf(out, ", \"gpu\": %llu, \"gpu_per_s\": %.0f",
			    (unsigned long long)gpu->flops, gpu->per_s);
		of_peak(out, "single", gpu, gpu->peak.single);
		of_peak(out, "matrix16", gpu, gpu->peak.matrix16);
	}
	buf__str(out, "},\n");
}

int output_table_json(struct sink *s, const struct timeline *t, const struct table *table,
		      long limit)
{
	struct buf out = {0};

	buf__str(&out, "{\n  \"rows\": ");
	table_json_rows(&out, table, limit);
	buf__str(&out, ",\n");
	if (table->has_estimates) {
		buf__str(&out, "  \"estimated\": ");
		table_json_windows(&out, table);
		buf__str(&out, ",\n");
	}
	if (table->compensation.callback_ns)
		buf__printf(
			&out,
			"  \"compensated\": {\"callback_ns\": %llu, \"callback_timed\": %llu},\n",
			(unsigned long long)table->compensation.callback_ns,
			(unsigned long long)table->compensation.timed_nr);
	if (table->has_flops)
		flops_part(&out, t, &table->gpu);
	describe_whole(&out, t);
	return sink__write_buf(s, &out);
}
