/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What recordings add up to: counters that only grow, a bounded number of series, steps from one
 * recording to the next; and what of it Prometheus is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/totals.h"
#include "events.h"

#define SECOND_NS 1000000000ULL

static void add(struct totals *t, struct events *e, uint64_t capture_nr)
{
	struct totals_part part = {.events_nr = 10, .capture_nr = capture_nr, .now_ns = SECOND_NS};

	assert_int_equal(totals__add(t, events__timeline(e), &part), 0);
	events__free(e);
}

static char *text_of(const struct totals *t)
{
	struct buf out = {0};

	totals__text(t, &out);
	assert_int_equal(buf__error(&out), 0);
	return out.bytes;
}

static void assert_line(const struct totals *t, const char *line)
{
	char *text = text_of(t), *whole = NULL;

	assert_true(asprintf(&whole, "\n%s\n", line) > 0);
	if (!strstr(text, whole))
		fail_msg("no line '%s' in\n%s", line, text);
	free(whole);
	free(text);
}

static struct events *one_op(const char *name, uint64_t ns)
{
	struct events *e = events__new();

	events__op(e, (struct event_op){
			      .name = name, .start_ns = 1000, .end_ns = 1000 + ns, .instance = 1});
	return e;
}

static void test_adds_up(void **state)
{
	struct totals t = {0};
	struct events *e;

	add(&t, one_op("aten::mm", 5), 1);
	add(&t, one_op("aten::mm", 7), 1);
	e = events__new();
	events__process(e, 1, 77, "other one");
	events__op(e, (struct event_op){.name = "aten::mm",
					.start_ns = 1,
					.end_ns = 4,
					.instance = 1,
					.process = 1,
					.tid = 9});
	events__loss(e, "ring_full", 3);
	add(&t, e, 1);
	assert_line(&t,
		    "gpuprof_op_calls_total{pid=\"4242\",process=\"python\",op=\"aten::mm\"} 2");
	assert_line(&t, "gpuprof_op_cpu_seconds_total{pid=\"4242\",process=\"python\","
			"op=\"aten::mm\"} 0.000000012");
	assert_line(&t, "gpuprof_op_cpu_seconds_total{pid=\"77\",process=\"other one\","
			"op=\"aten::mm\"} 0.000000003");
	assert_line(&t, "gpuprof_losses_total{loss=\"ring_full\"} 3");
	assert_line(&t, "gpuprof_recordings_total 3");
	assert_line(&t, "gpuprof_events_total 30");
	totals__done(&t);
}

/* Nothing that was estimated is under a name of what is measured. */
static void test_samples(void **state)
{
	const uint32_t frames[] = {1}, outside[] = {2};
	/* In mm, in no operator, and one that may be in one. */
	const uint32_t stacks[] = {1, 1, 1, 2, 0, 3};
	struct totals t = {0};
	struct events *e = events__new();
	char *text;

	events__meta(e, "mode", "sample");
	events__native_frame(e, 1, "/libtorch_cpu.so", "at::_ops::mm::call", "aten::mm", 0);
	events__native_frame(e, 2, "/python3", "PyEval_EvalCode", NULL, 0);
	events__stack(e, 1, frames, 1);
	events__stack(e, 2, outside, 1);
	events__stack_flags(e, 3, GP_STACK_INCOMPLETE, outside, 1);
	for (uint64_t i = 0; i < 6; i++)
		events__sample(e, (struct event_sample){.start_ns = 1000 * (i + 1),
							.weight_ns = 10,
							.stack_id = stacks[i],
							.syscall = GP_SAMPLE_NO_SYSCALL,
							.flags = i ? GP_SAMPLE_RUNNING : 0});
	add(&t, e, 1);
	assert_line(&t, "gpuprof_op_cpu_estimated_seconds_total{pid=\"4242\","
			"process=\"python\",op=\"aten::mm\"} 0.000000020");
	assert_line(&t, "gpuprof_op_off_cpu_estimated_seconds_total{pid=\"4242\","
			"process=\"python\",op=\"aten::mm\"} 0.000000010");
	assert_line(&t, "gpuprof_op_samples_total{pid=\"4242\",process=\"python\","
			"op=\"aten::mm\"} 2");
	assert_line(&t, "gpuprof_op_samples_total{pid=\"4242\",process=\"python\","
			"op=\"[no operator]\"} 1");
	assert_line(&t, "gpuprof_op_samples_total{pid=\"4242\",process=\"python\","
			"op=\"[not known]\"} 2");
	text = text_of(&t);
	assert_null(strstr(text, "gpuprof_op_cpu_seconds_total"));
	assert_null(strstr(text, "gpuprof_op_calls_total"));
	assert_null(strstr(text, "gpuprof_step_duration"));
	free(text);
	totals__done(&t);
}

