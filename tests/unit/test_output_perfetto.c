/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Perfetto's trace: what a reader does with it. Slices nest, arrows have two ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "perfetto_reading.h"
#include "sample.h"
#include "stack_example.h"
#include "timeline/analysis/gpu_ranges.h"

static void test_slices(void **state)
{
	struct stack_example e;
	struct reading r = {0};
	const struct perfetto_slice *s;

	stack_example__open(&e, sample_path("perfetto.gpuprof"), false);
	reading__read(&r, e.timeline);
	/* Ops, a call, two kernels: the one that the table leaves out is here. */
	assert_int_equal(r.slices.nr, 9 + 1 + 2);
	s = reading__slice(&r, "aten::addmm", 0);
	assert_int_equal(s->start_ns, 1200000);
	assert_int_equal(s->end_ns, 2800000);
	assert_int_equal(s->depth, 1);
	assert_string_equal(s->category, "cpu_op");
	assert_string_equal(reading__track(&r, s->track)->thread->thread_name, "python");
	assert_int_equal(reading__track(&r, s->track)->thread->tid, 100);
	assert_string_equal(reading__text_arg(&r, s, "Call stack"),
			    "train.py(10): <module>;train.py(41): step;model.py(12): Net.forward;"
			    "Operators_2.cpp(33): at::_ops::addmm::call;"
			    "libtorch_cpu.so: at::native::add(at::Tensor const&)");
	s = reading__slice(&r, "cudaLaunchKernel", 0);
	assert_int_equal(s->depth, 2);
	assert_string_equal(s->category, "cuda_runtime");
	s = reading__slice(&r, "aten::mm", 0);
	assert_int_equal(s->depth, 1);
	assert_true(strlen(reading__text_arg(&r, s, "Forward call stack")) > 100);
	assert_string_equal(reading__text_arg(&r, s, "Call stack"), "");
	s = reading__slice(&r, "sgemm_128x64", 0);
	assert_string_equal(s->category, "kernel");
	assert_string_equal(reading__track(&r, s->track)->name, "stream 7");
	assert_string_equal(reading__track(&r, reading__track(&r, s->track)->parent_uuid)->name,
			    "GPU 0");
	assert_string_equal(reading__text_arg(&r, s, "op"), "aten::addmm");
	reading__done(&r);
	stack_example__close(&e);
}

/* From the launch to its kernel, from the forward op to the first backward op that ends. */
static void test_flows(void **state)
{
	struct stack_example e;
	struct reading r = {0};
	uint64_t launch, kernel;

	stack_example__open(&e, sample_path("perfetto.gpuprof"), false);
	reading__read(&r, e.timeline);
	assert_int_equal(r.flows_nr, 4);
	launch = reading__slice(&r, "cudaLaunchKernel", 0)->event->flow_ids[0];
	kernel = reading__slice(&r, "sgemm_128x64", 0)->event->flow_ids[0];
	assert_int_equal(launch, kernel);
	assert_int_equal(reading__slice(&r, "sgemm_128x64", 1)->event->n_flow_ids, 0);
	assert_int_equal(
		reading__slice(&r, "aten::addmm", 0)->event->flow_ids[0],
		reading__slice(&r, "autograd::engine::evaluate_function: AddmmBackward0", 0)
			->event->flow_ids[0]);
	reading__done(&r);
	stack_example__close(&e);
}

static void test_counters_and_losses(void **state)
{
	static const int64_t cpu[] = {2048, 6144, 4096, 4352}, cuda[] = {20480, 0};
	size_t cpu_nr = 0, cuda_nr = 0, losses = 0;
	struct stack_example e;
	struct reading r = {0};

	stack_example__open(&e, sample_path("perfetto.gpuprof"), false);
	reading__read(&r, e.timeline);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const Perfetto__TrackEvent *ev = r.trace->packet[i]->track_event;

		if (ev && ev->type == 3)
			losses += ev->n_debug_annotations;
		if (!ev || ev->type != 4)
			continue;
		assert_int_equal(reading__track(&r, ev->track_uuid)->counter->unit, 3);
		if (!strncmp(reading__track(&r, ev->track_uuid)->name, "cpu ", 4))
			assert_int_equal(ev->counter_value, cpu[cpu_nr++]);
		else
			assert_int_equal(ev->counter_value, cuda[cuda_nr++]);
	}
	assert_int_equal(cpu_nr, 4);
	assert_int_equal(cuda_nr, 2);
	assert_int_equal(losses, e.timeline->losses.nr);
	reading__done(&r);
	stack_example__close(&e);
}

