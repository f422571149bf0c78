/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Recordings made by hand, and the promises of timeline.h as a check.
 */
#include "events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct events {
	char path[64];
	struct recording_writer *writer;
	struct recording *recording;
	struct timeline *timeline;
	VEC(char *) texts; /* "name\noverload", by id */
};

struct events *events__new(void)
{
	struct events *e = calloc(1, sizeof(*e));
	struct reason why = {0};
	int fd;

	assert_non_null(e);
	(void)snprintf(e->path, sizeof(e->path), "/tmp/gpuprof-unit-XXXXXX");
	fd = mkstemp(e->path);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(recording_writer__new(e->path, &why, &e->writer), 0);
	events__process(e, 0, 4242, "python");
	return e;
}

void events__free(struct events *e)
{
	if (!e)
		return;
	timeline__free(e->timeline);
	recording__free(e->recording);
	recording_writer__free(e->writer);
	for (size_t i = 0; i < e->texts.nr; i++)
		free(e->texts.items[i]);
	vec_done(&e->texts);
	(void)unlink(e->path);
	free(e);
}

void events__process(struct events *e, uint32_t index, int32_t pid, const char *comm)
{
	struct recording_process p = {
		.index = index,
		.pid = pid,
		.rank = -1,
		.world_size = -1,
		.comm = comm,
		.cmdline = "python train.py",
	};

	assert_int_equal(recording_writer__process(e->writer, &p), 0);
}

void events__meta(struct events *e, const char *key, const char *value)
{
	assert_int_equal(recording_writer__meta(e->writer, key, value), 0);
}

void events__loss(struct events *e, const char *name, uint64_t count)
{
	assert_int_equal(recording_writer__loss(e->writer, name, count), 0);
}

void events__window(struct events *e, uint64_t start_ns, uint64_t end_ns, uint64_t realtime_ns)
{
	assert_int_equal(recording_writer__window(e->writer, start_ns, end_ns, realtime_ns), 0);
}

void events__raw(struct events *e, const void *event, size_t bytes)
{
	assert_int_equal(recording_writer__event(e->writer, event, bytes), 0);
}

void events__thread(struct events *e, uint32_t tid, const char *comm)
{
	struct gp_ev_thread ev = {.head = {.kind = GP_EV_THREAD, .tid = tid}};

	memcpy(ev.comm, comm, strnlen(comm, sizeof(ev.comm)));
	events__raw(e, &ev, sizeof(ev));
}

static uint32_t name_id(struct events *e, const char *name, const char *overload)
{
	char *text = NULL;
	uint32_t id;

	assert_true(asprintf(&text, "%s\n%s", name, overload ? overload : "") > 0);
	for (size_t i = 0; i < e->texts.nr; i++) {
		if (strcmp(e->texts.items[i], text) != 0)
			continue;
		free(text);
		return (uint32_t)i + 1;
	}
	assert_int_equal(vec_push(&e->texts, text), 0);
	id = (uint32_t)e->texts.nr;
	assert_int_equal(recording_writer__name(e->writer, id, name, overload ? overload : ""), 0);
	return id;
}

void events__op(struct events *e, struct event_op op)
{
	struct gp_ev_op ev = {
		.head = {.kind = GP_EV_OP,
			 .flags = op.flags,
			 .process = op.process,
			 .tid = op.tid ? op.tid : 100,
			 .time_ns = op.end_ns},
		.start_ns = op.start_ns,
		.instance = op.instance,
		.parent = op.parent,
		.sequence_nr = op.sequence_nr - 1,
		.forward_thread = op.forward_thread,
		.name_id = name_id(e, op.name, op.overload),
		.scope = op.scope,
		.thread_number = op.thread_number,
	};

	events__raw(e, &ev, sizeof(ev));
}

void events__memory(struct events *e, struct event_memory m)
{
	struct gp_ev_memory ev = {
		.head = {.kind = GP_EV_MEMORY,
			 .flags = m.flags,
			 .process = m.process,
			 .tid = m.tid ? m.tid : 100,
			 .time_ns = m.time_ns},
		.instance = m.instance,
		.address = m.address,
		.bytes = m.bytes,
		.allocated_bytes = m.allocated_bytes,
		.reserved_bytes = m.reserved_bytes,
		.device_type = m.device_type,
		.device_index = m.device_type == GP_DEVICE_CPU ? -1 : 0,
	};

	events__raw(e, &ev, sizeof(ev));
}

const struct timeline *events__timeline(struct events *e)
{
	struct reason why = {0};
	int err;

	assert_int_equal(recording_writer__finish(e->writer), 0);
	err = recording__open(e->path, &why, &e->recording);
	if (err)
		fail_msg("recording__open: %s", why.text);
	err = timeline__new(e->recording, &why, &e->timeline);
	if (err)
		fail_msg("timeline__new: %s", why.text);
	check_timeline(e->timeline);
	return e->timeline;
}

uint64_t loss_of(const struct timeline *t, const char *name)
{
	for (size_t i = 0; i < t->losses.nr; i++)
		if (!strcmp(t->losses.items[i].name, name))
			return t->losses.items[i].count;
	fail_msg("no loss is called %s", name);
	return 0;
}

