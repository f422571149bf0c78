/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Values of rows as JSON and CSV.
 */
#include "output/format/columns.h"

#include <math.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "output/format/stack_text.h"

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
	CLEANUP(buf__done) struct buf text = {0}, frame = {0};

	if (backward)
		buf__str(&text, STACK_TEXT_BACKWARD ";");
	for (size_t i = 0; i < nr; i++) {
		buf__str(&text, i ? ";" : "");
		stack_text_in_list(&text, &frame, rec, frames[i]);
	}
	buf__csv(out, text.bytes ? text.bytes : "");
	if (!out->err)
		out->err = buf__error(&text) ? buf__error(&text) : buf__error(&frame);
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

void columns_estimate_json(struct buf *out, const char *name, const struct estimate *e,
			   double scale)
{
	buf__printf(out, "\"%s\": {\"value\": %.3f", name, e->value / scale);
	if (!isnan(e->error))
		buf__printf(out, ", \"standard_error\": %.3f", e->error / scale);
	buf__char(out, '}');
}

static void estimate_csv(struct buf *out, enum columns_form form, const char *name,
			 const struct estimate *e, double scale)
{
	if (form == COLUMNS_TITLES) {
		buf__printf(out, ",estimated_%s,estimated_%s_error", name, name);
		return;
	}
	buf__printf(out, ",%.3f,", e->value / scale);
	if (!isnan(e->error))
		buf__printf(out, "%.3f", e->error / scale);
}

void columns_estimates(struct buf *out, enum columns_form form, const struct table *table,
		       const struct table_row *r)
{
	static const struct {
		const char *name;
		enum estimate_of what;
		double scale;
		bool cuda;
	} columns[] = {
		{"calls", ESTIMATE_CALLS, 1, false},
		{"self_cpu_us", ESTIMATE_SELF_CPU_NS, 1000, false},
		{"cpu_total_us", ESTIMATE_CPU_TOTAL_NS, 1000, false},
		{"self_cuda_us", ESTIMATE_SELF_CUDA_NS, 1000, true},
		{"cuda_total_us", ESTIMATE_CUDA_TOTAL_NS, 1000, true},
	};

	if (!table->has_estimates)
		return;
	if (form == COLUMNS_JSON)
		buf__str(out, ", \"estimated\": {");
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		const struct estimate *e = &r->estimates[columns[i].what];

		if (columns[i].cuda && !table->has_cuda_time)
			continue;
		if (form != COLUMNS_JSON) {
			estimate_csv(out, form, columns[i].name, e, columns[i].scale);
			continue;
		}
		buf__str(out, i ? ", " : "");
		columns_estimate_json(out, columns[i].name, e, columns[i].scale);
	}
	if (form == COLUMNS_JSON)
		buf__char(out, '}');
}
