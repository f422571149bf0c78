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
 *                 the allocator's own totals at each point, null where it reported none; absent
 *                 where it never did
 *     end_bytes   the last of them
 *     peak        {time_us, bytes, held_by} or null; held_by: the ops whose allocations were alive
 *                 then, most bytes first: [{op, outermost, allocations, bytes}]
 *     ops         the ops that allocated, most bytes first: [{op, outermost, allocations, bytes,
 *                 largest_bytes, peak_bytes, end_allocations, end_bytes}]. op is the innermost
 *                 one, outermost the operator it ran under; both null outside any op
 *     ops_nr, held_by_nr
 *                 how many there are of each, where a list is cut
 *     categories  if operators were recorded with their inputs (else absent): what each category
 *                 holds, what was there before the capture included: {names, times_us, bytes: a
 *                 list for each name, thinned}
 *   out_of_memory requests that were refused, as out_of_memory.c describes them; absent if none
 *   frees_of_unknown_size
 *                 frees of memory allocated before the capture: they are in no total
 *   losses        {name: count}, zeros too
 *   capture       {key: value}: the recording's metadata
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

/* Where JSON gathers on its way to the sink. */
struct writer {
	struct buf b;
	struct json_writer json; /* writes to `b` */
	struct buf escaped;
	struct sink *sink;
	const struct timeline *t;
	const struct memory_json_options *options;
	int err;
};

/* A row a line, the first of them behind the bracket. */
static const struct json_style rows_style = JSON_STYLE("", ",\n", ": ", "");

