/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What set off a flight recorder, as it is printed; and a recording that cannot be written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/format/output.h"
#include "sample.h"

#include <errno.h>

#define MS 1000000ULL

static void put(struct recording_writer *w, struct gp_ev_trigger ev)
{
	ev.head.kind = GP_EV_TRIGGER;
	assert_int_equal(recording_writer__event(w, &ev, sizeof(ev)), 0);
}

static void put_thread(struct recording_writer *w, uint32_t tid, uint64_t time_ns)
{
	struct gp_ev_thread_stack ev = {
		.head = {.kind = GP_EV_THREAD_STACK, .tid = tid, .time_ns = time_ns},
		.stack_id = 1,
	};

	assert_int_equal(recording_writer__event(w, &ev, sizeof(ev)), 0);
}

static struct timeline *triggers(struct recording **ret_recording)
{
	const struct recording_frame frame = {.file = "t.py", .function = "wait", .line = 7};
	const char *path = sample_path("t.gpuprof");
	struct recording_writer *w;
	struct timeline *t;
	uint32_t number = 1;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	assert_int_equal(recording_writer__window(w, 1000 * MS, 9000 * MS, 0), 0);
	assert_int_equal(recording_writer__frame(w, 1, &frame), 0);
	assert_int_equal(recording_writer__stack(w, 1, 0, &number, 1), 0);
	put(w, (struct gp_ev_trigger){.head = {.tid = 5, .time_ns = 2500 * MS},
				      .what = GP_TRIGGER_SLOW_STEP,
				      .start_ns = 2000 * MS,
				      .bound_ns = 30 * MS,
				      .usual_ns = 10 * MS,
				      .step_nr = 41});
	put(w, (struct gp_ev_trigger){
		       .head.time_ns = 4000 * MS, .what = GP_TRIGGER_HANG, .start_ns = 3000 * MS});
	put_thread(w, 6, 4000 * MS);
	put_thread(w, 7, 4001 * MS);
	/* It began after it was noticed; and one of a later version. */
	put(w, (struct gp_ev_trigger){.head.time_ns = 1, .start_ns = 2});
	put(w, (struct gp_ev_trigger){.head.time_ns = 5000 * MS, .what = 99});
	for (int i = 0; i < 100; i++)
		put(w, (struct gp_ev_trigger){.head.time_ns = UINT64_MAX});
	assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
	assert_int_equal(recording__open(path, NULL, ret_recording), 0);
	assert_int_equal(timeline__new(*ret_recording, NULL, &t), 0);
	return t;
}

static void test_text(void **state)
{
	struct recording *r;
	struct timeline *t = triggers(&r);
	struct sink *sink;
	size_t bytes;

	assert_int_equal(sink__new_memory(&sink), 0);
	assert_int_equal(output_triggers_text(sink, t), 0);
	assert_string_equal(sink__bytes(sink, &bytes),
			    "Trigger at 1.500 s: slow step: step 41 took 500.000 ms; more than "
			    "30.000 ms is slow, where 10.000 ms are usual, thread 5\n"
			    "Trigger at 3.000 s: hang: no event for 1000.000 ms\n"
			    "  thread 6 was at\n"
			    "    t.py(7): wait\n"
			    "Trigger at 4.000 s: ?: of a kind that this gpuprof does not know\n");
	sink__free(sink);
	timeline__free(t);
	recording__free(r);
}

static bool small_room(void *arg, uint64_t bytes, int err)
{
	uint64_t *left = arg;

	if (err || bytes > *left)
		return false;
	*left -= bytes;
	return true;
}

/* Only whole chunks are there, and no more than was allowed. */
static void test_room(void **state)
{
	const char *path = sample_path("r.gpuprof");
	struct gp_ev_head ev = {.kind = GP_EV_MAPS};
	struct recording_writer *w;
	struct recording *r;
	uint64_t left = 200;
	int err = 0;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	recording_writer__set_room(w, (struct recording_room){small_room, &left});
	for (int i = 0; i < 100 && !err; i++) {
		assert_int_equal(recording_writer__event(w, &ev, sizeof(ev)), 0);
		err = recording_writer__flush(w);
	}
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(recording_writer__error(w), -ENOSPC);
	assert_true(recording_writer__bytes(w) <= 24 + 200);
	assert_int_equal(recording_writer__event(w, &ev, sizeof(ev)), -ENOSPC);
	recording_writer__free(w);
	assert_int_equal(recording__open(path, NULL, &r), 0);
	assert_non_null(strstr(recording__damage(r), "did not end in order"));
	recording__free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),
					   cmocka_unit_test(test_room)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
