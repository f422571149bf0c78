/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Timelines added up: the last one and the sum, by operator, kernel, line and thread; and that
 * names from a target neither grow it for ever nor reach a terminal as they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "output/summary/live_totals.h"

#define T (1ULL << 32)

static const struct totals_row *row_of(const struct live_totals *y, enum totals_view view,
				       const char *name)
{
	for (size_t i = 0; i < y->rows[view].nr; i++)
		if (!strcmp(y->rows[view].items[i].name, name))
			return &y->rows[view].items[i];
	fail_msg("no row '%s'", name);
	return NULL;
}

static void assert_value(const struct live_totals *y, enum totals_view view, const char *name,
			 enum totals_value value, uint64_t last, uint64_t sum)
{
	const struct totals_row *row = row_of(y, view, name);

	assert_int_equal(row->values[TOTALS_LAST][value], last);
	assert_int_equal(row->values[TOTALS_SUM][value], sum);
}

static void put_op(struct events *e, const char *name, uint64_t start_ns, uint64_t end_ns,
		   uint64_t instance, uint64_t parent, uint32_t stack_id)
{
	events__op(e, (struct event_op){.name = name,
					.start_ns = start_ns,
					.end_ns = end_ns,
					.instance = T + instance,
					.parent = parent ? T + parent : 0,
					.tid = 4242,
					.stack_id = stack_id});
}

static void add_all(struct live_totals *y, struct events *e)
{
	assert_int_equal(live_totals__add(y, events__timeline(e)), 0);
	events__free(e);
}

static void ops_last_and_in_all(void **state)
{
	struct live_totals *y = live_totals__new();
	struct events *e;

	for (int i = 0; i < 2; i++) {
		e = events__new();
		events__window(e, 10, 1010, 0);
		events__thread(e, 4242, "main");
		events__loss(e, "ring_full", 3);
		put_op(e, "f", 100, 400, 1, 0, 0);
		put_op(e, "g", 200, 300, 2, 1, 0);
		if (i)
			put_op(e, "g", 500, 550, 3, 0, 0);
		add_all(y, e);
	}
	assert_value(y, TOTALS_OPS, "f", TOTALS_SELF_CPU_NS, 200, 400);
	assert_value(y, TOTALS_OPS, "f", TOTALS_CPU_NS, 300, 600);
	assert_value(y, TOTALS_OPS, "g", TOTALS_CALLS, 2, 3);
	assert_value(y, TOTALS_OPS, "g", TOTALS_CPU_NS, 150, 250);
	assert_value(y, TOTALS_THREADS, "main", TOTALS_CPU_NS, 350, 650);
	assert_value(y, TOTALS_THREADS, "main", TOTALS_CALLS, 3, 5);
	assert_int_equal(row_of(y, TOTALS_THREADS, "main")->tid, 4242);
	assert_int_equal(y->wall_ns[TOTALS_LAST], 1000);
	assert_int_equal(y->wall_ns[TOTALS_SUM], 2000);
	assert_int_equal(live_totals__lost(y), 6);

	/* What does not happen any more is zero in the last interval. */
	e = events__new();
	events__window(e, 2000, 2500, 0);
	add_all(y, e);
	assert_value(y, TOTALS_OPS, "f", TOTALS_CALLS, 0, 2);
	assert_int_equal(live_totals__ran(y, 4242, 4242, "main", 77), 0);
	assert_value(y, TOTALS_THREADS, "main", TOTALS_RAN_NS, 77, 77);
	live_totals__reset(y);
	assert_value(y, TOTALS_OPS, "f", TOTALS_CALLS, 0, 0);
	assert_int_equal(y->wall_ns[TOTALS_SUM], 0);
	live_totals__free(y);
}

/* The innermost line has what is an operator's own; each line above has it once, however often it
 * stands there. */