/* So many names as nobody foresaw: the ones that take longest have series, and nothing is lost. */
static void test_bounded(void **state)
{
	struct totals t = {0};
	uint64_t calls = 0, ns = 0;
	char name[32];

	for (int part = 0; part < 3; part++) {
		struct events *e = events__new();

		for (uint64_t i = 0; i < 200; i++) {
			(void)snprintf(name, sizeof(name), "op%d_%d", part, (int)i);
			events__op(e, (struct event_op){.name = name,
							.start_ns = 1000 * i,
							.end_ns = 1001 * i + 1,
							.instance = i + 1});
			ns += i + 1;
		}
		add(&t, e, 1);
	}
	assert_int_equal(t.processes.nr, 1);
	assert_int_equal(t.processes.items[0]->ops.nr, TOTALS_OPS);
	for (size_t i = 0; i < TOTALS_OPS; i++) {
		calls += t.processes.items[0]->ops.items[i].calls;
		ns -= t.processes.items[0]->ops.items[i].cpu_ns;
		assert_true(strncmp(t.processes.items[0]->ops.items[i].name, "op0_", 4) == 0);
	}
	assert_int_equal(calls + t.processes.items[0]->other.calls, 600);
	assert_int_equal(t.processes.items[0]->other.cpu_ns, ns);
	assert_string_equal(t.processes.items[0]->ops.items[0].name, "op0_199");

	/* Who is not seen for long makes room. */
	for (int part = 0; part < 61; part++)
		add(&t, one_op("op0_199", 5), 1);
	add(&t, one_op("newcomer", 5), 1);
	assert_int_equal(t.processes.items[0]->ops.nr, TOTALS_OPS);
	assert_line(&t, "gpuprof_op_calls_total{pid=\"4242\",process=\"python\",op=\"newcomer\"} "
			"1");
	totals__done(&t);
}

/* Two series of one name would make Prometheus refuse them all. */
static void test_hostile_names(void **state)
{
	static const char *const names[] = {"a\"b\\c\nd", "\xff\xfe", "\xff\xfd", "other", ""};
	struct totals t = {0};
	char *text, *first;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct events *e = one_op(names[i], 1);

		events__process(e, 0, 4242, "x\"}\n\\");
		add(&t, e, 1);
	}
	assert_line(&t, "gpuprof_op_calls_total{pid=\"4242\",process=\"x\\\"}?\\\\\","
			"op=\"a\\\"b\\\\c?d\"} 1");
	assert_line(&t, "gpuprof_op_calls_total{pid=\"4242\",process=\"x\\\"}?\\\\\","
			"op=\"\xef\xbf\xbd\xef\xbf\xbd\"} 2");
	assert_line(&t, "gpuprof_op_calls_total{pid=\"4242\",process=\"x\\\"}?\\\\\",op=\"other\"} "
			"1");
	text = text_of(&t);
	first = strstr(text, "op=\"other\"} 1\n");
	assert_non_null(first);
	assert_null(strstr(first + 1, "op=\"other\"} 1\n"));
	free(text);
	totals__done(&t);
}

static struct events *steps(const uint64_t *ends, size_t nr, const char *name)
{
	struct events *e = events__new();

	for (size_t i = 0; i < nr; i++)
		events__op(e, (struct event_op){.name = name,
						.start_ns = ends[i] - 1000,
						.end_ns = ends[i],
						.instance = i + 1,
						.scope = GP_SCOPE_USER});
	return e;
}

/* An optimizer's steps are counted across the border of recordings, also where each holds one end
 * of a step alone. */
static void test_steps(void **state)
{
	static const char sgd[] = "Optimizer.step#SGD.step";
	const uint64_t s = SECOND_NS;
	struct totals t = {0};

	add(&t, steps((uint64_t[]){1 * s, 2 * s, 3 * s}, 3, sgd), 1);
	add(&t, steps((uint64_t[]){5 * s, 6 * s}, 2, sgd), 1);
	add(&t, steps((uint64_t[]){16 * s}, 1, sgd), 1);
	add(&t, steps(NULL, 0, sgd), 1);
	add(&t, steps((uint64_t[]){36 * s}, 1, sgd), 1);
	assert_line(&t, "gpuprof_step_duration_seconds_count{pid=\"4242\",process=\"python\"} 6");
	assert_line(&t, "gpuprof_step_duration_seconds_sum{pid=\"4242\",process=\"python\"} "
			"35.000000000");
	assert_line(&t, "gpuprof_step_duration_seconds_bucket{pid=\"4242\",process=\"python\","
			"le=\"1\"} 3");
	assert_line(&t, "gpuprof_step_duration_seconds_bucket{pid=\"4242\",process=\"python\","
			"le=\"2.5\"} 4");
	assert_line(&t, "gpuprof_step_duration_seconds_bucket{pid=\"4242\",process=\"python\","
			"le=\"+Inf\"} 6");
	/* Another capture: what was between is not known. */
	add(&t, steps((uint64_t[]){99 * s}, 1, sgd), 2);
	assert_line(&t, "gpuprof_step_duration_seconds_count{pid=\"4242\",process=\"python\"} 6");
	totals__done(&t);
}

