/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Converting CUPTI's times with made-up readings: exact while the clocks run alike, within the
 * stated bound while one drifts, refused where one was set.
 */
#include "collector/cupti/cupti_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define S  1000000000ULL
#define MS 1000000ULL
#define T0 (5000 * S)
#define G0 (1700000000ULL * S)

static struct cupti_clock clock;

static bool add(uint64_t time_ns, uint64_t gpu_ns, uint64_t width_ns)
{
	const struct clock_reading reading = {time_ns, gpu_ns, width_ns};

	return cupti_clock__add(&clock, &reading);
}

static void expect(uint64_t gpu_ns, uint64_t time_ns)
{
	uint64_t ns = 0;

	assert_int_equal(cupti_clock__convert(&clock, gpu_ns, &ns), CLOCK_CONVERTED);
	assert_true(ns == time_ns);
}

static void expect_not(uint64_t gpu_ns, enum clock_result result)
{
	uint64_t ns = 0;

	assert_int_equal(cupti_clock__convert(&clock, gpu_ns, &ns), result);
	assert_true(ns == 0);
}

static void test_in_step(void **state)
{
	cupti_clock__init(&clock);
	expect_not(G0, CLOCK_UNSTEADY);
	for (uint64_t i = 0; i < 10; i++)
		assert_true(add(T0 + i * S, G0 + i * S, 100));
	for (uint64_t i = 0; i < 9 * S; i += 123456789)
		expect(G0 + i, T0 + i);
	expect(G0, T0);
	expect(G0 + 9 * S, T0 + 9 * S);
	expect_not(G0 - 1, CLOCK_EARLY);
	/* Converted a little beyond the last reading, but no further. */
	expect(G0 + 9 * S + MS, T0 + 9 * S + MS);
	expect_not(G0 + 9 * S + MS + 1, CLOCK_UNSTEADY);
}

/* A slow clock and a fast one: on the line between the readings, to the nanosecond. */
static void test_drift(void **state)
{
	static const int64_t ppm[] = {-900, -20, 1, 400, 900};

	for (size_t k = 0; k < sizeof(ppm) / sizeof(ppm[0]); k++) {
		cupti_clock__init(&clock);
		for (int64_t i = 0; i < 20; i++)
			assert_true(add(T0 + (uint64_t)i * S,
					G0 + (uint64_t)(i * (int64_t)S + i * ppm[k] * 1000), 80));
		for (int64_t i = 0; i < 19000; i++) {
			int64_t ms = i * (int64_t)MS;
			uint64_t ns = 0, gpu_ns = G0 + (uint64_t)(ms + i * ppm[k]);

			assert_int_equal(cupti_clock__convert(&clock, gpu_ns, &ns), 0);
			assert_in_range(ns - (T0 + (uint64_t)ms) + 2, 0, 4);
		}
	}
}

/* The error with readings that are off within their widths, and with uneven drift. gp_ev_clock
 * states the bound. */
static void test_bound(void **state)
{
	uint64_t offsets[51], widths[51], seed = 1;

	cupti_clock__init(&clock);
	for (uint64_t i = 0; i <= 50; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		widths[i] = 100 + (seed >> 40) % 5000;
		/* The true offset at each second, which drifts in one direction. */
		offsets[i] = 1000000 + (i % 10 < 5 ? i % 10 : 10 - i % 10) * 20000;
		assert_true(add(T0 + i * S + widths[i] / 2, G0 + i * S + offsets[i], widths[i]));
	}
	for (uint64_t i = 0; i < 50; i++) {
		for (uint64_t part = 0; part <= 100; part++) {
			/* The whole step at one moment is the worst case. */
			uint64_t offset = part < 37 ? offsets[i] : offsets[i + 1];
			uint64_t time_ns = T0 + i * S + part * (S / 100), ns = 0;
			int64_t moved = (int64_t)(widths[i + 1] / 2 - offsets[i + 1] -
						  widths[i] / 2 + offsets[i]);
			uint64_t bound = widths[i] > widths[i + 1] ? widths[i] : widths[i + 1];

			bound += (uint64_t)llabs(moved) + 1;
			if (cupti_clock__convert(&clock, time_ns - T0 + G0 + offset, &ns))
				fail_msg("second %d, %d %%", (int)i, (int)part);
			assert_true(llabs((int64_t)(ns - time_ns)) <= (int64_t)bound);
		}
	}
}

static void test_set_forward(void **state)
{
	cupti_clock__init(&clock);
	assert_true(add(T0, G0, 100));
	assert_true(add(T0 + S, G0 + S, 100));
	assert_false(add(T0 + 2 * S, G0 + 62 * S, 100));
	assert_true(add(T0 + 3 * S, G0 + 63 * S, 100));
	assert_true(add(T0 + 4 * S, G0 + 64 * S, 100));
	expect(G0 + S / 2, T0 + S / 2);
	/* Between the two readings, before or after the step: the times show which. */
	expect(G0 + S + 1, T0 + S + 1);
	expect(G0 + 2 * S, T0 + 2 * S);
	expect(G0 + 61 * S + 1, T0 + S + 1);
	expect(G0 + 62 * S, T0 + 2 * S);
	expect_not(G0 + 2 * S + 2 * MS, CLOCK_UNSTEADY);
	expect_not(G0 + 61 * S - 2 * MS, CLOCK_UNSTEADY);
	expect(G0 + 62 * S + S / 2, T0 + 2 * S + S / 2);
	expect(G0 + 64 * S, T0 + 4 * S);
	/* The clock never had such a time; times before the first reading are ambiguous now. */
	expect_not(G0 + 65 * S, CLOCK_UNSTEADY);
	expect_not(G0 - 1, CLOCK_UNSTEADY);
}