/* Real nesting of the golden events, with async and empty ops among them. */
static void test_golden_events(void **state)
{
	static const char *const lists[] = {"table_events.tsv", "table_gpu_events.tsv"};

	for (size_t k = 0; k < 2; k++) {
		struct events *e = events__new();
		struct reading r = {0};
		const struct timeline *t;
		struct gpu_ranges ranges;
		size_t drawn = 0;

		golden_events(e, lists[k]);
		t = events__timeline(e);
		reading__read(&r, t);
		for (size_t i = 0; i < t->gpu.work.nr; i++)
			drawn += t->gpu.work.items[i].lane != TL_NONE;
		assert_int_equal(gpu_ranges__find(t, true, &ranges), 0);
		assert_int_equal(r.slices.nr, t->ops.nr + t->gpu.api.nr + drawn + ranges.items.nr);
		gpu_ranges__done(&ranges);
		for (size_t i = 0; i < r.slices.nr; i++)
			assert_int_not_equal(r.slices.items[i].end_ns, UINT64_MAX);
		reading__done(&r);
		events__free(e);
	}
}

static void module_call(struct events *e, const char *type, uint32_t depth, uint64_t first,
			uint64_t last, uint64_t start_ns, uint64_t end_ns)
{
	events__module_call(e, type,
			    &(struct gp_ev_module_call){.head.time_ns = end_ns,
							.start_ns = start_ns,
							.object = first + depth,
							.depth = depth,
							.first = 1ULL << 32 | first,
							.last = 1ULL << 32 | last});
}

/* A range around a module, one in it, and calls of CUDA before, in and after its operators. */
static void test_modules(void **state)
{
	static const struct {
		const char *name;
		uint64_t start_ns, end_ns;
		size_t depth;
	} wanted[] = {
		{"range", 10, 90, 0},
		{"nn.Module: Net_0", 20, 60, 1},
		{"nn.Module: Linear_0", 20, 40, 2},
		{"range in it", 20, 40, 3},
		{"op", 25, 35, 4},
		{"cudaMalloc", 45, 46, 2},
		{"op", 50, 60, 2},
		{"cudaFree", 70, 71, 1},
		{"op", 80, 85, 1},
	};
	const uint64_t t = 1ULL << 32;
	const struct event_op ops[] = {
		{.name = "range",
		 .start_ns = 10,
		 .end_ns = 90,
		 .instance = t + 1,
		 .scope = GP_SCOPE_USER},
		{.name = "range in it",
		 .start_ns = 20,
		 .end_ns = 40,
		 .instance = t + 2,
		 .parent = t + 1,
		 .scope = GP_SCOPE_USER},
		{.name = "op", .start_ns = 25, .end_ns = 35, .instance = t + 3, .parent = t + 2},
		{.name = "op", .start_ns = 50, .end_ns = 60, .instance = t + 4, .parent = t + 1},
		{.name = "op", .start_ns = 80, .end_ns = 85, .instance = t + 5, .parent = t + 1},
	};
	struct events *e = events__new();
	struct reading r = {0};

	for (size_t i = 0; i < 5; i++)
		events__op(e, ops[i]);
	events__api(e, (struct event_api){.name = "cudaMalloc", .start_ns = 45, .end_ns = 46});
	events__api(e, (struct event_api){.name = "cudaFree", .start_ns = 70, .end_ns = 71});
	module_call(e, "Linear", 1, 2, 3, 20, 40);
	module_call(e, "Net", 0, 2, 4, 20, 60);
	reading__read(&r, events__timeline(e));
	assert_int_equal(r.slices.nr, 9);
	for (size_t i = 0; i < r.slices.nr; i++) {
		assert_string_equal(r.slices.items[i].name, wanted[i].name);
		assert_int_equal(r.slices.items[i].start_ns, wanted[i].start_ns);
		assert_int_equal(r.slices.items[i].end_ns, wanted[i].end_ns);
		assert_int_equal(r.slices.items[i].depth, wanted[i].depth);
	}
	reading__done(&r);
	events__free(e);
}

static void test_hostile(void **state)
{
	struct stack_example e;
	struct reading r = {0};

	stack_example__open(&e, sample_path("perfetto.gpuprof"), true);
	reading__read(&r, e.timeline);
	assert_int_equal(r.slices.nr, 12);
	for (size_t i = 0; i < r.slices.nr; i++)
		assert_null(strpbrk(r.slices.items[i].name, "\n\t\x01\xff"));
	reading__done(&r);
	stack_example__close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_flows),
		cmocka_unit_test(test_counters_and_losses),
		cmocka_unit_test(test_golden_events),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
