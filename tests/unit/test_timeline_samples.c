/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Samples into rows: operators from the frames of their stacks, lines, functions, what was waited
 * for, and how sure the numbers are.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "output/format/output.h"
#include "timeline/analysis/sample_table.h"

#define PERIOD 10000000ULL
#define TORCH  "/usr/lib/libtorch_cpu.so"

enum { LINE = 1, SPLIT = 2, LINEAR = 3, LINEAR_AGAIN = 4, ADDMM = 5, GEMM = 6, CUDA = 7 };
enum { IN_GEMM = 1, IN_PYTHON = 2, IN_LINEAR = 3, CUT = 4, IN_CUDA = 5 };

static int setup(void **state)
{
	struct events *e = events__new();
	const uint32_t gemm[] = {GEMM, ADDMM, LINEAR_AGAIN, LINEAR, LINE, SPLIT};
	const uint32_t cut[] = {GEMM}, cuda[] = {CUDA, LINE};

	events__meta(e, "mode", "sample");
	events__meta(e, "machine", "x86_64");
	events__frame(e, LINE, "/a.py", "forward", 7);
	events__frame(e, SPLIT, "/a.py", "main", 30);
	events__native_frame(e, LINEAR, TORCH, "at::_ops::linear::call", "aten::linear", 0);
	events__native_frame(e, LINEAR_AGAIN, TORCH, "at::_ops::linear::redispatch", "aten::linear",
			     0);
	events__native_frame(e, ADDMM, TORCH, "at::_ops::addmm::call", "aten::addmm", 0);
	events__native_frame(e, GEMM, "/usr/lib/libblas.so", "sgemm_kernel", NULL, 0);
	events__native_frame(e, CUDA, "/usr/lib/libcuda.so.1", "cuStreamSynchronize", NULL, 0);
	events__stack(e, IN_GEMM, gemm, 6);
	events__stack(e, IN_PYTHON, gemm + 4, 2);
	events__stack(e, IN_LINEAR, gemm + 3, 3);
	events__stack_flags(e, CUT, GP_STACK_INCOMPLETE, cut, 1);
	events__stack(e, IN_CUDA, cuda, 2);
	events__thread(e, 100, "main");
	*state = e;
	return 0;
}

static void standing_for(struct events *e, uint64_t at, uint32_t stack, uint64_t weight_ns)
{
	events__sample(e, (struct event_sample){.start_ns = at,
						.weight_ns = weight_ns,
						.stack_id = stack,
						.syscall = GP_SAMPLE_NO_SYSCALL,
						.flags = GP_SAMPLE_RUNNING});
}

static void running(struct events *e, uint64_t at, uint32_t stack)
{
	standing_for(e, at, stack, PERIOD);
}

/* 4 in the product, 2 in Python, 1 in linear itself, 1 nowhere, 2 cut; and a wait. */
static void fill(struct events *e)
{
	const uint32_t stacks[] = {IN_GEMM, IN_GEMM, IN_PYTHON, IN_GEMM, IN_LINEAR,
				   0,	    CUT,     IN_PYTHON, IN_GEMM, CUT};

	for (size_t i = 0; i < 10; i++)
		running(e, 1000 + i * PERIOD, stacks[i]);
	events__sample(e, (struct event_sample){.start_ns = 2000,
						.end_ns = 2000 + 29 * PERIOD,
						.weight_ns = 30 * PERIOD,
						.nr = 30,
						.tid = 101,
						.stack_id = IN_LINEAR,
						.syscall = 202});
}

static const struct sample_row *row(const struct sample_table *table, const char *name)
{
	for (size_t i = 0; i < table->rows.nr; i++)
		if (!strcmp(table->rows.items[i].name, name))
			return &table->rows.items[i];
	fail_msg("no row %s", name);
	return NULL;
}

static struct sample_table *table_by(const struct timeline *t, enum sample_group group)
{
	const struct sample_table_options options = {.group = group, .frames = 2};
	struct sample_table *table;

	assert_int_equal(sample_table__new(t, &options, &table), 0);
	return table;
}

static void expect(const struct sample_table *table, const char *name, uint64_t self,
		   uint64_t total, uint64_t off)
{
	const struct sample_row *r = row(table, name);

	assert_int_equal(r->self.nr, self);
	assert_int_equal(r->self.ns, self * PERIOD);
	assert_int_equal(r->total.nr, total);
	assert_int_equal(r->total.ns, total * PERIOD);
	assert_int_equal(r->off.nr, off);
	assert_int_equal(r->off.ns, off * PERIOD);
}

