/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Why processes have no GPU times, as recordings are told.
 */
#include "capture/gpu_lacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "target/process.h"

static void assert_text(const struct gpu_lacks *l, const char *wanted)
{
	struct buf b = {0};

	gpu_lacks__text(l, &b);
	assert_string_equal(b.bytes ? b.bytes : "", wanted);
	buf__done(&b);
}

/* The last reason of each counts; who has them after all is forgotten. */
static void test_reasons(void **state)
{
	struct gpu_lacks l = {0};

	assert_text(&l, "");
	gpu_lacks__note(&l, 7, "busy");
	gpu_lacks__note(&l, 8, "no CUPTI");
	gpu_lacks__note(&l, 7, "still busy");
	assert_text(&l, "7: still busy; 8: no CUPTI");
	gpu_lacks__forget(&l, 7);
	gpu_lacks__forget(&l, 9);
	assert_text(&l, "8: no CUPTI");
	gpu_lacks__done(&l);
}

/* The next recording hears of those alone that are still there. */
static void test_next_recording(void **state)
{
	struct target_process here = {.pid = 7}, ended = {.pid = 8};
	struct member members[] = {{.process = &here}, {.process = &ended, .end = MEMBER_EXITED}};
	struct member *items[] = {&members[0], &members[1]};
	const struct roster roster = {.items = items, .nr = 2};
	struct gpu_lacks l = {0};

	gpu_lacks__note(&l, 6, "forgotten");
	gpu_lacks__note(&l, 7, "busy");
	gpu_lacks__note(&l, 8, "ended");
	gpu_lacks__turn(&l, &roster);
	assert_text(&l, "7: busy");
	gpu_lacks__done(&l);
}

/* However many there are, and however much there is to say. */
static void test_very_many(void **state)
{
	struct gpu_lacks l = {0};
	char why[1000];

	memset(why, 'x', sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	for (pid_t pid = 1; pid <= 1000; pid++)
		gpu_lacks__note(&l, pid, why);
	assert_true(l.items.nr >= 16 && l.items.nr < 1000);
	assert_true(strlen(l.items.items[0].why) < sizeof(l.items.items[0].why));
	gpu_lacks__done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_next_recording),
		cmocka_unit_test(test_very_many),
	};

	return cmocka_run_group_tests_name("capture_gpu_lacks", tests, NULL, NULL);
}
