/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The allocations that were alive when a request was refused: those of its device up to then, less
 * those that were freed or whose address was allocated again.
 *
 * In JSON each refusal is {time_us, process, device, bytes (requested), op, outermost,
 * allocator_bytes, reserved_bytes (null: not reported), held_bytes, held_allocations (since the
 * capture began), held_by:
 * [{op, outermost, allocations, bytes}], held_by_nr, lines: [{line, allocations, bytes}],
 * lines_nr}, most bytes first.
 */
#include "output/memory/out_of_memory.h"

#include "output/format/output.h"
#include "output/format/stack_text.h"
#include "output/memory/memory_usage.h"

#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "base/hash.h"

/* A program that tries again and again would fill the screen, and the page. */
#define SHOWN_TEXT   3
#define SHOWN_JSON   100
#define HOLDERS_TEXT 10
#define HOLDERS_JSON 100

/* Allocations of one op, or those made from one Python line, that were alive then. */
struct holder {
	const char *op;	       /* NULL: outside any op, or this is a line */
	const char *outermost; /* the operator it ran under, NULL as above */
	uint32_t frame;	       /* of the recording, where this is a line; 0: no stack */
	uint64_t allocations;
	int64_t bytes;
};

struct holders {
	VEC(struct holder) ops;	  /* most bytes first */
	VEC(struct holder) lines; /* the same; empty where no allocation has a stack */
	uint64_t allocations;
	int64_t bytes; /* of what was allocated since the capture began */
};

static void holders__done(struct holders *h)
{
	vec_done(&h->ops);
	vec_done(&h->lines);
}

static bool same_device(const struct timeline *t, const struct tl_memory *a,
			const struct tl_memory *b)
{
	return a->device_type == b->device_type && a->device_index == b->device_index &&
	       t->threads.items[a->thread].process == t->threads.items[b->thread].process;
}

/* Where those of this key are added up; `rows` is one of holders'. */
#define HOLDER_OF(rows, index, key, fresh)                                                         \
	({                                                                                         \
		const uint64_t *at_ = hash__find((index), (key));                                  \
		struct holder *row_ = NULL;                                                        \
		if (at_)                                                                           \
			row_ = &(rows)->items[*at_];                                               \
		else if (!hash__set((index), (key), (rows)->nr) && !vec_push((rows), (fresh)))     \
			row_ = &(rows)->items[(rows)->nr - 1];                                     \
		row_;                                                                              \
	})

static void count(struct holder *row, const struct tl_memory *m)
{
	row->allocations++;
	row->bytes = (int64_t)((uint64_t)row->bytes + (uint64_t)m->bytes);
}

static uint32_t innermost_frame(const struct timeline *t, uint32_t stack_id)
{
	size_t nr = 0;
	const uint32_t *frames =
		stack_id ? recording__stack(t->recording, stack_id, &nr, NULL) : NULL;

	return nr ? frames[0] : 0;
}

struct gather {
	const struct timeline *t;
	struct holders *h;
	struct hash live; /* address -> event */
	struct hash ops, lines;
	bool has_lines;
};

static void gather__done(struct gather *g)
{
	hash__done(&g->live);
	hash__done(&g->ops);
	hash__done(&g->lines);
}

static int replay(struct gather *g, const struct tl_memory *refused)
{
	const struct timeline *t = g->t;
	int err = 0;

	for (size_t i = 0; i < t->memory.nr && !err; i++) {
		const struct tl_memory *m = &t->memory.items[i];

		if (m->time_ns > refused->time_ns)
			break;
		if (!same_device(t, m, refused))
			continue;
		if (m->bytes > 0)
			err = hash__set(&g->live, m->address, i);
		else
			(void)hash__delete(&g->live, m->address, NULL);
	}
	return err;
}

static int add_holder(struct gather *g, const struct tl_memory *m)
{
	const struct timeline *t = g->t;
	struct holder op = {0}, line = {.frame = innermost_frame(t, m->stack_id)};
	struct holder *row;

	if (m->op < t->ops.nr) {
		op.op = t->ops.items[m->op].name;
		op.outermost = memory_outermost_name(t, m->op);
	}
	row = HOLDER_OF(&g->h->ops, &g->ops,
			hash_mix((uintptr_t)op.op ^ hash_mix((uintptr_t)op.outermost)), op);
	if (!row)
		return -ENOMEM;
	count(row, m);
	g->has_lines |= line.frame != 0;
	row = HOLDER_OF(&g->h->lines, &g->lines, line.frame, line);
	if (!row)
		return -ENOMEM;
	count(row, m);
	g->h->allocations++;
	g->h->bytes = (int64_t)((uint64_t)g->h->bytes + (uint64_t)m->bytes);
	return 0;
}

