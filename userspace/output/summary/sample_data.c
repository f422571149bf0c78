/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table of samples for programs: JSON and CSV with the same columns.
 */
#include "output/format/columns.h"
#include "output/format/metadata.h"
#include "output/format/output.h"
#include "output/summary/table_json.h"

#include "base/banned.h"

/* The one list of columns. */
static void values(const struct columns *to, const struct sample_row *r)
{
	columns_u64(to, "samples", r->total.nr);
	columns_u64(to, "self_samples", r->self.nr);
	columns_us(to, "self_cpu_us", r->self.ns);
	columns_us(to, "self_cpu_error_us", r->self.error_ns);
	columns_us(to, "cpu_total_us", r->total.ns);
	columns_us(to, "cpu_total_error_us", r->total.error_ns);
	columns_u64(to, "off_cpu_samples", r->off.nr);
	columns_u64(to, "waits", r->waits_nr);
	columns_us(to, "off_cpu_us", r->off.ns);
	columns_us(to, "off_cpu_error_us", r->off.error_ns);
}

static void sums(struct json_writer *j, const struct sample_table *table)
{
	json__put_bool(j, "estimated", true);
	json__put_u64(j, "samples", table->all.nr);
	json__put_duration(j, "cpu_us", table->all.ns);
	json__put_us(j, "cpu_error_us", (int64_t)table->all.error_ns);
}

static void rows(struct json_writer *j, const struct sample_table *table, long limit)
{
	const struct columns to = {.json = j};

	json__put_array(j, "rows", &json_rows);
	for (size_t i = 0; i < table->rows.nr && (limit < 0 || i < (size_t)limit); i++) {
		const struct sample_row *r = &table->rows.items[i];

		json__object(j, &json_spaced);
		json__put_text(j, "name", r->name);
		values(&to, r);
		if (r->stack_nr)
			columns_stack(&to, table->recording, r->stack, r->stack_nr, false);
		json__end(j);
	}
	json__end(j);
}

int output_samples_json(struct sink *s, const struct timeline *t, const struct sample_table *table,
			const struct table *gpu, long limit)
{
	struct buf out = {0};
	struct json_writer j;

	json__init(&j, &out);
	json__object(&j, &json_document);
	rows(&j, table, limit);
	sums(&j, table);
	if (gpu) {
		json__key(&j, "gpu_rows");
		table_json_rows(&j, gpu, limit);
	}
	if (gpu && gpu->has_estimates) {
		json__key(&j, "gpu_estimated");
		table_json_windows(&j, gpu);
	}
	metadata_whole(&j, t);
	json__end(&j);
	buf__char(&out, '\n');
	return sink__write_buf(s, &out);
}

int output_samples_csv(struct sink *s, const struct sample_table *table, long limit)
{
	bool stacks = table->rows.nr && table->rows.items[0].stack;
	struct buf out = {0};
	const struct columns to = {.csv = &out}, titles = {.csv = &out, .titles = true};

	buf__str(&out, "name");
	values(&titles, &(struct sample_row){.name = ""});
	buf__str(&out, stacks ? ",stack\r\n" : "\r\n");
	for (size_t i = 0; i < table->rows.nr && (limit < 0 || i < (size_t)limit); i++) {
		const struct sample_row *r = &table->rows.items[i];

		buf__csv(&out, r->name);
		values(&to, r);
		if (stacks)
			columns_stack(&to, table->recording, r->stack, r->stack_nr, false);
		buf__str(&out, "\r\n");
	}
	return sink__write_buf(s, &out);
}
