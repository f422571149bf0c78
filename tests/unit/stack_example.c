/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The recording with stacks, written by the real writer.
 */
#include "unit/stack_example.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAIN	 100
#define AUTOGRAD 200
#define T	 (1ULL << 32)

static void must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "stack_example: %s\n", strerror(-err));
	abort();
}

/* ---- names ---- */

enum { LINEAR = 1, ADDMM, RELU, EVALUATE, MM, ZERO, LAUNCH, SGEMM, ISSUE, VERSION, NAMES_END };

static const char *const plain[NAMES_END] = {
	[LINEAR] = "aten::linear",
	[ADDMM] = "aten::addmm",
	[RELU] = "aten::relu",
	[EVALUATE] = "autograd::engine::evaluate_function: AddmmBackward0",
	[MM] = "aten::mm",
	[ZERO] = "aten::zero_",
	[LAUNCH] = "cudaLaunchKernel",
	[SGEMM] = "sgemm_128x64",
	[ISSUE] = "Optimizer.step#SGD.step",
	[VERSION] = "aten::_version",
};

static const char *const nasty[NAMES_END] = {
	[LINEAR] = "</script><script>window.broken = 1</script>",
	[ADDMM] = "<img src=x onerror=\"window.broken = 1\">",
	[RELU] = "\xff\xfe\x01;\n\t\"\\",
	[EVALUATE] = "<!-- <script>",
	[MM] = "${window.broken=1}&amp;",
	[ZERO] = "",
	[LAUNCH] = "\xe2\x80\xaereversed",
	[SGEMM] = "\"};window.broken=1;//",
	[ISSUE] = "a b;c",
	[VERSION] = "aten::_version",
};

static void add_names(struct recording_writer *w, bool hostile)
{
	for (uint32_t i = 1; i < NAMES_END; i++)
		must(recording_writer__name(w, i, hostile ? nasty[i] : plain[i], ""));
}

static void add_frames(struct recording_writer *w, bool hostile)
{
	const struct recording_frame frames[] = {
		{.file = "train.py", .function = "<module>", .line = 10},
		{.file = "train.py", .function = "step", .line = 41},
		{.file = hostile ? "</title>&\"'.py" : "model.py",
		 .function =
			 hostile ? "</script><script>window.broken = 1</script>" : "Net.forward",
		 .line = 12},
		{.file = "train.py", .function = "step", .line = 42},
		{.kind = RECORDING_FRAME_NATIVE,
		 .module = "/usr/lib/libtorch_cpu.so",
		 .build_id = "0123456789abcdef",
		 .function = hostile ? "<b>;\x1b[2J" : "at::native::add(at::Tensor const&)",
		 .address = 0x1234},
		{.kind = RECORDING_FRAME_NATIVE,
		 .module = "/usr/lib/libtorch_cpu.so",
		 .build_id = "0123456789abcdef",
		 .function = "at::_ops::addmm::call",
		 .file = "Operators_2.cpp",
		 .line = 33,
		 .address = 0x5678},
		{.kind = RECORDING_FRAME_NATIVE,
		 .module = "/usr/lib/libgomp.so.1",
		 .address = 0xdead0},
		{.kind = RECORDING_FRAME_KERNEL,
		 .module = "[kernel]",
		 .function = "do_syscall_64",
		 .address = 0xffffffff81000000},
	};

	for (uint32_t i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
		struct recording_frame f = frames[i];

		f.file = f.file ? f.file : "";
		f.function = f.function ? f.function : "";
		f.module = f.module ? f.module : "";
		f.build_id = f.build_id ? f.build_id : "";
		must(recording_writer__frame(w, i + 1, &f));
	}
}

static void add_stacks(struct recording_writer *w)
{
	must(recording_writer__stack(w, 1, 0, (uint32_t[]){3, 2, 1}, 3));
	must(recording_writer__stack(w, 2, 0, (uint32_t[]){4, 1}, 2));
	must(recording_writer__stack(w, 3, 0, (uint32_t[]){5, 6, 3, 2, 1}, 5));
	must(recording_writer__stack(w, 4, GP_STACK_INCOMPLETE, (uint32_t[]){8, 7, 5}, 3));
	must(recording_writer__stack(w, 5, GP_STACK_TRUNCATED, (uint32_t[]){2, 1}, 2));
}