static int most_first(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;
	int order = (x->bytes < y->bytes) - (x->bytes > y->bytes);

	if (!order)
		order = strcmp(x->op ? x->op : "", y->op ? y->op : "");
	if (!order)
		order = strcmp(x->outermost ? x->outermost : "", y->outermost ? y->outermost : "");
	return order ? order : (x->frame > y->frame) - (x->frame < y->frame);
}

/* What the device of timeline.out_of_memory[index] held when it happened. 0 or -ENOMEM; the caller
 * calls holders__done() in either case. */
static int holders__init(struct holders *h, const struct timeline *t, size_t index)
{
	CLEANUP(gather__done) struct gather g = {.t = t, .h = h};
	const struct tl_memory *refused = &t->out_of_memory.items[index];
	int err;

	*h = (struct holders){0};
	err = replay(&g, refused);
	for (size_t i = 0; i < t->memory.nr && !err; i++) {
		const struct tl_memory *m = &t->memory.items[i];
		const uint64_t *live;

		if (m->time_ns > refused->time_ns)
			break;
		live = m->bytes > 0 && same_device(t, m, refused) ? hash__find(&g.live, m->address)
								  : NULL;
		if (live && *live == i)
			err = add_holder(&g, m);
	}
	if (!g.has_lines)
		h->lines.nr = 0;
	if (h->ops.nr)
		qsort(h->ops.items, h->ops.nr, sizeof(struct holder), most_first);
	if (h->lines.nr)
		qsort(h->lines.items, h->lines.nr, sizeof(struct holder), most_first);
	return err;
}

/* ---- JSON ---- */

/* Null: the allocator did not report it. */
static void put_reported(struct json_writer *j, const char *key, uint64_t bytes)
{
	json__key(j, key);
	if (bytes)
		json__u64(j, bytes);
	else
		json__null(j);
}

static void put_numbers(struct json_writer *j, const struct holder *row)
{
	json__put_u64(j, "allocations", row->allocations);
	json__put_i64(j, "bytes", row->bytes);
}

static void put_ops(struct json_writer *j, const struct holders *h)
{
	json__put_array(j, "held_by", &json_spaced);
	for (size_t i = 0; i < h->ops.nr && i < HOLDERS_JSON; i++) {
		json__object(j, &json_spaced);
		json__put_text(j, "op", h->ops.items[i].op);
		json__put_text(j, "outermost", h->ops.items[i].outermost);
		put_numbers(j, &h->ops.items[i]);
		json__end(j);
	}
	json__end(j);
	json__put_u64(j, "held_by_nr", h->ops.nr);
}

static void put_lines(struct json_writer *j, const struct timeline *t, const struct holders *h)
{
	CLEANUP(buf__done) struct buf line = {0};

	json__put_array(j, "lines", &json_spaced);
	for (size_t i = 0; i < h->lines.nr && i < HOLDERS_JSON; i++) {
		buf__clear(&line);
		if (h->lines.items[i].frame)
			stack_text_frame(&line, t->recording, h->lines.items[i].frame);
		json__object(j, &json_spaced);
		json__put_text(j, "line", line.nr ? line.bytes : NULL);
		put_numbers(j, &h->lines.items[i]);
		json__end(j);
	}
	json__end(j);
	json__put_u64(j, "lines_nr", h->lines.nr);
}

static int put_refused(struct json_writer *j, const struct timeline *t, size_t index)
{
	CLEANUP(holders__done) struct holders h = {0};
	const struct tl_memory *m = &t->out_of_memory.items[index];
	bool has_op = m->op < t->ops.nr;
	char name[MEMORY_NAME_BYTES];
	int err = holders__init(&h, t, index);

	memory_device_name(m->device_type, m->device_index, name);
	json__object(j, &json_spaced);
	json__put_us(j, "time_us", (int64_t)(m->time_ns - t->start_ns));
	json__put_u64(j, "process", t->threads.items[m->thread].process);
	json__put_word(j, "device", name);
	json__put_i64(j, "bytes", m->bytes);
	json__put_text(j, "op", has_op ? t->ops.items[m->op].name : NULL);
	json__put_text(j, "outermost", has_op ? memory_outermost_name(t, m->op) : NULL);
	put_reported(j, "allocator_bytes", m->allocated_bytes);
	put_reported(j, "reserved_bytes", m->reserved_bytes);
	json__put_i64(j, "held_bytes", h.bytes);
	json__put_u64(j, "held_allocations", h.allocations);
	put_ops(j, &h);
	put_lines(j, t, &h);
	json__end(j);
	return err;
}

