/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Calls of the CUDA API that a uprobe and CUPTI saw, with much of something else between them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "events.h"
#include "outputs.h"

#define US	 1000ULL
#define INSIDE	 450 /* what a runtime asks of the driver when it gets ready */
#define CALLS_NR 300

static void add_by_cupti(struct events *e, const char *name, uint32_t correlation_id, bool driver,
			 uint64_t start_ns, uint64_t end_ns)
{
	events__api(e, (struct event_api){.name = name,
					  .correlation_id = correlation_id,
					  .start_ns = start_ns,
					  .end_ns = end_ns,
					  .cupti = true,
					  .driver = driver});
}

static void add_by_uprobe(struct events *e, const char *name, uint64_t start_ns, uint64_t end_ns)
{
	events__api(e, (struct event_api){.name = name, .start_ns = start_ns, .end_ns = end_ns});
}

/* The runtime's first call: first it gets ready, and only then does CUPTI see the call begin. */
static void test_much_within_the_call(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	add_by_uprobe(e, "cudaMalloc", 1000 * US, 3000 * US);
	for (uint32_t i = 0; i < INSIDE; i++)
		add_by_cupti(e, i % 2 ? "cuModuleLoad" : "cuLibraryLoadData", 10 + i, true,
			     1010 * US + i * 3 * US, 1012 * US + i * 3 * US);
	add_by_cupti(e, "cudaMalloc_v3020", 5, false, 2700 * US, 2990 * US);
	t = events__timeline(e);
	assert_int_equal(t->gpu.api.nr, 1);
	assert_string_equal(t->gpu.api.items[0].name, "cudaMalloc");
	assert_int_equal(t->gpu.api.items[0].start_ns, 1000 * US);
	assert_int_equal(t->gpu.api.items[0].end_ns, 3000 * US);
	assert_int_equal(t->gpu.api.items[0].correlation_id, 5);
	assert_int_equal(loss_of(t, "api_unjoined"), 0);
}

/* One whose end was not seen, and after the next of them it is not looked for. */
static void test_much_within_a_call_without_end(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	add_by_uprobe(e, "cuLaunchKernel", 1000 * US, 0);
	for (uint32_t i = 0; i < INSIDE; i++)
		add_by_cupti(e, "cuModuleLoad", 10 + i, true, 1010 * US + i * 3 * US,
			     1012 * US + i * 3 * US);
	add_by_cupti(e, "cuLaunchKernel", 5, true, 2700 * US, 2990 * US);
	add_by_uprobe(e, "cuLaunchKernel", 4000 * US, 0);
	add_by_uprobe(e, "cudaFree", 5000 * US, 5100 * US);
	add_by_cupti(e, "cuLaunchKernel", 6, true, 5200 * US, 5300 * US);
	t = events__timeline(e);
	assert_int_equal(t->gpu.api.nr, INSIDE + 4);
	assert_int_equal(t->gpu.api.items[INSIDE].correlation_id, 5);
	assert_int_equal(t->gpu.api.items[INSIDE].end_ns, 2990 * US);
	assert_int_equal(t->gpu.api.items[INSIDE + 1].correlation_id, 0);
	assert_int_equal(t->gpu.api.items[INSIDE + 3].correlation_id, 6);
}

/* Two functions by turns, on two threads: each with its own. */
static void test_functions_and_threads(void **state)
{
	static const char *const names[] = {"cudaMalloc", "cudaFree"};
	struct events *e = *state;
	const struct timeline *t;

	for (uint32_t i = 0; i < CALLS_NR; i++) {
		uint64_t at = 1000 * US + i * 10 * US;

		for (uint32_t tid = 100; tid < 102; tid++) {
			events__api(e, (struct event_api){.name = names[i % 2],
							  .start_ns = at,
							  .end_ns = at + 9 * US,
							  .tid = tid});
			events__api(e, (struct event_api){.name = names[i % 2],
							  .correlation_id = tid * 1000 + i,
							  .start_ns = at + 1 * US,
							  .end_ns = at + 8 * US,
							  .tid = tid,
							  .cupti = true});
		}
	}
	t = events__timeline(e);
	assert_int_equal(t->gpu.api.nr, 2 * CALLS_NR);
	for (size_t i = 0; i < t->gpu.api.nr; i++) {
		const struct tl_api *api = &t->gpu.api.items[i];
		uint64_t nr = (api->start_ns - 1000 * US) / (10 * US);

		assert_int_equal(api->correlation_id,
				 t->threads.items[api->thread].tid * 1000 + nr);
	}
	assert_int_equal(loss_of(t, "api_unjoined"), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, events_setup, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_much_within_the_call),
		CASE(test_much_within_a_call_without_end),
		CASE(test_functions_and_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
