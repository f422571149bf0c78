/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * torch.profiler's export_memory_timeline(): the running totals of each category, and the single
 * changes. Times are Unix time, as there.
 */
#include "output/memory/memory_categories.h"
#include "output/format/output.h"
#include "output/format/output_format.h"

#include "base/banned.h"
#include "base/json_writer.h"

#define BLOCK_BYTES (1 << 20)

const char *category_name(enum tl_category category)
{
	static const char *const names[TL_CATEGORIES] = {
		[TL_PARAMETER] = "PARAMETER",
		[TL_OPTIMIZER_STATE] = "OPTIMIZER_STATE",
		[TL_INPUT] = "INPUT",
		[TL_TEMPORARY] = "TEMPORARY",
		[TL_ACTIVATION] = "ACTIVATION",
		[TL_GRADIENT] = "GRADIENT",
		[TL_AUTOGRAD_DETAIL] = "AUTOGRAD_DETAIL",
		[TL_UNKNOWN] = "Unknown",
	};

	return names[category];
}

/* ---- rows ---- */

/* A recording may claim any sizes: sums wrap, and never trap. */
static void add_bytes(int64_t *sum, int64_t bytes)
{
	*sum = (int64_t)((uint64_t)*sum + (uint64_t)bytes);
}

static int64_t total(const struct category_row *r)
{
	int64_t sum = 0;

	for (int i = 0; i < TL_CATEGORIES; i++)
		add_bytes(&sum, r->bytes[i]);
	return sum;
}

static void apply(struct category_row *r, const struct tl_category_change *c)
{
	if (c->change == TL_WRITE || c->change == TL_DESTROY)
		add_bytes(&r->bytes[c->from], -c->bytes);
	if (c->change != TL_DESTROY)
		add_bytes(&r->bytes[c->to], c->bytes);
}

static int64_t unix_ns(const struct timeline *t, const struct tl_category_change *c)
{
	return c->time_ns ? (int64_t)(c->time_ns + t->realtime_offset_ns) : -1;
}

static bool is_of(const struct tl_category_change *c, uint32_t process, uint8_t device)
{
	return c->process == process && c->device == device;
}

static int add_rows(struct category_rows *rows, const struct timeline *t, uint32_t process,
		    uint8_t device)
{
	int err = 0;

	for (size_t i = 0; i < t->categories.nr && !err; i++) {
		const struct tl_category_change *c = &t->categories.items[i];
		struct category_row *last =
			rows->items.nr ? &rows->items.items[rows->items.nr - 1] : NULL;
		struct category_row next = last ? *last : (struct category_row){0};

		if (!is_of(c, process, device))
			continue;
		next.time_us = c->time_ns ? unix_ns(t, c) / 1000 : -1;
		if (!last || last->time_us != next.time_us)
			err = vec_push(&rows->items, next);
		if (!err)
			apply(&rows->items.items[rows->items.nr - 1], c);
	}
	return err;
}

/* In place: what is kept moves to the front. */
static void thin(struct category_rows *rows, size_t max_nr)
{
	struct category_row *r = rows->items.items;
	size_t nr = rows->items.nr, first = nr && r[0].time_us < 0, kept = first;
	int64_t origin, span;

	if (!max_nr || nr <= max_nr || max_nr < 4)
		return;
	origin = r[first].time_us;
	span = (r[nr - 1].time_us - origin) / (int64_t)((max_nr - 1) / 3) + 1;
	for (size_t i = first; i < nr;) {
		int64_t stretch = (r[i].time_us - origin) / span;
		size_t from = i, high = i;

		for (; i < nr && (r[i].time_us - origin) / span == stretch; i++)
			if (total(&r[i]) > total(&r[high]))
				high = i;
		r[kept++] = r[from];
		if (high != from)
			r[kept++] = r[high];
		if (i - 1 != high && i - 1 != from)
			r[kept++] = r[i - 1];
	}
	rows->items.nr = kept;
	rows->thinned = true;
}

