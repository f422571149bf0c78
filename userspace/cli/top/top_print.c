/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Prints one interval for scripts: as text what the terminal would show, as JSON everything.
 */
#include "cli/top/top_print.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int write_out(const struct buf *out)
{
	int err = buf__error(out);

	return err ? err : file_write_all(STDOUT_FILENO, out->bytes, out->nr);
}

/* ---- text ---- */

int top_print_text(const struct top *top)
{
	CLEANUP(buf__done) struct buf out = {0};
	struct top_header h;
	struct top_rows rows = {0};
	uint32_t shown = top_columns_shown(&top->view, top->totals->has_gpu, 0);
	const struct top_view_info *info = top_view_info(&top->view, top->view.view);
	int err = top_rows__fill(&rows, &top->view, top->totals);

	top_header_of(top, &h);
	h.plain = true;
	top_put_header(&out, &top->view, &h);
	buf__char(&out, '\n');
	top_put_titles(&out, &top->view, shown);
	buf__printf(&out, "%s\n", info->name_title);
	for (size_t i = 0; i < rows.list.nr && (top->limit < 0 || (long)i < top->limit); i++) {
		top_put_cells(&out, &top->view, shown, rows.list.items[i], &rows,
			      top->totals->wall_ns[top->view.span]);
		buf__printf(&out, "%s\n", rows.list.items[i]->name);
	}
	if (!rows.list.nr)
		buf__printf(&out, "%s\n", info->empty);
	vec_done(&rows.list);
	return err ? err : write_out(&out);
}

/* ---- JSON ---- */

struct field {
	const char *name;
	enum totals_value value;
	bool is_time;
};

static const struct field fields[] = {
	{"calls", TOTALS_CALLS, false},
	{"self_cpu_us", TOTALS_SELF_CPU_NS, true},
	{"cpu_total_us", TOTALS_CPU_NS, true},
	{"self_cuda_us", TOTALS_SELF_CUDA_NS, true},
	{"cuda_total_us", TOTALS_CUDA_NS, true},
	{"allocations", TOTALS_ALLOCATIONS, false},
	{"cpu_bytes", TOTALS_CPU_BYTES, false},
	{"cpu_kept_bytes", TOTALS_CPU_KEPT_BYTES, false},
	{"cuda_bytes", TOTALS_CUDA_BYTES, false},
	{"cuda_kept_bytes", TOTALS_CUDA_KEPT_BYTES, false},
	{"ran_us", TOTALS_RAN_NS, true},
	{"samples", TOTALS_SAMPLES, false},
	{"off_cpu_us", TOTALS_OFF_NS, true},
};

/* Which fields a view has: a bit each of enum totals_value. */
static const uint32_t view_fields[TOTALS_VIEWS] = {
	[TOTALS_OPS] = 0x1f,
	[TOTALS_KERNELS] = 1U << TOTALS_CALLS | 1U << TOTALS_SELF_CUDA_NS,
	[TOTALS_LINES] = 0x1f,
	[TOTALS_MEMORY] = 0x3e0,
	[TOTALS_THREADS] = 1U << TOTALS_CALLS | 1U << TOTALS_CPU_NS | 1U << TOTALS_RAN_NS,
};

#define SAMPLED_FIELDS                                                                             \
	(1U << TOTALS_SELF_CPU_NS | 1U << TOTALS_CPU_NS | 1U << TOTALS_SAMPLES |                   \
	 1U << TOTALS_OFF_NS)

/* The same by samples. */
static const uint32_t sampled_fields[TOTALS_VIEWS] = {
	[TOTALS_OPS] = SAMPLED_FIELDS,
	[TOTALS_KERNELS] = 1U << TOTALS_CALLS | 1U << TOTALS_SELF_CUDA_NS,
	[TOTALS_LINES] = SAMPLED_FIELDS,
	[TOTALS_THREADS] = 1U << TOTALS_SAMPLES | 1U << TOTALS_CPU_NS | 1U << TOTALS_RAN_NS,
};

static void put_row(struct buf *out, const struct top_view *v, const struct totals_row *row)
{
	const uint32_t *wanted = v->sampled ? sampled_fields : view_fields;
	enum totals_view view = v->view;

	buf__str(out, "{\"name\": ");
	buf__json(out, row->name);
	if (view == TOTALS_THREADS)
		buf__printf(out, ", \"pid\": %lld, \"tid\": %u", (long long)row->pid, row->tid);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint64_t n = row->values[TOTALS_LAST][fields[i].value];

		if (!(wanted[view] & 1U << fields[i].value))
			continue;
		buf__printf(out, ", \"%s\": ", fields[i].name);
		if (fields[i].is_time)
			buf__us(out, (int64_t)n);
		else
			buf__u64(out, n);
	}
	buf__char(out, '}');
}

