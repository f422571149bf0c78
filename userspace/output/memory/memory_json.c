/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The memory timeline as JSON. One object:
 *
 *   schema        "gpuprof-memory-1"
 *   start_unix_us when the capture began, microseconds of Unix time; every other time is relative
 *   duration_us   length of the capture
 *   processes     [{pid, rank (null: none), comm, cmdline}]
 *   devices       one object per device of a process:
 *     device      "cpu", "cuda:0", or "type 7:0" for other numbers of c10::DeviceType
 *     process     position in processes, null if not known
 *     events      allocations and frees seen
 *     thinned_us  null: a point for each event. Else points were left out: this is the stretch of
 *                 which the first, the last, the lowest and the highest were kept
 *     times_us    time of each point
 *     bytes       allocated after it, counted from the capture's beginning (what was held then is
 *                 not in it)
 *     allocator_bytes, reserved_bytes
 *                 the allocator's own totals at each point, null where it told none; absent where
 *                 it never did
 *     end_bytes   the last of them
 *     peak        {time_us, bytes, held_by} or null; held_by: the ops whose allocations were alive
 *                 then, most bytes first: [{op, outermost, allocations, bytes}]
 *     ops         the ops that allocated, most bytes first: [{op, outermost, allocations, bytes,
 *                 largest_bytes, peak_bytes, end_allocations, end_bytes}]. op is the innermost
 *                 one, outermost the operator it ran under; both null outside any op
 *     ops_nr, held_by_nr
 *                 how many there are of each, where a list is cut
 *     categories  where operators told what they are called with, what each category holds, what
 * was there before the capture included (else absent): {names, times_us, bytes: a list for each
 * name, thinned} out_of_memory requests that were refused, as out_of_memory.c describes them;
 * absent without any frees_of_unknown_size frees of memory allocated before the capture: they are
 * in no total losses        {name: count}, zeros too capture       {key: value} what the recording
 * says about itself
 */
#include "output/memory/memory_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "output/format/metadata.h"
#include "output/memory/memory_categories.h"
#include "output/memory/memory_usage.h"
#include "output/memory/out_of_memory.h"

#define FLUSH_BYTES (64 * 1024)

/* Where text gathers on its way to the sink. */
struct writer {
	struct buf b;
	struct buf escaped;
	struct sink *sink;
	const struct timeline *t;
	const struct memory_json_options *options;
	int err;
};

static void flush(struct writer *w)
{
	struct buf *out = &w->b;

	if (!w->b.nr)
		return;
	if (w->options->inside_html) {
		buf__clear(&w->escaped);
		buf__page_json(&w->escaped, &w->b);
		out = &w->escaped;
	}
	if (!w->err)
		w->err = buf__error(&w->b);
	if (!w->err)
		w->err = buf__error(out);
	if (!w->err)
		w->err = sink__write(w->sink, out->bytes, out->nr);
	buf__clear(&w->b);
}

static void flush_if_much(struct writer *w)
{
	if (w->b.nr >= FLUSH_BYTES)
		flush(w);
}

static void add_name(struct buf *b, const char *name)
{
	if (name)
		buf__json(b, name);
	else
		buf__str(b, "null");
}

static void add_time(struct writer *w, uint64_t time_ns)
{
	buf__us(&w->b, (int64_t)(time_ns - w->t->start_ns));
}

static void add_processes(struct writer *w)
{
	struct buf *b = &w->b;

	buf__str(b, "\"processes\": [");
	for (size_t i = 0; i < w->t->processes.nr; i++) {
		const struct tl_process *p = &w->t->processes.items[i];

		buf__str(b, i ? ",\n{\"pid\": " : "\n{\"pid\": ");
		buf__i64(b, p->pid);
		buf__str(b, ", \"rank\": ");
		if (p->rank >= 0)
			buf__i64(b, p->rank);
		else
			buf__str(b, "null");
		buf__str(b, ", \"comm\": ");
		add_name(b, p->comm);
		buf__str(b, ", \"cmdline\": ");
		add_name(b, p->cmdline);
		buf__char(b, '}');
		flush_if_much(w);
	}
	buf__str(b, "],\n");
}

enum column { COLUMN_TIME, COLUMN_TOTAL, COLUMN_ALLOCATED, COLUMN_RESERVED };

static void add_reported(struct buf *b, uint64_t bytes)
{
	if (bytes)
		buf__u64(b, bytes);
	else
		buf__str(b, "null");
}

static void add_column(struct writer *w, const char *key, enum column column,
		       const struct memory_points *points)
{
	buf__printf(&w->b, "\"%s\": [", key);
	for (size_t i = 0; i < points->events.nr; i++) {
		const struct tl_memory *m = &w->t->memory.items[points->events.items[i]];

		if (i)
			buf__char(&w->b, ',');
		if (column == COLUMN_TIME)
			add_time(w, m->time_ns);
		else if (column == COLUMN_TOTAL)
			buf__i64(&w->b, m->total_bytes);
		else
			add_reported(&w->b, column == COLUMN_ALLOCATED ? m->allocated_bytes
								       : m->reserved_bytes);
		flush_if_much(w);
	}
	buf__str(&w->b, "],\n");
}

