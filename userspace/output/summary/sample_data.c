/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table of samples for programs: JSON and CSV, with the same columns.
 */
#include "output/format/columns.h"
#include "output/format/metadata.h"
#include "output/format/output.h"
#include "output/summary/table_json.h"

#include "base/banned.h"

/* The one list of columns. */
static void values(struct buf *out, enum columns_form form, const struct sample_row *r)
{
	columns_u64(out, form, "samples", r->total.nr);
	columns_u64(out, form, "self_samples", r->self.nr);
	columns_us(out, form, "self_cpu_us", r->self.ns);
	columns_us(out, form, "self_cpu_error_us", r->self.error_ns);
	columns_us(out, form, "cpu_total_us", r->total.ns);
	columns_us(out, form, "cpu_total_error_us", r->total.error_ns);
	columns_u64(out, form, "off_cpu_samples", r->off.nr);
	columns_u64(out, form, "waits", r->waits_nr);
	columns_us(out, form, "off_cpu_us", r->off.ns);
	columns_us(out, form, "off_cpu_error_us", r->off.error_ns);
}

static void all_part(struct buf *out, const struct sample_table *table)
{
	buf__printf(out, "  \"estimated\": true,\n  \"samples\": %llu,\n  \"cpu_us\": ",
		    (unsigned long long)table->all.nr);
	buf__us(out, table->all.ns > INT64_MAX ? INT64_MAX : (int64_t)table->all.ns);
	buf__str(out, ",\n  \"cpu_error_us\": ");
	buf__us(out, (int64_t)table->all.error_ns);
	buf__str(out, ",\n");
}

int output_samples_json(struct sink *s, const struct timeline *t, const struct sample_table *table,
			const struct table *gpu, long limit)
{
	struct buf out = {0};

	buf__str(&out, "{\n  \"rows\": [");
	for (size_t i = 0; i < table->rows.nr && (limit < 0 || i < (size_t)limit); i++) {
		const struct sample_row *r = &table->rows.items[i];

		buf__str(&out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
		buf__json(&out, r->name);
		values(&out, COLUMNS_JSON, r);
		if (r->stack_nr)
			columns_stack(&out, COLUMNS_JSON, table->recording, r->stack, r->stack_nr,
				      false);
		buf__char(&out, '}');
	}
	buf__str(&out, "\n  ],\n");
	all_part(&out, table);
	if (gpu) {
		buf__str(&out, "  \"gpu_rows\": ");
		table_json_rows(&out, gpu, limit);
		buf__str(&out, ",\n");
	}
	if (gpu && gpu->has_estimates) {
		buf__str(&out, "  \"gpu_estimated\": ");
		table_json_windows(&out, gpu);
		buf__str(&out, ",\n");
	}
	describe_whole(&out, t);
	return sink__write_buf(s, &out);
}

int output_samples_csv(struct sink *s, const struct sample_table *table, long limit)
{
	bool stacks = table->rows.nr && table->rows.items[0].stack;
	struct buf out = {0};

	buf__str(&out, "name");
	values(&out, COLUMNS_TITLES, &(struct sample_row){.name = ""});
	buf__str(&out, stacks ? ",stack\r\n" : "\r\n");
	for (size_t i = 0; i < table->rows.nr && (limit < 0 || i < (size_t)limit); i++) {
		const struct sample_row *r = &table->rows.items[i];

		buf__csv(&out, r->name);
		values(&out, COLUMNS_CSV, r);
		if (stacks)
			columns_stack(&out, COLUMNS_CSV, table->recording, r->stack, r->stack_nr,
				      false);
		buf__str(&out, "\r\n");
	}
	return sink__write_buf(s, &out);
}