static int put_view(struct buf *out, const struct top *top, enum totals_view view)
{
	struct top_view v = top->view;
	struct top_rows rows = {0};
	int err;

	v.view = view;
	v.filter[0] = '\0';
	err = top_rows__fill(&rows, &v, top->totals);
	buf__printf(out, ",\n  \"%s\": [", top_view_info(&v, view)->name);
	for (size_t i = 0; i < rows.list.nr; i++) {
		buf__str(out, i ? ",\n    " : "\n    ");
		put_row(out, &v, rows.list.items[i]);
	}
	buf__str(out, rows.list.nr ? "\n  ]" : "]");
	vec_done(&rows.list);
	return err;
}

static void put_processes(struct buf *out, const struct top_facts *f)
{
	buf__str(out, ",\n  \"pids\": [");
	for (size_t i = 0; i < f->pids.nr; i++)
		buf__printf(out, "%s%d", i ? ", " : "", (int)f->pids.items[i]);
	buf__printf(out, "],\n  \"cpu_percent\": %.3f, \"own_cpu_percent\": %.3f", f->cpu_percent,
		    f->own_percent);
	buf__printf(out, ", \"rss_bytes\": %llu, \"threads_nr\": %u",
		    (unsigned long long)f->rss_bytes, f->threads_nr);
}

static void put_gpus(struct buf *out, const struct live_totals *y)
{
	buf__str(out, ",\n  \"gpus\": [");
	for (size_t i = 0; i < y->devices.nr; i++) {
		const struct totals_device *d = &y->devices.items[i];

		buf__printf(out, "%s{\"device\": %u, \"name\": ", i ? ", " : "", d->device);
		buf__json(out, d->name);
		if (y->gpu_wall_ns[TOTALS_LAST]) {
			buf__str(out, ", \"busy_us\": ");
			buf__us(out, (int64_t)d->busy_ns[TOTALS_LAST]);
		}
		if (d->reserved_bytes)
			buf__printf(out, ", \"allocated_bytes\": %llu, \"reserved_bytes\": %llu",
				    (unsigned long long)d->allocated_bytes,
				    (unsigned long long)d->reserved_bytes);
		if (d->total_bytes)
			buf__printf(out, ", \"total_bytes\": %llu",
				    (unsigned long long)d->total_bytes);
		buf__char(out, '}');
	}
	buf__char(out, ']');
}

static void put_steps(struct buf *out, const struct totals_steps *s)
{
	buf__printf(out, ",\n  \"steps\": {\"count\": %llu", (unsigned long long)s->nr);
	if (s->nr) {
		buf__str(out, ", \"mean_us\": ");
		buf__us(out, (int64_t)(s->sum_ns / s->nr));
		buf__str(out, ", \"max_us\": ");
		buf__us(out, (int64_t)s->max_ns);
	}
	buf__char(out, '}');
}

static void put_interval(struct buf *out, const struct top *top)
{
	const struct live_totals *y = top->totals;

	buf__str(out, "{\n  \"wall_us\": ");
	buf__us(out, (int64_t)y->wall_ns[TOTALS_LAST]);
	if (!y->unknown_cost[TOTALS_LAST])
		buf__printf(out, ", \"cost_us\": %.3f", y->cost_ns[TOTALS_LAST] / 1e3);
	if (top->live)
		put_processes(out, &top->facts);
	if (top->view.sampled)
		buf__printf(out, ",\n  \"estimated\": true, \"samples\": %llu",
			    (unsigned long long)y->samples_nr[TOTALS_LAST]);
	else
		put_steps(out, &y->steps[TOTALS_LAST]);
	put_gpus(out, y);
	if (y->gpu_estimated[TOTALS_LAST])
		buf__str(out, ",\n  \"gpu_estimated\": true");
}

int top_print_json(const struct top *top)
{
	CLEANUP(buf__done) struct buf out = {0};
	const struct live_totals *y = top->totals;
	int err = 0;

	put_interval(&out, top);
	for (int view = 0; view < TOTALS_VIEWS && !err; view++)
		if (top_has(top, (enum totals_view)view))
			err = put_view(&out, top, (enum totals_view)view);
	buf__str(&out, ",\n  \"losses\": {");
	for (size_t i = 0; i < y->losses.nr; i++) {
		buf__str(&out, i ? ", " : "");
		buf__json(&out, y->losses.items[i].name);
		buf__printf(&out, ": %llu", (unsigned long long)y->losses.items[i].count);
	}
	buf__str(&out, "}\n}\n");
	return err ? err : write_out(&out);
}