static void add_series(struct writer *w, const struct memory_device *d)
{
	struct memory_points points;
	int err = memory_device__points(d, w->t, w->options->max_points, &points);

	if (!w->err)
		w->err = err;
	buf__str(&w->b, "\"thinned_us\": ");
	if (points.bucket_ns)
		buf__us(&w->b, (int64_t)points.bucket_ns);
	else
		buf__str(&w->b, "null");
	buf__str(&w->b, ",\n");
	add_column(w, "times_us", COLUMN_TIME, &points);
	add_column(w, "bytes", COLUMN_TOTAL, &points);
	if (d->has_totals) {
		add_column(w, "allocator_bytes", COLUMN_ALLOCATED, &points);
		add_column(w, "reserved_bytes", COLUMN_RESERVED, &points);
	}
	vec_done(&points.events);
}

static void add_number(struct buf *b, const char *key, int64_t n)
{
	buf__printf(b, ", \"%s\": ", key);
	buf__i64(b, n);
}

static uint8_t tensor_device(const struct memory_device *d)
{
	if (d->type == GP_DEVICE_CPU)
		return GP_TENSOR_CPU;
	if (d->type == GP_DEVICE_CUDA && d->index >= 0 && d->index < GP_TENSOR_CUDA_NR)
		return (uint8_t)(GP_TENSOR_CUDA + d->index);
	return GP_TENSOR_OTHER;
}

static void add_category(struct writer *w, const struct category_rows *rows, int category)
{
	buf__str(&w->b, category ? ",\n[" : "[");
	for (size_t i = 0; i < rows->items.nr; i++) {
		if (i)
			buf__char(&w->b, ',');
		buf__i64(&w->b, rows->items.items[i].bytes[category]);
		flush_if_much(w);
	}
	buf__char(&w->b, ']');
}

/* A row's time is that of the epoch; what was there before has the capture's. */
static void add_category_time(struct writer *w, const struct category_row *row)
{
	int64_t start_us = (int64_t)((w->t->start_ns + w->t->realtime_offset_ns) / 1000);
	int64_t at = row->time_us < start_us ? 0 : row->time_us - start_us;

	buf__i64(&w->b, at);
}

static void add_category_rows(struct writer *w, const struct category_rows *rows)
{
	struct buf *b = &w->b;

	buf__str(b, "\"categories\": {\"names\": [");
	for (int i = 0; i < TL_CATEGORIES; i++)
		buf__printf(b, "%s\"%s\"", i ? ", " : "", category_name(i));
	buf__str(b, "],\n\"times_us\": [");
	for (size_t i = 0; i < rows->items.nr; i++) {
		if (i)
			buf__char(b, ',');
		add_category_time(w, &rows->items.items[i]);
		flush_if_much(w);
	}
	buf__str(b, "],\n\"bytes\": [");
	for (int i = 0; i < TL_CATEGORIES; i++)
		add_category(w, rows, i);
	buf__printf(b, "], \"thinned\": %s},\n", rows->thinned ? "true" : "false");
}

static void add_categories(struct writer *w, const struct memory_device *d)
{
	struct category_rows rows;
	int err;

	if (!w->t->has_categories)
		return;
	err = category_rows__init(&rows, w->t, d->process, tensor_device(d),
				  w->options->max_points / 4);
	w->err = w->err ? w->err : err;
	if (rows.items.nr)
		add_category_rows(w, &rows);
	vec_done(&rows.items);
}

static void add_op(struct writer *w, const struct memory_op *op, bool at_peak)
{
	struct buf *b = &w->b;

	buf__str(b, "{\"op\": ");
	add_name(b, op->op);
	buf__str(b, ", \"outermost\": ");
	add_name(b, op->outermost);
	if (at_peak) {
		add_number(b, "allocations", (int64_t)op->peak_allocations);
		add_number(b, "bytes", op->peak_bytes);
	} else {
		add_number(b, "allocations", (int64_t)op->allocations);
		add_number(b, "bytes", op->allocated_bytes);
		add_number(b, "largest_bytes", op->largest_bytes);
		add_number(b, "peak_bytes", op->peak_bytes);
		add_number(b, "end_allocations", (int64_t)op->end_allocations);
		add_number(b, "end_bytes", op->end_bytes);
	}
	buf__char(b, '}');
	flush_if_much(w);
}

/* Sorts the device's ops in place; those with nothing alive at the peak are not of its list. */
static void add_ops(struct writer *w, struct memory_device *d, bool at_peak)
{
	size_t max = w->options->max_ops ? w->options->max_ops : d->ops.nr;
	size_t nr = 0;

	if (d->ops.nr)
		qsort(d->ops.items, d->ops.nr, sizeof(*d->ops.items),
		      at_peak ? memory_op_by_peak : memory_op_by_allocated);
	buf__str(&w->b, at_peak ? "\"held_by\": [" : "\"ops\": [");
	for (size_t i = 0; i < d->ops.nr; i++) {
		if (at_peak && !d->ops.items[i].peak_allocations)
			continue;
		if (nr < max) {
			buf__str(&w->b, nr ? ",\n" : "\n");
			add_op(w, &d->ops.items[i], at_peak);
		}
		nr++;
	}
	buf__str(&w->b, "]");
	add_number(&w->b, at_peak ? "held_by_nr" : "ops_nr", (int64_t)nr);
}