static void flush(struct writer *w)
{
	struct buf *out = &w->b;

	if (!w->b.nr)
		return;
	if (w->options->html_embed_json) {
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

static void add_time(struct writer *w, uint64_t time_ns)
{
	json__us(&w->json, (int64_t)(time_ns - w->t->start_ns));
}

static void add_processes(struct writer *w)
{
	struct json_writer *j = &w->json;

	json__put_array(j, "processes", &json_lines);
	for (size_t i = 0; i < w->t->processes.nr; i++) {
		const struct tl_process *p = &w->t->processes.items[i];

		json__object(j, &json_spaced);
		json__put_i64(j, "pid", p->pid);
		json__key(j, "rank");
		if (p->rank >= 0)
			json__i64(j, p->rank);
		else
			json__null(j);
		json__put_text(j, "comm", p->comm);
		json__put_text(j, "cmdline", p->cmdline);
		json__end(j);
		flush_if_much(w);
	}
	json__end(j);
}

enum column { COLUMN_TIME, COLUMN_TOTAL, COLUMN_ALLOCATED, COLUMN_RESERVED };

/* Null: the allocator did not report it. */
static void add_reported(struct json_writer *j, uint64_t bytes)
{
	if (bytes)
		json__u64(j, bytes);
	else
		json__null(j);
}

static void add_column(struct writer *w, const char *key, enum column column,
		       const struct memory_points *points)
{
	json__new_line(&w->json, 0);
	json__put_array(&w->json, key, &json_tight);
	for (size_t i = 0; i < points->events.nr; i++) {
		const struct tl_memory *m = &w->t->memory.items[points->events.items[i]];

		if (column == COLUMN_TIME)
			add_time(w, m->time_ns);
		else if (column == COLUMN_TOTAL)
			json__i64(&w->json, m->total_bytes);
		else
			add_reported(&w->json, column == COLUMN_ALLOCATED ? m->allocated_bytes
									  : m->reserved_bytes);
		flush_if_much(w);
	}
	json__end(&w->json);
}

static void add_series(struct writer *w, const struct memory_device *d)
{
	struct memory_points points;
	int err = memory_device__points(d, w->t, w->options->max_points, &points);

	if (!w->err)
		w->err = err;
	json__key(&w->json, "thinned_us");
	if (points.bucket_ns)
		json__us(&w->json, (int64_t)points.bucket_ns);
	else
		json__null(&w->json);
	add_column(w, "times_us", COLUMN_TIME, &points);
	add_column(w, "bytes", COLUMN_TOTAL, &points);
	if (d->has_totals) {
		add_column(w, "allocator_bytes", COLUMN_ALLOCATED, &points);
		add_column(w, "reserved_bytes", COLUMN_RESERVED, &points);
	}
	json__new_line(&w->json, 0);
	vec_done(&points.events);
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
	json__array(&w->json, &json_tight);
	for (size_t i = 0; i < rows->items.nr; i++) {
		json__i64(&w->json, rows->items.items[i].bytes[category]);
		flush_if_much(w);
	}
	json__end(&w->json);
}

/* A row's time is Unix time; what was there before the capture has the time of its start. */
static void add_category_time(struct writer *w, const struct category_row *row)
{
	int64_t start_us = (int64_t)((w->t->start_ns + w->t->realtime_offset_ns) / 1000);

	json__i64(&w->json, row->time_us < start_us ? 0 : row->time_us - start_us);
}

static void add_category_rows(struct writer *w, const struct category_rows *rows)
{
	struct json_writer *j = &w->json;

	json__put_object(j, "categories", &json_spaced);
	json__put_array(j, "names", &json_spaced);
	for (int i = 0; i < TL_CATEGORIES; i++)
		json__word(j, category_name(i));
	json__end(j);
	json__new_line(j, 0);
	json__put_array(j, "times_us", &json_tight);
	for (size_t i = 0; i < rows->items.nr; i++) {
		add_category_time(w, &rows->items.items[i]);
		flush_if_much(w);
	}
	json__end(j);
	json__new_line(j, 0);
	json__put_array(j, "bytes", &rows_style);
	for (int i = 0; i < TL_CATEGORIES; i++)
		add_category(w, rows, i);
	json__end(j);
	json__put_bool(j, "thinned", rows->thinned);
	json__end(j);
	json__new_line(j, 0);
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
	struct json_writer *j = &w->json;

	json__object(j, &json_spaced);
	json__put_text(j, "op", op->op);
	json__put_text(j, "outermost", op->outermost);
	if (at_peak) {
		json__put_u64(j, "allocations", op->peak_allocations);
		json__put_i64(j, "bytes", op->peak_bytes);
	} else {
		json__put_u64(j, "allocations", op->allocations);
		json__put_i64(j, "bytes", op->allocated_bytes);
		json__put_i64(j, "largest_bytes", op->largest_bytes);
		json__put_i64(j, "peak_bytes", op->peak_bytes);
		json__put_u64(j, "end_allocations", op->end_allocations);
		json__put_i64(j, "end_bytes", op->end_bytes);
	}
	json__end(j);
	flush_if_much(w);
}

/* Sorts the device's ops in place. Ops with nothing alive at the peak are not in its list. */
static void add_ops(struct writer *w, struct memory_device *d, bool at_peak)
{
	size_t max = w->options->max_ops ? w->options->max_ops : d->ops.nr;
	size_t nr = 0;

	if (d->ops.nr)
		qsort(d->ops.items, d->ops.nr, sizeof(*d->ops.items),
		      at_peak ? memory_op_by_peak : memory_op_by_allocated);
	json__put_array(&w->json, at_peak ? "held_by" : "ops", &json_lines);
	for (size_t i = 0; i < d->ops.nr; i++) {
		if (at_peak && !d->ops.items[i].peak_allocations)
			continue;
		if (nr++ < max)
			add_op(w, &d->ops.items[i], at_peak);
	}
	json__end(&w->json);
	json__put_u64(&w->json, at_peak ? "held_by_nr" : "ops_nr", nr);
}

static void add_peak(struct writer *w, struct memory_device *d)
{
	json__key(&w->json, "peak");
	if (d->peak == TL_NONE) {
		json__null(&w->json);
	} else {
		json__object(&w->json, &json_spaced);
		json__key(&w->json, "time_us");
		add_time(w, w->t->memory.items[d->peak].time_ns);
		json__put_i64(&w->json, "bytes", d->peak_bytes);
		add_ops(w, d, true);
		json__end(&w->json);
	}
	json__new_line(&w->json, 0);
}

static void add_device(struct writer *w, struct memory_device *d)
{
	struct json_writer *j = &w->json;
	char name[MEMORY_NAME_BYTES];

	memory_device_name(d->type, d->index, name);
	json__object(j, &json_spaced);
	json__put_word(j, "device", name);
	json__key(j, "process");
	if (d->process < w->t->processes.nr)
		json__u64(j, d->process);
	else
		json__null(j);
	json__put_u64(j, "events", d->events.nr);
	add_series(w, d);
	add_categories(w, d);
	add_peak(w, d);
	add_ops(w, d, false);
	json__put_i64(j, "end_bytes", d->end_bytes);
	if (d->has_outside) {
		json__put_i64(j, "outside_pytorch_end_bytes", d->outside_end_bytes);
		json__put_i64(j, "outside_pytorch_peak_bytes", d->outside_peak_bytes);
	}
	json__end(j);
}

static void add_devices(struct writer *w, struct memory_usage *u)
{
	json__put_array(&w->json, "devices", &json_lines);
	for (size_t i = 0; i < u->devices.nr; i++)
		add_device(w, &u->devices.items[i]);
	json__end(&w->json);
}

static void add_out_of_memory(struct writer *w)
{
	int err = 0;

	if (!w->t->out_of_memory.nr)
		return;
	json__key(&w->json, "out_of_memory");
	err = out_of_memory_json(&w->json, w->t);
	w->err = w->err ? w->err : err;
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

static void add_capture(struct writer *w)
{
	const struct recording *r = w->t->recording;
	size_t nr = r ? recording__metas(r) : 0;

	json__put_object(&w->json, "capture", &json_lines);
	for (size_t i = 0; i < nr; i++) {
		const char *key = NULL, *value = NULL;

		recording__meta_at(r, i, &key, &value);
		json__key_text(&w->json, key ? key : "");
		json__text(&w->json, value);
		flush_if_much(w);
	}
	json__end(&w->json);
}

static void add_document(struct writer *w, struct memory_usage *usage)
{
	struct json_writer *j = &w->json;
	const struct timeline *t = w->t;

	json__object(j, &json_spaced);
	json__put_word(j, "schema", "gpuprof-memory-1");
	json__new_line(j, 0);
	json__put_u64(j, "start_unix_us", (t->start_ns + t->realtime_offset_ns) / 1000);
	json__put_us(j, "duration_us", (int64_t)(t->end_ns - t->start_ns));
	json__new_line(j, 0);
	add_processes(w);
	json__new_line(j, 0);
	add_devices(w, usage);
	json__new_line(j, 0);
	add_out_of_memory(w);
	json__new_line(j, 0);
	json__put_u64(j, "frees_of_unknown_size", frees_of_unknown_size(t));
	json__new_line(j, 0);
	json__key(j, "losses");
	metadata_losses(j, t);
	json__new_line(j, 0);
	add_capture(w);
	json__end(j);
	buf__char(&w->b, '\n');
}

int memory_json_write(struct sink *s, const struct timeline *t,
		      const struct memory_json_options *options)
{
	struct writer w = {.sink = s, .t = t, .options = options};
	struct memory_usage usage;

	json__init(&w.json, &w.b);
	w.err = memory_usage__init(&usage, t);
	if (!w.err) {
		add_document(&w, &usage);
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
