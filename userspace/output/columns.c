/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Values of rows as JSON and CSV.
 */
#include "output/columns.h"

#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "output/stack_text.h"

/* What stands before a value. Whether there is one. */
static bool begin(struct buf *out, enum columns_form form, const char *name)
{
	if (form == COLUMNS_JSON)
		buf__printf(out, ", \"%s\": ", name);
	else
		buf__char(out, ',');
	if (form == COLUMNS_TITLES)
		buf__str(out, name);
	return form != COLUMNS_TITLES;
}

void columns_u64(struct buf *out, enum columns_form form, const char *name, uint64_t n)
{
	if (begin(out, form, name))
		buf__u64(out, n);
}

void columns_i64(struct buf *out, enum columns_form form, const char *name, int64_t n)
{
	if (begin(out, form, name))
		buf__i64(out, n);
}

void columns_us(struct buf *out, enum columns_form form, const char *name, uint64_t ns)
{
	if (begin(out, form, name))
		buf__us(out, ns > INT64_MAX ? INT64_MAX : (int64_t)ns);
}

static void csv_stack(struct buf *out, const struct recording *rec, const uint32_t *frames,
		      size_t nr, bool backward)
{
	CLEANUP(buf__done) struct buf text = {0};

	if (backward)
		buf__str(&text, STACK_TEXT_BACKWARD ";");
	for (size_t i = 0; i < nr; i++) {
		buf__str(&text, i ? ";" : "");
		stack_text_frame(&text, rec, frames[i]);
	}
	csv_text(out, text.bytes ? text.bytes : "");
	if (!out->err)
		out->err = buf__error(&text);
}

void columns_stack(struct buf *out, enum columns_form form, const struct recording *rec,
		   const uint32_t *frames, size_t nr, bool backward)
{
	if (!begin(out, form, "stack"))
		return;
	if (form == COLUMNS_JSON)
		stack_text_json(out, rec, frames, nr);
	else
		csv_stack(out, rec, frames, nr, backward);
}

void columns_of_table(struct buf *out, enum columns_form form, const struct table *table,
		      const struct table_row *r)
{
	columns_us(out, form, "self_cpu_us", r->self_cpu_ns);
	columns_us(out, form, "cpu_total_us", r->cpu_total_ns);
	if (table->has_cuda_time) {
		columns_us(out, form, "self_cuda_us", r->self_cuda_ns);
		columns_us(out, form, "cuda_total_us", r->cuda_total_ns);
	}
	if (table->has_memory) {
		columns_i64(out, form, "self_cpu_mem", r->self_cpu_bytes);
		columns_i64(out, form, "cpu_mem", r->cpu_bytes);
	}
	if (table->has_memory && table->has_cuda_memory) {
		columns_i64(out, form, "self_cuda_mem", r->self_cuda_bytes);
		columns_i64(out, form, "cuda_mem", r->cuda_bytes);
	}
	if (table->has_flops) {
		columns_u64(out, form, "flops", r->flops);
		columns_u64(out, form, "all_flops", r->all_flops);
	}
}

/* Control characters have no place in a line of a file that people look at in a terminal. */
void csv_text(struct buf *out, const char *text)
{
	bool quoted = strpbrk(text, ",\"") != NULL;

	if (quoted)
		buf__char(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf__str(out, "\"\"");
		else if ((unsigned char)*text < 0x20 || *text == 0x7f)
			buf__char(out, '?');
		else
			buf__char(out, *text);
	}
	if (quoted)
		buf__char(out, '"');
}