int out_of_memory_json(struct json_writer *j, const struct timeline *t)
{
	static const struct json_style refusals = JSON_STYLE("", ",\n", ": ", "");
	int err = 0;

	json__array(j, &refusals);
	for (size_t i = 0; i < t->out_of_memory.nr && i < SHOWN_JSON && !err; i++)
		err = put_refused(j, t, i);
	json__end(j);
	return err;
}

/* ---- text ---- */

static void add_size(struct buf *b, int64_t bytes)
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
	double size = (double)bytes;
	size_t unit = 0;

	while ((size >= 1024 || size <= -1024) && unit + 1 < sizeof(units) / sizeof(*units)) {
		size /= 1024;
		unit++;
	}
	if (unit)
		buf__printf(b, "%.2f %s", size, units[unit]);
	else
		buf__printf(b, "%lld B", (long long)bytes);
}

static void add_op_name(struct buf *b, const char *op, const char *outermost)
{
	if (!op) {
		buf__str(b, "outside any op");
		return;
	}
	buf__line(b, op);
	if (outermost && strcmp(op, outermost) != 0) {
		buf__str(b, " under ");
		buf__line(b, outermost);
	}
}

static void add_line_name(struct buf *b, const struct timeline *t, uint32_t frame)
{
	CLEANUP(buf__done) struct buf line = {0};

	if (frame)
		stack_text_frame(&line, t->recording, frame);
	buf__line(b, line.nr ? line.bytes : "no stack");
}

static void text_rows(struct buf *b, const struct timeline *t, const struct holder *rows, size_t nr,
		      bool lines)
{
	buf__printf(b, "  %12s  %12s  %s\n", "Held", "Allocations", lines ? "Python line" : "Op");
	for (size_t i = 0; i < nr && i < HOLDERS_TEXT; i++) {
		CLEANUP(buf__done) struct buf size = {0};

		add_size(&size, rows[i].bytes);
		buf__printf(b, "  %12s  %12llu  ", size.nr ? size.bytes : "",
			    (unsigned long long)rows[i].allocations);
		if (lines)
			add_line_name(b, t, rows[i].frame);
		else
			add_op_name(b, rows[i].op, rows[i].outermost);
		buf__char(b, '\n');
	}
	if (nr > HOLDERS_TEXT)
		buf__printf(b, "  and %zu more\n", nr - HOLDERS_TEXT);
}

static int text_refused(struct buf *b, const struct timeline *t, size_t index)
{
	CLEANUP(holders__done) struct holders h = {0};
	const struct tl_memory *m = &t->out_of_memory.items[index];
	bool has_op = m->op < t->ops.nr;
	char name[MEMORY_NAME_BYTES];
	int err = holders__init(&h, t, index);

	buf__str(b, "Out of memory: ");
	add_size(b, m->bytes);
	buf__str(b, " asked for on ");
	memory_device_name(m->device_type, m->device_index, name);
	buf__str(b, name);
	buf__printf(b, " after %.3f s, %s", (double)(m->time_ns - t->start_ns) / 1e9,
		    has_op ? "in " : "");
	add_op_name(b, has_op ? t->ops.items[m->op].name : NULL,
		    has_op ? memory_outermost_name(t, m->op) : NULL);
	if (m->allocated_bytes || m->reserved_bytes) {
		buf__str(b, "; the allocator held ");
		add_size(b, (int64_t)m->allocated_bytes);
		buf__str(b, " and had reserved ");
		add_size(b, (int64_t)m->reserved_bytes);
	}
	buf__str(b, "\nOf what was allocated since the capture began, ");
	add_size(b, h.bytes);
	buf__printf(b, " in %llu allocations was held then:\n", (unsigned long long)h.allocations);
	text_rows(b, t, h.ops.items, h.ops.nr, false);
	if (h.lines.nr)
		text_rows(b, t, h.lines.items, h.lines.nr, true);
	return err;
}

int output_out_of_memory_text(struct sink *s, const struct timeline *t)
{
	CLEANUP(buf__done) struct buf b = {0};
	int err = 0;

	for (size_t i = 0; i < t->out_of_memory.nr && i < SHOWN_TEXT && !err; i++)
		err = text_refused(&b, t, i);
	if (t->out_of_memory.nr > SHOWN_TEXT)
		buf__printf(&b, "Out of memory %zu times more; --json tells of the first %d\n",
			    t->out_of_memory.nr - SHOWN_TEXT, SHOWN_JSON);
	return err ? err : sink__write_buf(s, &b);
}
