/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See columns.h.
 */
#include "output/format/columns.h"

#include <math.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "output/format/stack_text.h"

/* Begins a field. Whether its value follows. */
static bool begin(const struct columns *to, const char *name)
{
	buf__char(to->csv, ',');
	if (to->titles)
		buf__str(to->csv, name);
	return !to->titles;
}

void columns_u64(const struct columns *to, const char *name, uint64_t n)
{
	if (to->json)
		json__put_u64(to->json, name, n);
	else if (begin(to, name))
		buf__u64(to->csv, n);
}

void columns_i64(const struct columns *to, const char *name, int64_t n)
{
	if (to->json)
		json__put_i64(to->json, name, n);
	else if (begin(to, name))
		buf__i64(to->csv, n);
}

void columns_us(const struct columns *to, const char *name, uint64_t ns)
{
	if (to->json)
		json__put_duration(to->json, name, ns);
	else if (begin(to, name))
		buf__us(to->csv, ns > INT64_MAX ? INT64_MAX : (int64_t)ns);
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

void columns_stack(const struct columns *to, const struct recording *rec, const uint32_t *frames,
		   size_t nr, bool backward)
{
	if (to->json) {
		json__key(to->json, "stack");
		stack_text_json(to->json, rec, frames, nr);
	} else if (begin(to, "stack")) {
		csv_stack(to->csv, rec, frames, nr, backward);
	}
}

void columns_of_table(const struct columns *to, const struct table *table,
		      const struct table_row *r)
{
	columns_us(to, "self_cpu_us", r->self_cpu_ns);
	columns_us(to, "cpu_total_us", r->cpu_total_ns);
	if (table->has_cuda_time) {
		columns_us(to, "self_cuda_us", r->self_cuda_ns);
		columns_us(to, "cuda_total_us", r->cuda_total_ns);
	}
	if (table->has_memory) {
		columns_i64(to, "self_cpu_mem", r->self_cpu_bytes);
		columns_i64(to, "cpu_mem", r->cpu_bytes);
	}
	if (table->has_memory && table->has_cuda_memory) {
		columns_i64(to, "self_cuda_mem", r->self_cuda_bytes);
		columns_i64(to, "cuda_mem", r->cuda_bytes);
	}
	if (table->has_flops) {
		columns_u64(to, "flops", r->flops);
		columns_u64(to, "all_flops", r->all_flops);
	}
}

void columns_estimate_json(struct json_writer *j, const char *name, const struct estimate *e,
			   double scale)
{
	json__put_object(j, name, &json_spaced);
	json__put_fixed(j, "value", e->value / scale, 3);
	if (!isnan(e->error))
		json__put_fixed(j, "standard_error", e->error / scale, 3);
	json__end(j);
}

static void estimate_csv(const struct columns *to, const char *name, const struct estimate *e,
			 double scale)
{
	if (to->titles) {
		buf__printf(to->csv, ",estimated_%s,estimated_%s_error", name, name);
		return;
	}
	buf__printf(to->csv, ",%.3f,", e->value / scale);
	if (!isnan(e->error))
		buf__printf(to->csv, "%.3f", e->error / scale);
}

void columns_estimates(const struct columns *to, const struct table *table,
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
	if (to->json)
		json__put_object(to->json, "estimated", &json_spaced);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		const struct estimate *e = &r->estimates[columns[i].what];

		if (columns[i].cuda && !table->has_cuda_time)
			continue;
		if (to->json)
			columns_estimate_json(to->json, columns[i].name, e, columns[i].scale);
		else
			estimate_csv(to, columns[i].name, e, columns[i].scale);
	}
	if (to->json)
		json__end(to->json);
}