uint32_t find_op(const struct timeline *t, const char *name, unsigned int nth)
{
	for (uint32_t i = 0; i < t->ops.nr; i++)
		if (!strcmp(t->ops.items[i].name, name) && !nth--)
			return i;
	return TL_NONE;
}

const struct tl_op *op_named(const struct timeline *t, const char *name, unsigned int nth)
{
	uint32_t i = find_op(t, name, nth);

	assert_int_not_equal(i, TL_NONE);
	return &t->ops.items[i];
}

const char *parent_name(const struct timeline *t, const char *name, unsigned int nth)
{
	const struct tl_op *o = op_named(t, name, nth);

	return o->parent == TL_NONE ? "" : t->ops.items[o->parent].name;
}

/* Against the op's parent and the previous child of the same parent. */
static void check_place(const struct timeline *t, uint32_t i, const uint32_t *last_child)
{
	const struct tl_op *op = &t->ops.items[i], *parent;

	if (op->flags & GP_OP_ASYNC) {
		assert_int_equal(op->parent, TL_NONE);
		assert_int_equal(op->self_ns, 0);
	}
	if (op->parent == TL_NONE) {
		assert_int_equal(op->depth, 0);
		return;
	}
	assert_true(op->parent < i);
	parent = &t->ops.items[op->parent];
	assert_int_equal(op->depth, parent->depth + 1);
	assert_int_equal(op->thread, parent->thread);
	assert_true(op->start_ns >= parent->start_ns);
	assert_true(op->end_ns <= parent->end_ns);
	assert_false(parent->flags & GP_OP_ASYNC);
	if (last_child[op->parent] != TL_NONE)
		assert_true(t->ops.items[last_child[op->parent]].end_ns <= op->start_ns);
}

static void check_ops(const struct timeline *t)
{
	uint32_t *last_child = malloc((t->ops.nr + 1) * sizeof(*last_child));
	uint64_t *children_ns = calloc(t->ops.nr + 1, sizeof(*children_ns));
	int64_t *children_bytes = calloc(t->ops.nr + 1, sizeof(*children_bytes));

	assert_true(last_child && children_ns && children_bytes);
	memset(last_child, 0xff, (t->ops.nr + 1) * sizeof(*last_child));
	for (uint32_t i = 0; i < t->ops.nr; i++) {
		const struct tl_op *op = &t->ops.items[i];

		assert_true(op->thread < t->threads.nr);
		assert_true(op->end_ns >= op->start_ns);
		if (i && op->thread == op[-1].thread)
			assert_true(op->start_ns >= op[-1].start_ns);
		if (i)
			assert_true(op->thread >= op[-1].thread);
		check_place(t, i, last_child);
		if (op->parent == TL_NONE)
			continue;
		last_child[op->parent] = i;
		children_ns[op->parent] += op->end_ns - op->start_ns;
		children_bytes[op->parent] += op->cpu_bytes;
	}
	for (uint32_t i = 0; i < t->ops.nr; i++) {
		const struct tl_op *op = &t->ops.items[i];

		if (!(op->flags & GP_OP_ASYNC))
			assert_int_equal(op->self_ns, op->end_ns - op->start_ns - children_ns[i]);
		assert_int_equal(op->cpu_bytes, op->self_cpu_bytes + children_bytes[i]);
	}
	free(last_child);
	free(children_ns);
	free(children_bytes);
}

/* Ops without parent on one thread follow each other; asynchronous ones are apart. */
static void check_roots(const struct timeline *t)
{
	uint64_t end_ns = 0;

	for (uint32_t i = 0; i < t->ops.nr; i++) {
		const struct tl_op *op = &t->ops.items[i];

		if (i && op->thread != op[-1].thread)
			end_ns = 0;
		if (op->parent != TL_NONE || (op->flags & GP_OP_ASYNC))
			continue;
		assert_true(op->start_ns >= end_ns);
		end_ns = op->end_ns;
	}
}

static void check_memory(const struct timeline *t)
{
	for (uint32_t i = 0; i < t->memory.nr; i++) {
		const struct tl_memory *m = &t->memory.items[i];

		assert_true(m->thread < t->threads.nr);
		if (i)
			assert_true(m->time_ns >= m[-1].time_ns);
		if (m->op != TL_NONE) {
			assert_true(m->op < t->ops.nr);
			assert_int_equal(t->ops.items[m->op].thread, m->thread);
		}
		if (m->partner == TL_NONE)
			continue;
		assert_true(m->partner < t->memory.nr);
		assert_int_equal(t->memory.items[m->partner].partner, i);
		assert_int_equal(t->memory.items[m->partner].bytes, -m->bytes);
		assert_int_equal(t->memory.items[m->partner].address, m->address);
	}
}

void check_timeline(const struct timeline *t)
{
	for (size_t i = 0; i < t->threads.nr; i++)
		assert_true(t->threads.items[i].process < t->processes.nr);
	assert_true(t->end_ns >= t->start_ns);
	check_ops(t);
	check_roots(t);
	check_memory(t);
	for (int i = 0; i < GP_LOSS_NR; i++)
		(void)loss_of(t, recording_loss_name(i));
}
