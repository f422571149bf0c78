/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "common/clock.h"
#include "probe/session/cpu_sharing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TICKS_A_SECOND 250
#define TURN_NS	       (SECOND_NS / 10)
#define PERIOD_NS      (SECOND_NS / 99)

/* A CPU, busy all the while. */
struct cpu {
	struct cpu_sharing sharing;
	struct gp_sampled_cpu counted;
	uint64_t now_ns;
	uint64_t period_ns; /* of samples */
};

/* One turn: of so many ticks of a hundred others wait, and samples find so many threads. */
static bool turn(struct cpu *c, uint64_t percent, uint64_t ours)
{
	uint64_t ticks = TICKS_A_SECOND * TURN_NS / SECOND_NS;

	c->now_ns += TURN_NS;
	c->counted.ticks += ticks;
	c->counted.shared += (ticks * percent + 50) / 100;
	c->counted.ours += ours;
	return cpu_sharing__poll(&c->sharing, &c->counted, c->now_ns, c->period_ns);
}

/* Turns until it says so, at most a hundred. */
static int turns_until(struct cpu *c, bool timer, uint64_t percent, uint64_t ours)
{
	int nr = 1;

	while (turn(c, percent, ours) != timer && nr < 100)
		nr++;
	return nr;
}

static struct cpu begun(void)
{
	struct cpu c = {.now_ns = 5 * SECOND_NS, .period_ns = PERIOD_NS};

	assert_false(turn(&c, 0, 1));
	return c;
}

static void test_alone(void **state)
{
	struct cpu c = begun();

	(void)state;
	assert_int_equal(turns_until(&c, true, 0, 1), 100);
	/* Some thread of the kernel's, now and then: one of 25 ticks. */
	assert_int_equal(turns_until(&c, true, 4, 1), 100);
}

static void test_shared(void **state)
{
	struct cpu c = begun();

	(void)state;
	assert_int_equal(turns_until(&c, true, 100, 1), 1);
	/* For as long as it is. */
	assert_int_equal(turns_until(&c, false, 100, 1), 100);
	/* What is left of the time that is judged as a whole, and the next. */
	assert_true(turns_until(&c, false, 0, 1) <= (int)(2 * SHARING_TIMER_NS / TURN_NS));
	/* Again, at once. */
	assert_int_equal(turns_until(&c, true, 100, 1), 1);
}

static void test_seldom(void **state)
{
	struct cpu c = begun();

	(void)state;
	/* Two of 25, a few turns' worth; half of that keeps it. */
	assert_true(turns_until(&c, true, 8, 1) <= 4);
	assert_int_equal(turns_until(&c, false, 4, 1), 100);
}

/* What came before the first look says nothing. */
static void test_first(void **state)
{
	struct cpu c = {.counted = {.ticks = 1000, .shared = 1000, .ours = 10}};

	(void)state;
	assert_false(turn(&c, 0, 0));
	assert_int_equal(turns_until(&c, true, 0, 1), 100);
}

/* Others share it among themselves. */
static void test_not_ours(void **state)
{
	struct cpu c = begun();

	(void)state;
	assert_int_equal(turns_until(&c, true, 100, 0), 1);
	assert_int_equal(turns_until(&c, false, 100, 0), SHARING_TIMER_NS / TURN_NS);
	/* For a look, now and then: what sleeps at each tick is not found by one. */
	assert_int_equal(turns_until(&c, true, 100, 0), SHARING_PAUSE_NS / TURN_NS);
	assert_int_equal(turns_until(&c, false, 100, 0), SHARING_TIMER_NS / TURN_NS);
	/* But where a tick finds one of ours: */
	assert_int_equal(turns_until(&c, true, 100, 1), 1);
}

/* Few samples cannot tell that nobody of ours is there. */
static void test_few_samples(void **state)
{
	struct cpu c = begun();

	(void)state;
	c.period_ns = SECOND_NS / 5;
	assert_int_equal(turns_until(&c, true, 100, 1), 1);
	assert_int_equal(turns_until(&c, false, 100, 0), SHARING_SAMPLES * (c.period_ns / TURN_NS));
}

/* A CPU that is idle, or whose capture pauses, has no ticks that count. */
static void test_idle(void **state)
{
	struct cpu c = begun();

	(void)state;
	assert_true(turn(&c, 100, 1));
	for (uint64_t ns = 0; ns <= 2 * SHARING_TIMER_NS; ns += TURN_NS)
		(void)cpu_sharing__poll(&c.sharing, &c.counted, c.now_ns += TURN_NS, PERIOD_NS);
	assert_false(c.sharing.timer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),	    cmocka_unit_test(test_shared),
		cmocka_unit_test(test_seldom),	    cmocka_unit_test(test_first),
		cmocka_unit_test(test_not_ours),    cmocka_unit_test(test_idle),
		cmocka_unit_test(test_few_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