/* ---- events ---- */

struct example_op {
	uint32_t name, tid;
	uint64_t number, parent;
	uint64_t from_us, to_us;
	int64_t sequence_nr;
	uint64_t forward_thread;
	uint32_t scope, stack_id;
};

/* Children before parents. Own times in us: addmm 1590, linear 400, relu 500, version 0 (its 100
 * are relu's), mm 1000, evaluate 2000, zero 300, step 300; and the call's 10. */
static const struct example_op ops[] = {
	{ADDMM, MAIN, 2, 1, 1200, 2800, 5, 0, GP_SCOPE_FUNCTION, 3},
	{LINEAR, MAIN, 1, 0, 1000, 3000, 5, 0, GP_SCOPE_FUNCTION, 1},
	{VERSION, MAIN, 4, 3, 3200, 3300, -1, 0, GP_SCOPE_FUNCTION, 5},
	{RELU, MAIN, 3, 0, 3000, 3500, 6, 0, GP_SCOPE_FUNCTION, 5},
	{MM, AUTOGRAD, 2, 1, 5500, 6500, -1, 0, GP_SCOPE_FUNCTION, 2},
	{EVALUATE, AUTOGRAD, 1, 0, 5000, 8000, 5, 1, GP_SCOPE_BACKWARD, 2},
	{MM, AUTOGRAD, 3, 0, 8000, 8000, -1, 0, GP_SCOPE_FUNCTION, 4},
	{ZERO, MAIN, 6, 5, 8100, 8400, -1, 0, GP_SCOPE_FUNCTION, 0},
	{ISSUE, MAIN, 5, 0, 8100, 8700, -1, 0, GP_SCOPE_USER, 2},
};

static uint64_t instance_of(uint32_t tid, uint64_t number)
{
	return number ? tid / 100 * T + number : 0;
}

static void add_op(struct recording_writer *w, const struct example_op *o)
{
	struct gp_ev_op op = {
		.head = {.kind = GP_EV_OP, .tid = o->tid, .time_ns = o->to_us * 1000},
		.start_ns = o->from_us * 1000,
		.instance = instance_of(o->tid, o->number),
		.parent = instance_of(o->tid, o->parent),
		.sequence_nr = o->sequence_nr,
		.forward_thread = o->forward_thread,
		.name_id = o->name,
		.stack_id = o->stack_id,
		.scope = o->scope,
		.thread_number = o->tid / 100,
	};

	must(recording_writer__event(w, &op, sizeof(op)));
}

static void add_memory(struct recording_writer *w, uint64_t time_us, uint64_t instance,
		       uint64_t address, int64_t bytes, int16_t device, uint32_t stack_id)
{
	struct gp_ev_memory m = {
		.head = {.kind = GP_EV_MEMORY,
			 .flags = bytes ? 0 : GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN,
			 .tid = instance >> 32 == 2 ? AUTOGRAD : MAIN,
			 .time_ns = time_us * 1000},
		.instance = instance,
		.address = address,
		.bytes = bytes,
		.device_type = device,
		.device_index = device == GP_DEVICE_CPU ? -1 : 0,
		.stack_id = stack_id,
	};

	must(recording_writer__event(w, &m, sizeof(m)));
}

/* Bytes at the peaks: on the CPU those of addmm and linear, not relu's; on the GPU mm's. */
static void add_memories(struct recording_writer *w)
{
	add_memory(w, 1300, T + 2, 0x1000, 4096, GP_DEVICE_CPU, 3);
	add_memory(w, 1100, T + 1, 0x2000, 2048, GP_DEVICE_CPU, 1);
	add_memory(w, 3050, T + 3, 0x2000, 0, GP_DEVICE_CPU, 5);
	add_memory(w, 3100, T + 3, 0x3000, 256, GP_DEVICE_CPU, 5);
	add_memory(w, 5600, 2 * T + 2, 0x1000, 20480, GP_DEVICE_CUDA, 2);
	add_memory(w, 8650, 0, 0x1000, 0, GP_DEVICE_CUDA, 0);
}

