/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table of samples for programs: JSON and CSV, with the same columns.
 */
#include "output/csv.h"
#include "output/describe.h"
#include "output/output.h"
#include "output/stack_text.h"

#include "base/banned.h"

/* Before the values of a row, each: "NAME": or a comma. */
typedef void (*before)(struct buf *out, const char *name);

static void json_before(struct buf *out, const char *name)
{
	buf__printf(out, ", \"%s\": ", name);
}

static void csv_before(struct buf *out, const char *name)
{
	buf__char(out, ',');
}

static void title_before(struct buf *out, const char *name)
{
	buf__printf(out, ",%s", name);
}

static void number(struct buf *out, before b, const char *name, uint64_t n)
{
	b(out, name);
	if (b != title_before)
		buf__u64(out, n);
}

static void microseconds(struct buf *out, before b, const char *name, uint64_t ns)
{
	b(out, name);
	if (b != title_before)
		buf__us(out, ns > INT64_MAX ? INT64_MAX : (int64_t)ns);
}

/* The one list of columns. */
static void values(struct buf *out, before b, const struct sample_row *r)
{
	number(out, b, "samples", r->total.nr);
	number(out, b, "self_samples", r->self.nr);
	microseconds(out, b, "self_cpu_us", r->self.ns);
	microseconds(out, b, "self_cpu_error_us", r->self.error_ns);
	microseconds(out, b, "cpu_total_us", r->total.ns);
	microseconds(out, b, "cpu_total_error_us", r->total.error_ns);
	number(out, b, "off_cpu_samples", r->off.nr);
	number(out, b, "waits", r->waits_nr);
	microseconds(out, b, "off_cpu_us", r->off.ns);
	microseconds(out, b, "off_cpu_error_us", r->off.error_ns);
}

static void stack(struct buf *out, const struct sample_table *table, const struct sample_row *r)
{
	struct buf frame = {0};

	buf__str(out, ", \"stack\": [");
	for (size_t i = 0; i < r->stack_nr; i++) {
		buf__clear(&frame);
		stack_text_frame(&frame, table->recording, r->stack[i]);
		buf__str(out, i ? ", " : "");
		buf__json(out, frame.bytes ? frame.bytes : "");
	}
	buf__char(out, ']');
	if (!out->err)
		out->err = buf__error(&frame);
	buf__done(&frame);
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
			long limit)
{
	struct buf out = {0};
	int err;

	buf__str(&out, "{\n  \"rows\": [");
	for (size_t i = 0; i < table->rows.nr && (limit < 0 || i < (size_t)limit); i++) {
		const struct sample_row *r = &table->rows.items[i];

		buf__str(&out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
		buf__json(&out, r->name);
		values(&out, json_before, r);
		if (r->stack_nr)
			stack(&out, table, r);
		buf__char(&out, '}');
	}
	buf__str(&out, "\n  ],\n");
	all_part(&out, table);
	describe_whole(&out, t);
	err = buf__error(&out);
	if (!err)
		err = sink__write(s, out.bytes, out.nr);
	buf__done(&out);
	return err;
}

/* Innermost first, each frame with a semicolon before the next. */
static void stack_field(struct buf *out, const struct sample_table *table,
			const struct sample_row *r)
{
	struct buf text = {0};

	for (size_t i = 0; i < r->stack_nr; i++) {
		buf__str(&text, i ? ";" : "");
		stack_text_frame(&text, table->recording, r->stack[i]);
	}
	buf__char(out, ',');
	csv_text(out, text.bytes ? text.bytes : "");
	if (!out->err)
		out->err = buf__error(&text);
	buf__done(&text);
}

int output_samples_csv(struct sink *s, const struct sample_table *table, long limit)
{
	bool stacks = table->rows.nr && table->rows.items[0].stack;
	struct buf out = {0};
	int err;

	buf__str(&out, "name");
	values(&out, title_before, &(struct sample_row){.name = ""});
	buf__str(&out, stacks ? ",stack\r\n" : "\r\n");
	for (size_t i = 0; i < table->rows.nr && (limit < 0 || i < (size_t)limit); i++) {
		const struct sample_row *r = &table->rows.items[i];

		csv_text(&out, r->name);
		values(&out, csv_before, r);
		if (stacks)
			stack_field(&out, table, r);
		buf__str(&out, "\r\n");
	}
	err = buf__error(&out);
	if (!err)
		err = sink__write(s, out.bytes, out.nr);
	buf__done(&out);
	return err;
}
