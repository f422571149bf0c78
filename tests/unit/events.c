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

int events_setup(void **state)
{
	*state = events__new();
	return 0;
}

int events_teardown(void **state)
{
	events__free(*state);
	return 0;
}

void events__process(struct events *e, uint32_t index, int32_t pid, const char *comm)
{
	events__rank(e, index, pid, comm, -1);
}

void events__rank(struct events *e, uint32_t index, int32_t pid, const char *comm, int32_t rank)
{
	struct recording_process p = {
		.index = index,
		.pid = pid,
		.rank = rank,
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
	const struct gp_ev_op ev = {
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
		.stack_id = op.stack_id,
	};

	if (op.same_calls)
		events__raw(e, &(struct gp_ev_op_inputs){.op = ev, .same_calls = op.same_calls},
			    sizeof(struct gp_ev_op_inputs));
	else
		events__raw(e, &ev, sizeof(ev));
}

void events__module_call(struct events *e, const char *type, const struct gp_ev_module_call *call)
{
	struct gp_ev_module_call ev = *call;

	ev.head.kind = GP_EV_MODULE_CALL;
	ev.head.tid = 100;
	ev.name_id = name_id(e, type, NULL);
	events__raw(e, &ev, sizeof(ev));
}

void events__frame(struct events *e, uint32_t id, const char *file, const char *function,
		   uint32_t line)
{
	const struct recording_frame f = {.file = file, .function = function, .line = line};

	assert_int_equal(recording_writer__frame(e->writer, id, &f), 0);
}

void events__stack(struct events *e, uint32_t id, const uint32_t *frames, size_t nr)
{
	events__stack_flags(e, id, 0, frames, nr);
}

void events__stack_flags(struct events *e, uint32_t id, uint32_t flags, const uint32_t *frames,
			 size_t nr)
{
	assert_int_equal(recording_writer__stack(e->writer, id, flags, frames, nr), 0);
}

void events__native_frame(struct events *e, uint32_t id, const char *module, const char *function,
			  const char *op, uint32_t scope)
{
	const struct recording_frame f = {.file = "",
					  .function = function,
					  .module = module,
					  .build_id = "",
					  .address = 0x1000 + id,
					  .kind = RECORDING_FRAME_NATIVE};

	assert_int_equal(recording_writer__frame(e->writer, id, &f), 0);
	if (op)
		assert_int_equal(
			recording_writer__frame_op(e->writer, id, name_id(e, op, NULL), scope), 0);
}

void events__sample(struct events *e, struct event_sample s)
{
	struct gp_ev_sample ev = {
		.head = {.kind = GP_EV_SAMPLE,
			 .flags = s.flags,
			 .tid = s.tid ? s.tid : 100,
			 .time_ns = s.end_ns ? s.end_ns : s.start_ns},
		.start_ns = s.start_ns,
		.weight_ns = s.weight_ns,
		.nr = s.nr ? s.nr : 1,
		.stack_id = s.stack_id,
		.syscall = s.syscall,
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

void events__api(struct events *e, struct event_api a)
{
	struct gp_ev_api ev = {
		.head = {.kind = GP_EV_API,
			 .flags = (a.cupti ? GP_API_CUPTI : 0) | (a.driver ? GP_API_DRIVER : 0),
			 .process = a.process,
			 .tid = a.tid ? a.tid : 100,
			 .time_ns = a.end_ns},
		.start_ns = a.start_ns,
		.instance = a.instance,
		.name_id = name_id(e, a.name, NULL),
		.cbid = a.cbid,
		.correlation_id = a.correlation_id,
	};

	events__raw(e, &ev, sizeof(ev));
}

static void add_kernel(struct events *e, const struct event_gpu *g, struct gp_ev_head head)
{
	struct gp_ev_kernel ev = {
		.head = head,
		.start_ns = g->start_ns,
		.correlation_id = g->correlation_id,
		.name_id = name_id(e, g->name, NULL),
		.device = g->device,
		.context = g->device + 1,
		.stream = g->stream,
		.registers = 32,
		.grid = {4, 2, 1},
		.block = {128, 1, 1},
		.static_shared_bytes = 1024,
		.dynamic_shared_bytes = 48,
		.graph = g->graph,
		.graph_node = g->graph_node,
	};

	ev.head.kind = GP_EV_KERNEL;
	events__raw(e, &ev, sizeof(ev));
}

static void add_gpu_memory(struct events *e, const struct event_gpu *g, struct gp_ev_head head)
{
	struct gp_ev_gpu_memory ev = {
		.head = head,
		.start_ns = g->start_ns,
		.bytes = g->bytes,
		.correlation_id = g->correlation_id,
		.device = g->device,
		.context = g->device + 1,
		.stream = g->stream,
		.is_set = g->kind == TL_GPU_SET,
		.copy_kind = g->copy_kind,
		.src_kind = g->src_kind,
		.dst_kind = g->dst_kind,
		.graph = g->graph,
		.graph_node = g->graph_node,
		.peer_device = g->copy_kind == 10 ? g->device + 1 : ~0U,
	};

	ev.head.kind = GP_EV_GPU_MEMORY;
	events__raw(e, &ev, sizeof(ev));
}

static void add_sync(struct events *e, const struct event_gpu *g, struct gp_ev_head head)
{
	struct gp_ev_sync ev = {
		.head = head,
		.start_ns = g->start_ns,
		.correlation_id = g->correlation_id,
		.what = g->what,
		.context = g->device + 1,
		.stream = g->stream,
		.event = g->what == 1 ? 8 : 0,
	};

	ev.head.kind = GP_EV_SYNC;
	events__raw(e, &ev, sizeof(ev));
}

void events__gpu(struct events *e, struct event_gpu g)
{
	struct gp_ev_head head = {.process = g.process, .time_ns = g.end_ns};

	if (g.kind == TL_GPU_KERNEL)
		add_kernel(e, &g, head);
	else if (g.kind == TL_GPU_SYNC)
		add_sync(e, &g, head);
	else
		add_gpu_memory(e, &g, head);
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
	uint64_t *children_cuda_ns = calloc(t->ops.nr + 1, sizeof(*children_cuda_ns));

	assert_true(last_child && children_ns && children_bytes && children_cuda_ns);
	for (size_t i = 0; i < t->gpu.api.nr; i++) {
		const struct tl_api *api = &t->gpu.api.items[i];

		if (api->op != TL_NONE && api->parent == TL_NONE)
			children_ns[api->op] += api->end_ns - api->start_ns;
	}
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
		children_bytes[op->parent] += timeline__op_sums(t, i)->cpu_bytes;
		children_cuda_ns[op->parent] += timeline__op_sums(t, i)->cuda_ns;
	}
	for (uint32_t i = 0; i < t->ops.nr; i++) {
		const struct tl_op *op = &t->ops.items[i];
		const struct tl_op_sums *sums = timeline__op_sums(t, i);

		if (!(op->flags & GP_OP_ASYNC))
			assert_int_equal(op->self_ns, op->end_ns - op->start_ns - children_ns[i]);
		assert_int_equal(sums->cpu_bytes, sums->self_cpu_bytes + children_bytes[i]);
		assert_int_equal(sums->cuda_ns, sums->self_cuda_ns + children_cuda_ns[i]);
	}
	free(last_child);
	free(children_ns);
	free(children_bytes);
	free(children_cuda_ns);
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

/* Calls nest among themselves, lie in their op, and hold no op. */
static void check_api(const struct timeline *t)
{
	for (uint32_t i = 0; i < t->gpu.api.nr; i++) {
		const struct tl_api *api = &t->gpu.api.items[i];

		assert_true(api->thread < t->threads.nr && api->start_ns <= api->end_ns);
		assert_true(api->self_ns <= api->end_ns - api->start_ns);
		if (i)
			assert_true(api->thread > api[-1].thread ||
				    (api->thread == api[-1].thread &&
				     api->start_ns >= api[-1].start_ns));
		if (api->parent != TL_NONE) {
			const struct tl_api *parent = &t->gpu.api.items[api->parent];

			assert_true(api->parent < i && parent->thread == api->thread);
			assert_true(parent->start_ns <= api->start_ns);
			assert_true(parent->end_ns >= api->end_ns);
		}
		for (uint32_t at = 0; at < t->ops.nr; at++) {
			const struct tl_op *op = &t->ops.items[at];
			bool holds = op->start_ns <= api->start_ns && api->end_ns <= op->end_ns;

			if (op->thread != api->thread || (op->flags & GP_OP_ASYNC))
				continue;
			assert_true(at != api->op || holds);
			assert_true(holds || op->end_ns <= api->start_ns ||
				    api->end_ns <= op->start_ns);
		}
	}
}

/* Slices of one row follow each other. */
static void check_lanes(const struct timeline *t)
{
	for (size_t i = 0; i < t->gpu.work.nr; i++)
		for (size_t k = 0; k < i; k++) {
			const struct tl_gpu *a = &t->gpu.work.items[i], *b = &t->gpu.work.items[k];

			if (a->lane == TL_NONE || a->lane != b->lane || a->process != b->process ||
			    a->device != b->device || a->stream != b->stream)
				continue;
			assert_true(a->shown_start_ns >= b->shown_end_ns ||
				    b->shown_start_ns >= a->shown_end_ns);
		}
}

static void check_gpu(const struct timeline *t)
{
	for (size_t i = 0; i < t->gpu.work.nr; i++) {
		const struct tl_gpu *g = &t->gpu.work.items[i];

		assert_true(g->start_ns <= g->end_ns && g->shown_start_ns <= g->shown_end_ns);
		assert_true(g->process < t->processes.nr);
		if (i)
			assert_true(g->start_ns >= g[-1].start_ns);
		if (g->api == TL_NONE)
			continue;
		assert_true(g->api < t->gpu.api.nr);
		assert_int_equal(g->op, t->gpu.api.items[g->api].op);
		assert_true(g->shown_start_ns >= t->gpu.api.items[g->api].start_ns);
	}
	for (size_t i = 0; i < t->gpu.streams.nr; i++) {
		const struct tl_gpu_use *u = &t->gpu.streams.items[i];

		assert_true(u->nr && u->busy_ns <= u->last_ns - u->first_ns);
		assert_true(u->busy_ns <= u->sum_ns);
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
	check_api(t);
	check_gpu(t);
	check_lanes(t);
	for (int i = 0; i < GP_LOSS_NR; i++)
		(void)loss_of(t, recording_loss_name(i));
}