static void add_peak(struct writer *w, struct memory_device *d)
{
	buf__str(&w->b, "\"peak\": ");
	if (d->peak == TL_NONE) {
		buf__str(&w->b, "null,\n");
		return;
	}
	buf__str(&w->b, "{\"time_us\": ");
	add_time(w, w->t->memory.items[d->peak].time_ns);
	add_number(&w->b, "bytes", d->peak_bytes);
	buf__str(&w->b, ", ");
	add_ops(w, d, true);
	buf__str(&w->b, "},\n");
}

static void add_devices(struct writer *w, struct memory_usage *u)
{
	struct buf *b = &w->b;

	buf__str(b, "\"devices\": [");
	for (size_t i = 0; i < u->devices.nr; i++) {
		struct memory_device *d = &u->devices.items[i];
		char name[MEMORY_NAME_BYTES];

		memory_device_name(d->type, d->index, name);
		buf__str(b, i ? ",\n{\"device\": \"" : "\n{\"device\": \"");
		buf__str(b, name);
		buf__str(b, "\", \"process\": ");
		if (d->process < w->t->processes.nr)
			buf__u64(b, d->process);
		else
			buf__str(b, "null");
		add_number(b, "events", (int64_t)d->events.nr);
		buf__str(b, ", ");
		add_series(w, d);
		add_categories(w, d);
		add_peak(w, d);
		add_ops(w, d, false);
		add_number(b, "end_bytes", d->end_bytes);
		if (d->has_outside) {
			add_number(b, "outside_pytorch_end_bytes", d->outside_end_bytes);
			add_number(b, "outside_pytorch_peak_bytes", d->outside_peak_bytes);
		}
		buf__char(b, '}');
	}
	buf__str(b, "],\n");
}

static void add_out_of_memory(struct writer *w)
{
	int err = 0;

	if (!w->t->out_of_memory.nr)
		return;
	buf__str(&w->b, "\"out_of_memory\": ");
	err = out_of_memory_json(&w->b, w->t);
	w->err = w->err ? w->err : err;
	buf__str(&w->b, ",\n");
}

static uint64_t frees_of_unknown_size(const struct timeline *t)
{
	const char *name = recording_loss_name(GP_LOSS_FREE_UNKNOWN);

	for (size_t i = 0; i < t->losses.nr; i++) {
		if (!strcmp(t->losses.items[i].name, name))
			return t->losses.items[i].count;
	}
	return 0;
}

static void add_losses(struct writer *w)
{
	struct buf *b = &w->b;

	buf__str(b, "\"frees_of_unknown_size\": ");
	buf__u64(b, frees_of_unknown_size(w->t));
	buf__str(b, ",\n\"losses\": ");
	describe_losses(b, w->t);
	buf__str(b, ",\n");
}

static void add_capture(struct writer *w)
{
	const struct recording *r = w->t->recording;
	size_t nr = r ? recording__metas(r) : 0;

	buf__str(&w->b, "\"capture\": {");
	for (size_t i = 0; i < nr; i++) {
		const char *key = NULL, *value = NULL;

		recording__meta_at(r, i, &key, &value);
		buf__str(&w->b, i ? ",\n" : "\n");
		buf__json(&w->b, key ? key : "");
		buf__str(&w->b, ": ");
		add_name(&w->b, value);
		flush_if_much(w);
	}
	buf__str(&w->b, "}}\n");
}

int memory_json_write(struct sink *s, const struct timeline *t,
		      const struct memory_json_options *options)
{
	struct writer w = {.sink = s, .t = t, .options = options};
	struct memory_usage usage;

	w.err = memory_usage__init(&usage, t);
	if (!w.err) {
		buf__str(&w.b, "{\"schema\": \"gpuprof-memory-1\",\n\"start_unix_us\": ");
		buf__u64(&w.b, (t->start_ns + t->realtime_offset_ns) / 1000);
		buf__str(&w.b, ", \"duration_us\": ");
		buf__us(&w.b, (int64_t)(t->end_ns - t->start_ns));
		buf__str(&w.b, ",\n");
		add_processes(&w);
		add_devices(&w, &usage);
		add_out_of_memory(&w);
		add_losses(&w);
		add_capture(&w);
		flush(&w);
	}
	memory_usage__done(&usage);
	buf__done(&w.b);
	buf__done(&w.escaped);
	return w.err;
}

int output_memory_json(struct sink *s, const struct timeline *t)
{
	const struct memory_json_options all = {};

	return memory_json_write(s, t, &all);
}