/* An operator that calls itself, or is on the stack by two of its functions, counts once. */
static void test_operators(void **state)
{
	const struct timeline *t;
	struct sample_table *table;

	fill(*state);
	t = events__timeline(*state);
	assert_true(t->sampled);
	table = table_by(t, SAMPLE_BY_OP);
	assert_int_equal(table->rows.nr, 4);
	expect(table, "aten::addmm", 4, 4, 0);
	expect(table, "aten::linear", 1, 5, 30);
	expect(table, "[no operator]", 2, 2, 0);
	expect(table, "[not known]", 3, 3, 0);
	assert_int_equal(row(table, "aten::linear")->waits_nr, 1);
	assert_int_equal(table->all.nr, 10);
	assert_string_equal(table->rows.items[0].name, "aten::addmm");
	assert_int_equal(loss_of(t, "sample_stackless"), 1);
	assert_int_equal(loss_of(t, "sample_stack_cut"), 2);
	sample_table__free(table);
}

/* Binomial, with one sample more on either side: of 10 samples 4. Never zero. */
static void test_errors(void **state)
{
	struct sample_table *table;
	double error;

	fill(*state);
	table = table_by(events__timeline(*state), SAMPLE_BY_OP);
	error = sqrt(10 * (5.0 / 12) * (7.0 / 12)) * (double)PERIOD;
	assert_true(fabs((double)row(table, "aten::addmm")->self.error_ns - error) < 2);
	error = sqrt(10 * (1.0 / 12) * (11.0 / 12)) * (double)PERIOD;
	for (size_t i = 0; i < table->rows.nr; i++)
		assert_true((double)table->rows.items[i].self.error_ns >= error - 2);
	assert_int_equal(row(table, "aten::linear")->off.error_ns, PERIOD);
	sample_table__free(table);
}

static void test_lines_and_functions(void **state)
{
	const struct timeline *t;
	struct sample_table *table;

	fill(*state);
	t = events__timeline(*state);
	table = table_by(t, SAMPLE_BY_LINE);
	expect(table, "/a.py(7): forward", 7, 7, 30);
	expect(table, "/a.py(30): main", 0, 7, 30);
	expect(table, "[not known]", 3, 3, 0);
	sample_table__free(table);
	table = table_by(t, SAMPLE_BY_FUNCTION);
	expect(table, "sgemm_kernel (libblas.so)", 6, 6, 0);
	expect(table, "/a.py: forward", 2, 7, 30);
	sample_table__free(table);
	table = table_by(t, SAMPLE_BY_THREAD);
	expect(table, "main (100)", 10, 10, 0);
	expect(table, " (101)", 0, 0, 30);
	sample_table__free(table);
	table = table_by(t, SAMPLE_BY_STACK);
	expect(table, "aten::addmm", 4, 4, 0);
	assert_int_equal(row(table, "aten::addmm")->stack_nr, 2);
	assert_int_equal(row(table, "aten::addmm")->stack[0], GEMM);
	sample_table__free(table);
}

static void wait_in(struct events *e, uint32_t syscall, uint8_t flags, uint32_t stack)
{
	events__sample(e, (struct event_sample){.start_ns = 1000,
						.weight_ns = PERIOD,
						.stack_id = stack,
						.syscall = syscall,
						.flags = flags});
}

static void test_activities(void **state)
{
	struct events *e = *state;
	struct sample_table *table;

	wait_in(e, 0, 0, IN_PYTHON);
	wait_in(e, 202, 0, IN_PYTHON);
	wait_in(e, 9999, 0, IN_PYTHON);
	wait_in(e, 202, 0, IN_CUDA);
	wait_in(e, GP_SAMPLE_NO_SYSCALL, GP_SAMPLE_UNINTERRUPTIBLE, IN_PYTHON);
	wait_in(e, 202, GP_SAMPLE_RUNNABLE, IN_PYTHON);
	wait_in(e, 1, GP_SAMPLE_RUNNING | GP_SAMPLE_KERNEL, IN_PYTHON);
	table = table_by(events__timeline(e), SAMPLE_BY_ACTIVITY);
	assert_int_equal(table->rows.nr, 7);
	expect(table, "waiting: read", 0, 0, 1);
	expect(table, "waiting: futex", 0, 0, 1);
	expect(table, "waiting: system call", 0, 0, 1);
	expect(table, "waiting: GPU", 0, 0, 1);
	expect(table, "waiting: page fault", 0, 0, 1);
	expect(table, "waiting for a CPU", 0, 0, 1);
	expect(table, "running in the kernel", 1, 1, 0);
	sample_table__free(table);
}