static void add_gpu(struct recording_writer *w)
{
	struct gp_ev_api api = {
		.head = {.kind = GP_EV_API, .flags = GP_API_CUPTI, .tid = MAIN, .time_ns = 2010000},
		.start_ns = 2000000,
		.name_id = LAUNCH,
		.cbid = 211,
		.correlation_id = 1,
	};
	struct gp_ev_kernel kernel = {
		.head = {.kind = GP_EV_KERNEL, .time_ns = 4500000},
		.start_ns = 2500000,
		.correlation_id = 1,
		.name_id = SGEMM,
		.context = 1,
		.stream = 7,
	};

	must(recording_writer__event(w, &api, sizeof(api)));
	must(recording_writer__event(w, &kernel, sizeof(kernel)));
	/* Its call is not known. */
	kernel.correlation_id = 99;
	kernel.start_ns = 4600000;
	kernel.head.time_ns = 5200000;
	must(recording_writer__event(w, &kernel, sizeof(kernel)));
}

static void add_thread(struct recording_writer *w, uint32_t tid, const char *comm)
{
	struct gp_ev_thread ev = {.head = {.kind = GP_EV_THREAD, .tid = tid}};

	memcpy(ev.comm, comm, strnlen(comm, sizeof(ev.comm)));
	must(recording_writer__event(w, &ev, sizeof(ev)));
}

static struct recording_writer *begin(const char *path, const char *comm)
{
	const struct recording_process p = {.pid = 4242,
					    .rank = -1,
					    .world_size = -1,
					    .comm = comm,
					    .cmdline = "python train.py"};
	struct recording_writer *w = NULL;
	struct reason why;

	must(recording_writer__new(path, &why, &w));
	must(recording_writer__meta(w, "stacks", "python"));
	must(recording_writer__meta(w, "memory", "1"));
	must(recording_writer__process(w, &p));
	must(recording_writer__window(w, 1, STACK_EXAMPLE_WINDOW_NS + 1, STACK_EXAMPLE_REALTIME));
	must(recording_writer__loss(w, "ring_full", 3));
	return w;
}

static void end(struct stack_example *e, struct recording_writer *w, const char *path)
{
	struct reason why = {0};

	must(recording_writer__finish(w));
	recording_writer__free(w);
	must(recording__open(path, &why, &e->recording));
	must(timeline__new(e->recording, &why, &e->timeline));
}

void stack_example__open(struct stack_example *e, const char *path, bool hostile)
{
	struct recording_writer *w = begin(path, hostile ? "</title><b>" : "python");

	add_names(w, hostile);
	add_frames(w, hostile);
	add_stacks(w);
	add_thread(w, MAIN, hostile ? "<i>&" : "python");
	add_thread(w, AUTOGRAD, "pt_autograd_0");
	add_memories(w);
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		add_op(w, &ops[i]);
	add_gpu(w);
	end(e, w, path);
}

void stack_example__open_large(struct stack_example *e, const char *path, uint32_t nr,
			       uint32_t depth)
{
	struct recording_writer *w = begin(path, "python");
	uint32_t *frames = calloc(depth, sizeof(*frames));

	must(frames ? 0 : -ENOMEM);
	add_names(w, false);
	for (uint32_t i = 0; i < nr; i++) {
		struct recording_frame f = {.file = "large.py",
					    .function = "f",
					    .line = i + 1,
					    .module = "",
					    .build_id = ""};
		struct example_op op = {
			MM, MAIN, i + 1, 0, 10 + i, 10 + i, -1, 0, GP_SCOPE_FUNCTION, i + 1};

		/* Times count down, so that the first are the largest. */
		op.from_us = 100 + (uint64_t)i * nr;
		op.to_us = op.from_us + nr - i;
		must(recording_writer__frame(w, i + 1, &f));
		/* The outer half is that of a hundred others too. */
		for (uint32_t k = 0; k < depth; k++)
			frames[k] = (k < depth / 2 ? i * 7919 + k * k : i / 100 + k * 31) % nr + 1;
		frames[0] = i + 1;
		must(recording_writer__stack(w, i + 1, 0, frames, depth));
		add_op(w, &op);
	}
	free(frames);
	end(e, w, path);
}

void stack_example__close(struct stack_example *e)
{
	timeline__free(e->timeline);
	recording__free(e->recording);
	*e = (struct stack_example){0};
}
