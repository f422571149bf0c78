/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Why processes have no GPU times, as recordings are told.
 */
#include "capture/process/gpu_unavailable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/process/process.h"
#include "sample.h"

/* What a recording says of it, NULL: nothing. */
static void assert_reported(const struct gpu_unavailable *l, const char *key, const char *wanted)
{
	const char *path = sample_path("lacks.gpuprof"), *why;
	struct recording_writer *w;
	struct recording *r;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	assert_int_equal(gpu_unavailable__write(l, w), 0);
	assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
	assert_int_equal(recording__open(path, NULL, &r), 0);
	why = recording__meta(r, key);
	if (wanted)
		assert_string_equal(why, wanted);
	else
		assert_null(why);
	recording__free(r);
}

/* The last reason of each counts; who has them after all is forgotten. */
static void test_reasons(void **state)
{
	struct gpu_unavailable l = {0};

	gpu_unavailable__note(&l, 7, "busy");
	gpu_unavailable__note(&l, 8, "no CUPTI");
	gpu_unavailable__note(&l, 7, "still busy");
	assert_reported(&l, "gpu_lack.7", "still busy");
	assert_reported(&l, "gpu_lack.8", "no CUPTI");
	gpu_unavailable__forget(&l, 7);
	gpu_unavailable__forget(&l, 9);
	assert_reported(&l, "gpu_lack.7", NULL);
	assert_reported(&l, "gpu_lack.8", "no CUPTI");
	gpu_unavailable__done(&l);
}

/* The next recording hears of those alone that are still there. */
static void test_next_recording(void **state)
{
	struct target_process here = {.pid = 7}, ended = {.pid = 8};
	struct traced_process members[] = {{.process = &here},
					   {.process = &ended, .end = PROCESS_EXITED}};
	struct traced_process *items[] = {&members[0], &members[1]};
	const struct process_table roster = {.items = items, .nr = 2};
	struct gpu_unavailable l = {0};

	gpu_unavailable__note(&l, 6, "forgotten");
	gpu_unavailable__note(&l, 7, "busy");
	gpu_unavailable__note(&l, 8, "ended");
	gpu_unavailable__poll(&l, &roster);
	assert_reported(&l, "gpu_lack.6", NULL);
	assert_reported(&l, "gpu_lack.7", "busy");
	assert_reported(&l, "gpu_lack.8", NULL);
	gpu_unavailable__done(&l);
}

/* However many there are, and however much there is to say. */
static void test_very_many(void **state)
{
	struct gpu_unavailable l = {0};
	char why[1000];

	memset(why, 'x', sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	for (pid_t pid = 1; pid <= 1000; pid++)
		gpu_unavailable__note(&l, pid, why);
	assert_true(l.items.nr >= 16 && l.items.nr < 1000);
	assert_true(strlen(l.items.items[0].why) < sizeof(l.items.items[0].why));
	gpu_unavailable__done(&l);
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