static void lines_by_stack(void **state)
{
	const uint32_t deep[] = {1, 2, 3, 2}, shallow[] = {2, 3};
	struct live_totals *y = live_totals__new();
	struct events *e = events__new();

	events__window(e, 10, 1010, 0);
	events__meta(e, "stacks", "python");
	events__frame(e, 1, "m.py", "leaf", 11);
	events__frame(e, 2, "m.py", "again", 22);
	events__frame(e, 3, "m.py", "main", 33);
	events__stack(e, 7, deep, 4);
	events__stack(e, 8, shallow, 2);
	put_op(e, "f", 100, 200, 1, 0, 7);
	put_op(e, "g", 300, 330, 2, 0, 8);
	put_op(e, "h", 400, 405, 3, 0, 0);
	add_all(y, e);
	assert_value(y, TOTALS_LINES, "m.py:11 leaf", TOTALS_SELF_CPU_NS, 100, 100);
	assert_value(y, TOTALS_LINES, "m.py:11 leaf", TOTALS_CPU_NS, 100, 100);
	assert_value(y, TOTALS_LINES, "m.py:22 again", TOTALS_SELF_CPU_NS, 30, 30);
	assert_value(y, TOTALS_LINES, "m.py:22 again", TOTALS_CPU_NS, 130, 130);
	assert_value(y, TOTALS_LINES, "m.py:33 main", TOTALS_SELF_CPU_NS, 0, 0);
	assert_value(y, TOTALS_LINES, "m.py:33 main", TOTALS_CPU_NS, 130, 130);
	assert_value(y, TOTALS_LINES, "[no line of Python]", TOTALS_SELF_CPU_NS, 5, 5);
	assert_value(y, TOTALS_LINES, "m.py:22 again", TOTALS_CALLS, 1, 1);
	live_totals__free(y);
}

static void put_memory(struct events *e, uint64_t time_ns, uint64_t instance, uint64_t address,
		       int64_t bytes, int16_t device_type, uint64_t allocated)
{
	events__memory(e, (struct event_memory){.time_ns = time_ns,
						.instance = instance ? T + instance : 0,
						.address = address,
						.bytes = bytes,
						.flags = bytes < 0   ? GP_MEMORY_FREE
							 : allocated ? GP_MEMORY_TOTALS
								     : 0,
						.tid = 4242,
						.device_type = device_type,
						.allocated_bytes = allocated,
						.reserved_bytes = 2 * allocated});
}

static void memory_by_operator(void **state)
{
	struct live_totals *y = live_totals__new();
	struct events *e = events__new();

	events__window(e, 10, 1010, 0);
	put_op(e, "f", 100, 400, 1, 0, 0);
	put_memory(e, 110, 1, 1, 10, GP_DEVICE_CPU, 0);
	put_memory(e, 120, 1, 2, 20, GP_DEVICE_CPU, 0);
	put_memory(e, 130, 1, 1, -10, GP_DEVICE_CPU, 0);
	put_memory(e, 140, 1, 3, 300, GP_DEVICE_CUDA, 5000);
	put_memory(e, 500, 0, 4, 7, GP_DEVICE_CPU, 0);
	add_all(y, e);
	assert_value(y, TOTALS_MEMORY, "f", TOTALS_ALLOCATIONS, 3, 3);
	assert_value(y, TOTALS_MEMORY, "f", TOTALS_CPU_BYTES, 30, 30);
	assert_value(y, TOTALS_MEMORY, "f", TOTALS_CPU_KEPT_BYTES, 20, 20);
	assert_value(y, TOTALS_MEMORY, "f", TOTALS_CUDA_KEPT_BYTES, 300, 300);
	assert_value(y, TOTALS_MEMORY, "[no operator]", TOTALS_CPU_BYTES, 7, 7);
	assert_int_equal(y->devices.nr, 1);
	assert_int_equal(y->devices.items[0].allocated_bytes, 5000);
	assert_int_equal(y->devices.items[0].reserved_bytes, 10000);
	/* It is held until the allocator tells otherwise, or its process is gone. */
	e = events__new();
	events__window(e, 1000, 2000, 0);
	add_all(y, e);
	assert_int_equal(y->devices.items[0].allocated_bytes, 5000);
	live_totals__gone(y, 4242);
	assert_int_equal(y->devices.items[0].allocated_bytes, 0);
	live_totals__free(y);
}

static void put_kernel(struct events *e, const char *name, uint64_t start_ns, uint64_t end_ns,
		       uint32_t device, uint32_t stream)
{
	events__gpu(e, (struct event_gpu){.name = name,
					  .start_ns = start_ns,
					  .end_ns = end_ns,
					  .device = device,
					  .stream = stream});
}