/* What cannot be is counted and left out. */
static void test_hostile(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	struct sample_table *table;

	running(e, 1000, 77);
	events__sample(e, (struct event_sample){.start_ns = 5000, .end_ns = 4000});
	events__sample(e, (struct event_sample){.start_ns = 1ULL << 62});
	events__sample(e, (struct event_sample){.start_ns = 1, .weight_ns = 1ULL << 60});
	events__sample(e, (struct event_sample){.start_ns = 1, .nr = 1U << 30});
	t = events__timeline(e);
	assert_int_equal(t->samples.nr, 1);
	assert_int_equal(loss_of(t, "time_invalid"), 4);
	assert_int_equal(loss_of(t, "sample_stackless"), 1);
	table = table_by(t, SAMPLE_BY_OP);
	expect(table, "[not known]", 1, 1, 0);
	sample_table__free(table);
}

/* The rate has changed: few samples that stand for much say less than many of the same time. */
static void test_unequal_weights(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	struct sample_table *table;
	const struct sample_row *few, *many;

	for (uint64_t i = 0; i < 100; i++)
		standing_for(e, 1000 + i * PERIOD, IN_GEMM, PERIOD);
	for (uint64_t i = 0; i < 4; i++)
		standing_for(e, 2000 + (100 + 25 * i) * PERIOD, IN_PYTHON, 25 * PERIOD);
	t = events__timeline(e);
	table = table_by(t, SAMPLE_BY_OP);
	many = row(table, "aten::addmm");
	few = row(table, "[no operator]");
	assert_int_equal(many->self.ns, 100 * PERIOD);
	assert_int_equal(few->self.ns, 100 * PERIOD);
	/* Squares of 100 ones and of 4 times 25; of the halves that either has, both are wrong by
	 * half of all of them, and by what one more of either kind would add. */
	assert_true(fabs((double)table->all.error_ns - sqrt(100 + 4 * 625) * PERIOD) <= 1);
	assert_true(fabs((double)few->self.error_ns - sqrt(2600 / 4.0) * PERIOD) <= 0.02 * PERIOD);
	assert_true(fabs((double)many->self.error_ns - sqrt(2600 / 4.0) * PERIOD) <= 0.02 * PERIOD);
	sample_table__free(table);
}

static void expect_text(struct sink *s, const char *part)
{
	size_t bytes;
	const char *text = sink__bytes(s, &bytes);

	assert_non_null(memmem(text, bytes, part, strlen(part)));
}

static void test_outputs(void **state)
{
	const struct output_table_options options = {.limit = -1, .time_unit = "ms"};
	const struct timeline *t;
	struct sample_table *table;
	struct sink *s;

	fill(*state);
	t = events__timeline(*state);
	table = table_by(t, SAMPLE_BY_OP);
	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_samples_text(s, table, &options), 0);
	expect_text(s, "  aten::addmm             4        40.00%      40.000ms      15.590ms");
	expect_text(s, "Estimated from 10 samples of threads on a CPU: 0.100 s of CPU time\n"
		       "That is few: record for longer, or with a larger --overhead or --hz\n");
	sink__free(s);
	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_samples_json(s, t, table, NULL, 1), 0);
	expect_text(s, "{\"name\": \"aten::addmm\", \"samples\": 4, \"self_samples\": 4, "
		       "\"self_cpu_us\": 40000.000, \"self_cpu_error_us\": 15590.");
	expect_text(s, "\"estimated\": true,\n  \"samples\": 10,\n  \"cpu_us\": 100000.000,");
	sink__free(s);
	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_samples_csv(s, table, -1), 0);
	expect_text(s, "name,samples,self_samples,self_cpu_us,self_cpu_error_us,cpu_total_us,"
		       "cpu_total_error_us,off_cpu_samples,waits,off_cpu_us,off_cpu_error_us\r\n"
		       "aten::addmm,4,4,40000.000,15590.");
	sink__free(s);
	sample_table__free(table);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_operators),	    CASE(test_errors),	CASE(test_lines_and_functions),
		CASE(test_activities),	    CASE(test_hostile), CASE(test_outputs),
		CASE(test_unequal_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