int category_rows__init(struct category_rows *ret_rows, const struct timeline *t, uint32_t process,
			uint8_t device, size_t max_nr)
{
	int err;

	*ret_rows = (struct category_rows){0};
	err = add_rows(ret_rows, t, process, device);
	if (!err)
		thin(ret_rows, max_nr);
	return err;
}

/* ---- torch.profiler's files ---- */

/* What was there before has the time of the first change that is known, where there is one. */
static int write_times(struct json_writer *j, struct sink *s, const struct category_rows *rows)
{
	int64_t first = -1;
	int err = 0;

	for (size_t i = 0; i < rows->items.nr && first < 0; i++)
		first = rows->items.items[i].time_us;
	json__array(j, &json_spaced);
	for (size_t i = 0; i < rows->items.nr && !err; i++) {
		int64_t time = rows->items.items[i].time_us;

		json__i64(j, time < 0 ? first : time);
		err = sink__drain(s, j->out, BLOCK_BYTES);
	}
	json__end(j);
	return err;
}

/* Nine numbers a row: the first is what the plot begins with. */
static int write_sizes(struct json_writer *j, struct sink *s, const struct category_rows *rows)
{
	int err = 0;

	json__array(j, &json_spaced);
	for (size_t i = 0; i < rows->items.nr && !err; i++) {
		json__array(j, &json_spaced);
		json__u64(j, 0);
		for (int k = 0; k < TL_CATEGORIES; k++)
			json__i64(j, rows->items.items[i].bytes[k]);
		json__end(j);
		err = sink__drain(s, j->out, BLOCK_BYTES);
	}
	json__end(j);
	return err;
}

int output_memory_timeline(struct sink *s, const struct timeline *t, uint32_t process,
			   uint8_t device)
{
	struct buf out = {0};
	struct json_writer j;
	struct category_rows rows;
	int err = category_rows__init(&rows, t, process, device, 0);

	json__init(&j, &out);
	json__array(&j, &json_spaced);
	err = err ? err : write_times(&j, s, &rows);
	err = err ? err : write_sizes(&j, s, &rows);
	json__end(&j);
	err = err ? err : sink__drain(s, &out, 0);
	vec_done(&rows.items);
	buf__done(&out);
	return err;
}

static void raw_event(struct json_writer *j, int64_t time_ns, int change, int64_t bytes,
		      int category)
{
	json__array(j, &json_spaced);
	json__i64(j, time_ns);
	json__i64(j, change);
	json__i64(j, bytes);
	json__i64(j, category);
	json__end(j);
}

int output_memory_timeline_raw(struct sink *s, const struct timeline *t, uint32_t process,
			       uint8_t device)
{
	struct buf out = {0};
	struct json_writer j;
	int err = 0;

	json__init(&j, &out);
	json__array(&j, &json_spaced);
	for (size_t i = 0; i < t->categories.nr && !err; i++) {
		const struct tl_category_change *c = &t->categories.items[i];

		if (!is_of(c, process, device))
			continue;
		if (c->change == TL_WRITE || c->change == TL_DESTROY)
			raw_event(&j, unix_ns(t, c), c->change, -c->bytes, c->from);
		if (c->change != TL_DESTROY)
			raw_event(&j, unix_ns(t, c), c->change, c->bytes, c->to);
		err = sink__drain(s, &out, BLOCK_BYTES);
	}
	json__end(&j);
	err = err ? err : sink__drain(s, &out, 0);
	buf__done(&out);
	return err;
}

const char *output_lacks_categories(const struct timeline *t)
{
	return t->has_categories ? NULL
				 : "does not say what operators were called with; record with "
				   "--memory and --shapes";
}

int output_format_memory_timeline(struct sink *s, const struct timeline *t,
				  const struct output_request *request)
{
	if (output_path_ends(request->path, ".raw.json"))
		return output_memory_timeline_raw(s, t, request->process, request->device);
	return output_memory_timeline(s, t, request->process, request->device);
}