static void a_gpu_is_busy_once(void **state)
{
	struct live_totals *y = live_totals__new();
	struct events *e = events__new();

	events__window(e, 10, 1010, 0);
	put_kernel(e, "k", 100, 300, 1, 7);
	put_kernel(e, "k", 200, 400, 1, 8);
	put_kernel(e, "j", 250, 260, 1, 9);
	put_kernel(e, "j", 250, 260, 0, 7);
	add_all(y, e);
	assert_value(y, TOTALS_KERNELS, "k", TOTALS_SELF_CUDA_NS, 400, 400);
	assert_value(y, TOTALS_KERNELS, "j", TOTALS_CALLS, 2, 2);
	assert_int_equal(y->devices.nr, 2);
	assert_int_equal(y->devices.items[0].device, 0);
	assert_int_equal(y->devices.items[0].busy_ns[TOTALS_LAST], 10);
	assert_int_equal(y->devices.items[1].busy_ns[TOTALS_SUM], 300);
	live_totals__free(y);
}

static void put_window(struct events *e, uint64_t start_ns, uint64_t end_ns)
{
	const struct gp_ev_window ev = {.head = {.kind = GP_EV_WINDOW, .time_ns = end_ns},
					.start_ns = start_ns};

	events__raw(e, &ev, sizeof(ev));
}

/* Samples with windows of GPU records: they stand for all of the interval; where there was none it
 * does not count. */
static void windows_of_a_gpu(void **state)
{
	struct live_totals *y = live_totals__new();
	struct events *e = events__new();

	events__meta(e, "gpu_windows", "1");
	events__window(e, 10, 1010, 0);
	put_window(e, 10, 260);
	put_kernel(e, "k", 100, 300, 0, 7);
	events__meta(e, "cost_cpu_ns", "9000");
	events__meta(e, "cost_callbacks_ns", "0");
	events__meta(e, "cost_gpu_ns", "40");
	events__meta(e, "cost_probes_ns", "0");
	events__meta(e, "cost_collector_ns", "2");
	events__meta(e, "cost_samples_ns", "300");
	events__meta(e, "cost_samples_around_ns", "150");
	add_all(y, e);
	assert_true(y->cost_ns[TOTALS_LAST] == 492 && !y->unknown_cost[TOTALS_LAST]);
	assert_value(y, TOTALS_KERNELS, "k", TOTALS_SELF_CUDA_NS, 800, 800);
	assert_value(y, TOTALS_KERNELS, "k", TOTALS_CALLS, 4, 4);
	assert_int_equal(y->devices.items[0].busy_ns[TOTALS_LAST], 800);
	assert_int_equal(y->gpu_wall_ns[TOTALS_LAST], 1000);
	e = events__new();
	events__meta(e, "gpu_windows", "1");
	events__window(e, 1010, 5010, 0);
	put_window(e, 5010, 5010);
	add_all(y, e);
	assert_int_equal(y->wall_ns[TOTALS_SUM], 5000);
	assert_int_equal(y->gpu_wall_ns[TOTALS_SUM], 1000);
	assert_int_equal(y->gpu_wall_ns[TOTALS_LAST], 0);
	live_totals__free(y);
}

static void hostile_names(void **state)
{
	struct live_totals *y = live_totals__new();
	struct events *e = events__new();
	char name[32];

	events__window(e, 0, 1ULL << 40, 0);
	for (uint64_t i = 0; i < TOTALS_ROWS_MAX + 10; i++) {
		(void)snprintf(name, sizeof(name), "op%llu", (unsigned long long)i);
		put_op(e, name, 100 + 10 * i, 105 + 10 * i, 1 + i, 0, 0);
	}
	add_all(y, e);
	assert_int_equal(y->rows[TOTALS_OPS].nr, TOTALS_ROWS_MAX + 1);
	assert_value(y, TOTALS_OPS, TOTALS_OTHERS, TOTALS_CALLS, 10, 10);
	live_totals__free(y);

	y = live_totals__new();
	e = events__new();
	events__window(e, 10, 1010, 0);
	put_op(e, "a\x1b[2J\nb\xff", 100, 200, 1, 0, 0);
	add_all(y, e);
	assert_value(y, TOTALS_OPS, "a?[2J?b\xef\xbf\xbd", TOTALS_CALLS, 1, 1);
	live_totals__free(y);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ops_last_and_in_all), cmocka_unit_test(lines_by_stack),
		cmocka_unit_test(memory_by_operator),  cmocka_unit_test(a_gpu_is_busy_once),
		cmocka_unit_test(windows_of_a_gpu),    cmocka_unit_test(hostile_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
