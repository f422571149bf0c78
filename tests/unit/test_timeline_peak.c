/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Peaks of GPUs against NVIDIA's data sheets, and what ops did of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "timeline/analysis/peak.h"

static const struct gp_ev_device a100 = {.major = 8, .minor = 0, .sms = 108, .clock_khz = 1410000};

static void check(double value, double wanted)
{
	assert_true(value > 0.998 * wanted && value < 1.002 * wanted);
}

static void test_data_sheets(void **state)
{
	const struct gp_ev_device v100 = {.major = 7, .minor = 0, .sms = 80, .clock_khz = 1530000};
	const struct gp_ev_device h100 = {.major = 9, .minor = 0, .sms = 132, .clock_khz = 1830000};

	check(peak_of(&a100).single, 19.5e12);
	check(peak_of(&a100).matrix16, 312e12);
	check(peak_of(&v100).single, 15.67e12);
	check(peak_of(&v100).matrix16, 125.3e12);
	check(peak_of(&h100).matrix16, 989.4e12);
}

static void test_what_is_not_known(void **state)
{
	struct gp_ev_device other = a100;

	other.clock_khz = 0;
	assert_true(peak_of(&other).single == 0);
	other = a100;
	other.minor = 1;
	assert_true(peak_of(&other).single == 0 && peak_of(&other).matrix16 == 0);
}

/* A range around an operator that calls another one on the GPU, and one on the CPU. */
static void test_what_ops_did(void **state)
{
	struct tl_op ops[] = {
		{.parent = TL_NONE},
		{.parent = 0},
		{.parent = 1},
		{.parent = 0},
	};
	struct tl_op_sums sums[] = {
		{.all_flops = 700, .cuda_ns = 5},
		{.all_flops = 500, .cuda_ns = 5},
		{.all_flops = 500, .cuda_ns = 5},
		{.all_flops = 200},
	};
	struct tl_gpu_use devices[] = {{.process = 0, .device = 0}, {.process = 1, .device = 0}};
	struct tl_device described[] = {{.process = 0, .reported = a100},
					{.process = 1, .reported = a100}};
	struct timeline t = {.start_ns = 1000, .end_ns = 4000, .paused_ns = 1000};
	struct gpu_flops f;

	t.ops.items = ops;
	t.op_sums.items = sums;
	t.ops.nr = t.op_sums.nr = 4;
	t.gpu.devices.items = devices;
	t.gpu.described.items = described;
	t.gpu.described.nr = 2;
	t.gpu.devices.nr = 1;
	assert_int_equal(gpu_flops_find(&t, &f), 0);
	assert_int_equal(f.flops, 500);
	check(f.per_s, 0.25e9);
	check(f.peak.single, 19.5e12);
	/* Two processes on it: or on two machines? */
	t.gpu.devices.nr = 2;
	assert_int_equal(gpu_flops_find(&t, &f), 0);
	assert_true(f.peak.single == 0 && f.peak.matrix16 == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_sheets),
		cmocka_unit_test(test_what_is_not_known),
		cmocka_unit_test(test_what_ops_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
