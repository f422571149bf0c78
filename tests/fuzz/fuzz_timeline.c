/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Events of any content through a recording into a timeline, its tables and its outputs. Fields are
 * mostly small numbers, so that instances, parents, addresses and times meet; some are any number.
 */
#include "fuzz/fuzz_seed.h"
#include "output/output.h"
#include "recording/recording.h"
#include "timeline/table.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EVENTS_MAX 2000
#define NAMES_NR   5

struct input {
	const uint8_t *at;
	const uint8_t *end;
};

static uint8_t byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* One byte, or eight after a 255. */
static uint64_t number(struct input *in)
{
	uint64_t n = byte(in);

	if (n == 255)
		for (int i = 0; i < 8; i++)
			n = n << 8 | byte(in);
	return n;
}

static uint64_t instance(struct input *in)
{
	uint64_t n = number(in);

	return n && n < 255 ? (1 + n / 100) << 32 | n : n;
}

static void head(struct input *in, struct gp_ev_head *h, uint8_t kind)
{
	uint8_t flags = byte(in);

	*h = (struct gp_ev_head){.kind = kind, .flags = flags, .process = flags >> 6};
	h->tid = (uint32_t)number(in);
	h->time_ns = number(in);
}

static void one_op(struct input *in, struct recording_writer *w)
{
	struct gp_ev_op op = {0};

	head(in, &op.head, GP_EV_OP);
	op.start_ns = number(in);
	op.instance = instance(in);
	op.parent = instance(in);
	op.name_id = byte(in) % (NAMES_NR + 1);
	op.scope = byte(in) % 8;
	op.sequence_nr = (int64_t)number(in) - 1;
	op.forward_thread = byte(in) % 4;
	op.thread_number = byte(in) % 4;
	(void)recording_writer__event(w, &op, sizeof(op));
}

static void one_memory(struct input *in, struct recording_writer *w)
{
	struct gp_ev_memory m = {0};

	head(in, &m.head, GP_EV_MEMORY);
	m.instance = instance(in);
	m.address = number(in);
	m.bytes = (int64_t)number(in) - 100;
	m.allocated_bytes = number(in);
	m.device_type = byte(in) % 3;
	m.device_index = (int16_t)number(in);
	(void)recording_writer__event(w, &m, sizeof(m));
}

static void one_thread(struct input *in, struct recording_writer *w)
{
	struct gp_ev_thread t = {0};

	head(in, &t.head, GP_EV_THREAD);
	for (size_t i = 0; i < sizeof(t.comm); i++)
		t.comm[i] = (char)byte(in);
	(void)recording_writer__event(w, &t, sizeof(t));
}

static void fill(struct input *in, struct recording_writer *w)
{
	static const char *const names[NAMES_NR] = {"f", "f", "aten::is_leaf", "ProfilerStep#1",
						    "\"\n\xff"};
	struct recording_process p = {.pid = 1, .rank = -1, .comm = "c", .cmdline = ""};

	p.pid = (int32_t)number(in);
	(void)recording_writer__process(w, &p);
	for (uint32_t i = 0; i < NAMES_NR; i++)
		(void)recording_writer__name(w, i, names[i], i == 1 ? "out" : "");
	(void)recording_writer__window(w, number(in), number(in), number(in));
	for (int i = 0; i < EVENTS_MAX && in->at < in->end; i++) {
		switch (byte(in) % 8) {
		case 0:
			one_thread(in, w);
			break;
		case 1:
		case 2:
			one_memory(in, w);
			break;
		default:
			one_op(in, w);
		}
	}
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* What every output relies on. */
static void check_ops(const struct timeline *t)
{
	for (uint32_t i = 0; i < t->ops.nr; i++) {
		const struct tl_op *op = &t->ops.items[i], *parent;

		check(op->start_ns <= op->end_ns && op->thread < t->threads.nr);
		check(op->self_ns <= op->end_ns - op->start_ns);
		if (op->parent == TL_NONE)
			continue;
		check(op->parent < i);
		parent = &t->ops.items[op->parent];
		check(parent->thread == op->thread && parent->depth + 1 == op->depth);
		check(parent->start_ns <= op->start_ns && op->end_ns <= parent->end_ns);
	}
}

static void write_outputs(const struct timeline *t, const char *sort)
{
	struct table_options options = {.sort = sort, .by_overload = !sort};
	struct output_table_options text = {.limit = -1, .top_level = !sort};
	struct table *table = NULL;
	struct sink *s = NULL;

	check(!table__new(t, &options, NULL, &table));
	check(!sink__new_memory(&s));
	check(!output_table_text(s, table, &text));
	check(!output_table_json(s, t, table, -1));
	check(!output_table_csv(s, table, 3));
	check(!output_chrome(s, t, "fuzz"));
	check(!sink__finish(s));
	sink__free(s);
	table__free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	struct recording_writer *w = NULL;
	struct recording *rec = NULL;
	struct timeline *t = NULL;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check(fd >= 0 && !recording_writer__new(path, NULL, &w));
	fill(&in, w);
	check(!recording_writer__finish(w));
	recording_writer__free(w);
	check(!recording__open(path, NULL, &rec));
	check(!timeline__new(rec, NULL, &t));
	check_ops(t);
	write_outputs(t, NULL);
	write_outputs(t, "self_cpu_time_total");
	timeline__free(t);
	recording__free(rec);
	(void)close(fd);
	return 0;
}

/* Nested ops, an exception, an allocation and its free. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const uint8_t seed[] = {
		1, 10, 250, 20,				   /* pid, window */
		3, 0,  7,   50, 20, 3, 2,   0, 0, 6, 0, 1, /* op 3 in op 2 */
		3, 1,  7,   80, 15, 2, 1,   1, 7, 0, 0, 1, /* op 2 in op 1, by exception */
		3, 0,  7,   70, 10, 1, 0,   0, 0, 6, 1, 2, /* op 1 */
		1, 0,  7,   30, 3,  9, 200, 0, 0, 0,	   /* allocation in op 3 */
		1, 3,  7,   60, 1,  9, 100, 0, 0, 0,	   /* its free */
	};

	fuzz_seed(*argc, *argv, "nested", seed, sizeof(seed));
	return 0;
}