static void test_set_back(void **state)
{
	cupti_clock__init(&clock);
	assert_true(add(T0, G0, 100));
	assert_true(add(T0 + S, G0 + S, 100));
	/* 1000 s back. */
	assert_false(add(T0 + 2 * S, G0 - 998 * S, 100));
	assert_true(add(T0 + 3 * S, G0 - 997 * S, 100));
	expect(G0 - 997 * S - S / 2, T0 + 2 * S + S / 2);
	/* The clock never had such times before, and will not have them again soon. */
	expect(G0 + S + S / 2, T0 + S + S / 2);
	expect(G0 - 998 * S - S / 2, T0 + S + S / 2);
	/* Half a second back: a time that may mean two moments is not converted. */
	cupti_clock__init(&clock);
	assert_true(add(T0, G0, 100));
	assert_true(add(T0 + S, G0 + S, 100));
	assert_false(add(T0 + 2 * S, G0 + S + S / 2, 100));
	assert_true(add(T0 + 3 * S, G0 + 2 * S + S / 2, 100));
	assert_true(add(T0 + 4 * S, G0 + 3 * S + S / 2, 100));
	expect(G0 + S / 4, T0 + S / 4);
	expect_not(G0 + S + S / 4, CLOCK_UNSTEADY);
	expect_not(G0 + 2 * S - MS, CLOCK_UNSTEADY);
	expect(G0 + 3 * S, T0 + 3 * S + S / 2);
	/* Three seconds back after one: the second before the step comes twice. */
	cupti_clock__init(&clock);
	assert_true(add(T0, G0, 100));
	assert_true(add(T0 + 10 * S, G0 + 10 * S, 100));
	assert_false(add(T0 + 11 * S, G0 + 8 * S, 100));
	for (uint64_t i = 0; i < 10; i++)
		assert_true(add(T0 + (12 + i) * S, G0 + (9 + i) * S, 100));
	expect_not(G0 + 9 * S + S / 2, CLOCK_UNSTEADY);
	expect(G0 + 6 * S, T0 + 6 * S);
	expect(G0 + 12 * S, T0 + 15 * S);
}

/* CUPTI uses another clock while CUDA initializes, and records lie beyond that clock's last
 * reading. */
static void test_settling(void **state)
{
	static const uint64_t others[] = {S, 3 * G0};

	for (size_t i = 0; i < 2; i++) {
		cupti_clock__init(&clock);
		assert_true(add(T0, others[i], 100));
		assert_true(add(T0 + S / 10, others[i] + S / 10, 100));
		assert_false(add(T0 + S / 5, G0 + S / 5, 100));
		expect(G0 + S / 10 + 5, T0 + S / 10 + 5);
		expect(G0 + S / 5 - 5, T0 + S / 5 - 5);
		expect(G0 + S / 5, T0 + S / 5);
		assert_true(add(T0 + S, G0 + S, 100));
		expect(G0 + S / 2, T0 + S / 2);
		expect_not(G0, CLOCK_UNSTEADY);
	}
}

static void test_set_often(void **state)
{
	uint64_t gpu_ns = G0;

	cupti_clock__init(&clock);
	for (uint64_t i = 0; i < 200; i++) {
		(void)add(T0 + i * S, gpu_ns, 100);
		gpu_ns += i % 2 ? 3 * S / 2 : S;
	}
	assert_in_range(clock.gaps_nr, 1, CLOCK_GAPS);
	/* An ambiguous time is refused, never converted wrongly. */
	gpu_ns = G0;
	for (uint64_t i = 0; i < 199; i++) {
		uint64_t ns = 0;
		enum clock_result result = cupti_clock__convert(&clock, gpu_ns + S / 2, &ns);

		if (result == CLOCK_CONVERTED)
			assert_true(i % 2 == 0 && ns == T0 + i * S + S / 2);
		gpu_ns += i % 2 ? 3 * S / 2 : S;
	}
}

static void test_long_capture(void **state)
{
	uint64_t nr = 3 * CLOCK_READINGS;

	cupti_clock__init(&clock);
	for (uint64_t i = 0; i < nr; i++)
		assert_true(add(T0 + i * S, G0 + i * S, 100));
	expect(G0 + (nr - 2) * S + 5, T0 + (nr - 2) * S + 5);
	expect(G0 + (nr - CLOCK_READINGS) * S, T0 + (nr - CLOCK_READINGS) * S);
	/* That reading was overwritten. */
	expect_not(G0 + (nr - CLOCK_READINGS) * S - 1, CLOCK_UNSTEADY);
	expect_not(G0 - 1, CLOCK_UNSTEADY);
}

static unsigned reads_left;

static int read_some(uint64_t *ret_ns)
{
	*ret_ns = 1;
	return reads_left-- ? 0 : 15;
}

static void test_reading(void **state)
{
	struct clock_reading reading = {0};

	reads_left = 1000;
	assert_true(cupti_clock__read(read_some, &reading));
	assert_true(reading.time_ns && reading.gpu_ns == 1);
	reads_left = 1;
	assert_false(cupti_clock__read(read_some, &reading));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_step),	 cmocka_unit_test(test_drift),
		cmocka_unit_test(test_bound),	 cmocka_unit_test(test_set_forward),
		cmocka_unit_test(test_set_back), cmocka_unit_test(test_set_often),
		cmocka_unit_test(test_settling), cmocka_unit_test(test_long_capture),
		cmocka_unit_test(test_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