static struct events *memory(int64_t bytes, uint64_t allocator)
{
	struct events *e = events__new();

	events__memory(
		e, (struct event_memory){.time_ns = 5,
					 .address = 0x1000,
					 .bytes = bytes,
					 .flags = (uint8_t)(bytes < 0 ? GP_MEMORY_FREE : 0) |
						  (allocator ? GP_MEMORY_TOTALS : 0),
					 .device_type = allocator ? GP_DEVICE_CUDA : GP_DEVICE_CPU,
					 .allocated_bytes = allocator,
					 .reserved_bytes = 2 * allocator});
	return e;
}

static void test_memory(void **state)
{
	struct totals t = {0};

	add(&t, memory(100, 0), 1);
	add(&t, memory(-40, 0), 1);
	add(&t, memory(10, 7000), 1);
	assert_line(&t, "gpuprof_memory_allocated_bytes_total{pid=\"4242\",process=\"python\","
			"device=\"cpu\"} 100");
	assert_line(&t, "gpuprof_memory_held_bytes{pid=\"4242\",process=\"python\",device=\"cpu\"} "
			"60");
	assert_line(&t, "gpuprof_allocator_reserved_bytes{pid=\"4242\",process=\"python\","
			"device=\"cuda:0\"} 14000");
	totals__done(&t);
}

static void test_gpu(void **state)
{
	struct totals t = {0};
	struct events *e = events__new();

	events__gpu(e, (struct event_gpu){.name = "k",
					  .start_ns = 100,
					  .end_ns = 200,
					  .correlation_id = 1,
					  .kind = TL_GPU_KERNEL});
	events__gpu(e, (struct event_gpu){.name = "k",
					  .start_ns = 150,
					  .end_ns = 300,
					  .correlation_id = 2,
					  .stream = 7,
					  .kind = TL_GPU_KERNEL});
	add(&t, e, 1);
	assert_line(&t, "gpuprof_gpu_kernels_total{pid=\"4242\",process=\"python\","
			"device=\"cuda:0\"} 2");
	assert_line(&t, "gpuprof_gpu_busy_seconds_total{pid=\"4242\",process=\"python\","
			"device=\"cuda:0\"} 0.000000200");
	totals__done(&t);
}

/* Of samples within a budget: windows stand for all, and time without one is told. */
static void test_gpu_windows(void **state)
{
	struct totals t = {0};
	struct events *e;

	for (int round = 0; round < 2; round++) {
		const struct gp_ev_window ev = {
			.head = {.kind = GP_EV_WINDOW, .time_ns = round ? 1000 : 500},
			.start_ns = round ? 1000 : 250,
		};

		e = events__new();
		events__meta(e, "gpu_windows", "1");
		events__window(e, 1, 1001, 0);
		events__raw(e, &ev, sizeof(ev));
		events__gpu(e, (struct event_gpu){.name = "kernel",
						  .start_ns = 300,
						  .end_ns = 400,
						  .correlation_id = 1,
						  .stream = 7,
						  .kind = TL_GPU_KERNEL});
		add(&t, e, 1);
	}
	assert_line(&t, "gpuprof_gpu_kernels_total{pid=\"4242\",process=\"python\","
			"device=\"cuda:0\"} 4");
	assert_line(&t, "gpuprof_gpu_busy_seconds_total{pid=\"4242\",process=\"python\","
			"device=\"cuda:0\"} 0.000000400");
	assert_line(&t, "gpuprof_gpu_unseen_seconds_total 0.000001000");
	totals__done(&t);
}

/* What has ended is told for some minutes, and then no more. */
static void test_forgets(void **state)
{
	struct totals t = {0};
	struct totals_part later = {.capture_nr = 1, .now_ns = 3600 * SECOND_NS};
	struct events *e = events__new();

	add(&t, one_op("aten::mm", 5), 1);
	events__process(e, 0, 4243, "next");
	assert_int_equal(totals__add(&t, events__timeline(e), &later), 0);
	events__free(e);
	assert_int_equal(t.processes.nr, 1);
	assert_int_equal(t.processes.items[0]->pid, 4243);
	totals__done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adds_up),	      cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_hostile_names), cmocka_unit_test(test_steps),
		cmocka_unit_test(test_memory),	      cmocka_unit_test(test_gpu),
		cmocka_unit_test(test_gpu_windows),   cmocka_unit_test(test_forgets),
		cmocka_unit_test(test_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
