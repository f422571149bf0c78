/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Taking stacks, with this program as the Python library and a made-up interpreter. Each stack has
 * one id, announced once; an unchanged stack is not walked again; a wrong layout switches stacks
 * off instead of crashing the process.
 */
#include "collector/python/stacks.h"
#include "unit/python_image.h"
#include "unit/ring_ends.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MINOR	 14
#define WALKS_NR 100 /* more than are done both ways */

static struct ring_writer w;
static struct ring_reader *r;
static struct image *image;
static struct stacks *stacks;
static struct thread_stack thread;
static void *state_now;
static int finalizing;
static struct {
	size_t nr;
	struct gp_ev_stack last;
	struct gp_stack_frame frames[GP_STACK_FRAMES];
} reported;

/* Python's functions, as the collector finds them. */
void *PyGILState_GetThisThreadState(void);
int Py_IsFinalizing(void);

void *PyGILState_GetThisThreadState(void)
{
	return state_now;
}

int Py_IsFinalizing(void)
{
	return finalizing;
}

static int begin(void **state)
{
	const char *why;

	image = image__get(MINOR);
	state_now = (void *)(uintptr_t)image->state;
	finalizing = 0;
	memset(&thread, 0, sizeof(thread));
	memset(&reported, 0, sizeof(reported));
	if (ring_ends_open(&w, &r, 1 << 20))
		return -1;
	stacks = stacks__new(&image->python.walk, true, &why);
	return stacks && !why ? 0 : -1;
}

static int end(void **state)
{
	stacks__release(stacks);
	stacks__free(stacks);
	ring_ends_close(&w, r);
	return 0;
}

static int hear(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_stack *ev = event;

	assert_int_equal(ev->head.kind, GP_EV_STACK);
	assert_int_equal(bytes, sizeof(*ev) + ev->frames_nr * sizeof(reported.frames[0]));
	reported.nr++;
	reported.last = *ev;
	memcpy(reported.frames, ev + 1, ev->frames_nr * sizeof(reported.frames[0]));
	return 0;
}

static struct op_stack take(const struct op_stack *outer)
{
	struct op_stack s = stacks__take(stacks, &w, &thread, outer, NULL);

	assert_true(ring_reader__drain(r, hear, NULL) >= 0);
	return s;
}

static uint64_t lost(enum gp_loss what)
{
	return w.page->losses[what];
}

/* Makes a frame with code of its own the current one. */
static uint64_t run(int32_t lasti, uint64_t back)
{
	uint64_t code = image__code(image, "/a.py", (uint32_t)image->used);
	uint64_t frame = image__frame(image, code, lasti, back);

	image__run(image, image->state, frame);
	return frame;
}

static void test_ids(void **state)
{
	uint64_t outer = run(10, 0);
	struct op_stack one = take(NULL), two, again;

	assert_int_equal(one.id, 1);
	assert_int_equal(one.frame, outer);
	assert_int_equal(reported.nr, 1);
	assert_int_equal(reported.last.stack_id, 1);
	assert_int_equal(reported.last.frames_nr, 1);
	assert_int_equal(reported.frames[0].lasti, 10);
	(void)run(20, outer);
	two = take(NULL);
	assert_int_equal(two.id, 2);
	assert_int_equal(reported.nr, 2);
	assert_int_equal(reported.last.frames_nr, 2);
	for (int i = 0; i < WALKS_NR; i++)
		assert_int_equal(take(NULL).id, two.id);
	image__run(image, image->state, outer);
	again = take(NULL);
	assert_int_equal(again.id, one.id);
	assert_int_equal(reported.nr, 2);
	assert_int_equal(lost(GP_LOSS_STACK_INCOMPLETE), 0);
	assert_int_equal(lost(GP_LOSS_STACK_ROOM), 0);
}

static void test_none(void **state)
{
	assert_int_equal(take(NULL).id, 0);
	image__run(image, image->state, image__shim(image, 0));
	assert_int_equal(take(NULL).id, 0);
	state_now = NULL;
	(void)run(1, 0);
	assert_int_equal(take(NULL).id, 0);
	assert_int_equal(reported.nr, 0);
	assert_int_equal(lost(GP_LOSS_STACK_INCOMPLETE) + lost(GP_LOSS_STACK_ROOM), 0);
}

/* If the innermost frame is the outer op's, nothing else is read. */
static void test_shared(void **state)
{
	struct op_stack outer, inner;
	uint64_t frame = run(10, 0);

	outer = take(NULL);
	*image__word(frame + image->python.walk.frame_code) = 8;
	inner = take(&outer);
	assert_memory_equal(&inner, &outer, sizeof(outer));
	(void)run(5, 0);
	inner = take(&outer);
	assert_int_equal(inner.id, 2);
	assert_null(stacks__refused(stacks));
}

static void test_truncated(void **state)
{
	struct op_stack deep;
	uint64_t frame = 0;

	for (int i = 0; i < GP_STACK_FRAMES + 1; i++)
		frame = run(i, frame);
	deep = take(NULL);
	assert_int_equal(reported.last.head.flags, GP_STACK_TRUNCATED);
	assert_int_equal(reported.last.frames_nr, GP_STACK_FRAMES);
	assert_int_equal(lost(GP_LOSS_STACK_INCOMPLETE), 1);
	/* Each event that has it counts. */
	(void)take(&deep);
	assert_int_equal(lost(GP_LOSS_STACK_INCOMPLETE), 2);
	assert_int_equal(lost(GP_LOSS_STACK_ROOM), 0);
}

/* While walks are checked, a wrong pointer is noticed before it is followed. */
static void test_wrong_layout(void **state)
{
	uint64_t outer = run(10, 0);

	(void)run(20, outer);
	*image__word(outer + image->python.walk.frame_code) = 0x7f0000000000;
	assert_int_equal(take(NULL).id, 0);
	assert_non_null(stacks__refused(stacks));
	assert_int_equal(lost(GP_LOSS_STACK_ROOM), 1);
	*image__word(outer + image->python.walk.frame_code) = 0;
	assert_int_equal(take(NULL).id, 0);
	assert_int_equal(lost(GP_LOSS_STACK_ROOM), 2);
	assert_int_equal(reported.nr, 0);
}

static void test_not_an_address(void **state)
{
	uint64_t frame = run(10, 0);

	for (int i = 0; i < WALKS_NR; i++)
		(void)take(NULL);
	*image__word(frame + image->python.walk.frame_back) = ~0ULL;
	assert_int_equal(take(NULL).id, 0);
	assert_non_null(stacks__refused(stacks));
}

static void test_no_first_frame(void **state)
{
	stacks__release(stacks);
	stacks__free(stacks);
	memset(&thread, 0, sizeof(thread));
	image = image__get(12);
	state_now = (void *)(uintptr_t)image->state;
	stacks = stacks__new(&image->python.walk, true, &(const char *){NULL});
	assert_non_null(stacks);
	/* There is no C frame where one should be. */
	*image__word(image->state + image->python.walk.state_frame) = 8;
	assert_int_equal(take(NULL).id, 0);
	assert_non_null(stacks__refused(stacks));
	assert_int_equal(lost(GP_LOSS_STACK_INCOMPLETE), 1);
}

static void test_new_thread_state(void **state)
{
	uint64_t other = image__state(image, image->interp, (uint64_t)(uintptr_t)pthread_self());

	(void)run(10, 0);
	assert_int_equal(take(NULL).id, 1);
	/* Another thread state of this thread, in which nothing runs. */
	state_now = (void *)(uintptr_t)other;
	assert_int_equal(take(NULL).id, 0);
	assert_int_equal(lost(GP_LOSS_STACK_INCOMPLETE), 0);
	/* The thread state of another thread is refused. */
	state_now = (void *)(uintptr_t)image__state(image, image->interp, 4242);
	image__run(image, (uint64_t)(uintptr_t)state_now, run(11, 0));
	assert_int_equal(take(NULL).id, 0);
	assert_int_equal(lost(GP_LOSS_STACK_INCOMPLETE), 1);
}

static void test_only_strangers(void **state)
{
	state_now = (void *)(uintptr_t)image__state(image, image->interp, 4242);
	for (int i = 0; i < WALKS_NR; i++)
		assert_int_equal(take(NULL).id, 0);
	assert_non_null(stacks__refused(stacks));
	assert_int_equal(lost(GP_LOSS_STACK_INCOMPLETE) + lost(GP_LOSS_STACK_ROOM), WALKS_NR);
}

static void test_several_interpreters(void **state)
{
	uint64_t second = image__interp(image);

	(void)run(10, 0);
	assert_int_equal(take(NULL).id, 1);
	(void)image__state(image, second, (uint64_t)(uintptr_t)pthread_self());
	assert_int_equal(take(NULL).id, 0);
	assert_int_equal(lost(GP_LOSS_STACK_INCOMPLETE), 1);
}

/* The thread state may be freed already, so there must be no plain read of it. */
static void test_finalizing(void **state)
{
	(void)run(10, 0);
	for (int i = 0; i < WALKS_NR; i++)
		assert_int_equal(take(NULL).id, 1);
	finalizing = 1;
	assert_int_equal(take(NULL).id, 1);
	state_now = (void *)(uintptr_t)0x7f0000000000;
	assert_int_equal(take(NULL).id, 0);
	assert_int_equal(lost(GP_LOSS_STACK_INCOMPLETE), 1);
	assert_null(stacks__refused(stacks));
}

/* More stacks than the ring holds: counted, and tried again once there is room. */
static void test_ring_full(void **state)
{
	uint64_t frame = 0, lost_nr;

	for (int i = 0; i < GP_STACK_FRAMES; i++)
		frame = image__frame(image, image__code(image, "/a.py", (uint32_t)i), i, frame);
	image__run(image, image->state, frame);
	while (!lost(GP_LOSS_STACK_ROOM)) {
		*image__word(frame + image->python.walk.frame_instr) += 2;
		(void)stacks__take(stacks, &w, &thread, NULL, NULL);
	}
	lost_nr = w.page->lost;
	assert_int_equal(lost_nr, 1);
	assert_true(ring_reader__drain(r, hear, NULL) > 0);
	assert_true(take(NULL).id > 1);
	assert_int_equal(w.page->lost, lost_nr);
}

static void test_table_full(void **state)
{
	uint64_t frame = run(0, 0);

	for (int i = 0; i < GP_RING_STACKS / 2 + 10; i++) {
		*image__word(frame + image->python.walk.frame_instr) += 2;
		(void)take(NULL);
	}
	assert_int_equal(reported.nr, GP_RING_STACKS / 2);
	assert_int_equal(lost(GP_LOSS_STACK_ROOM), 10);
}

/* Ids go on, and known stacks are not announced again. */
static void test_resumed(void **state)
{
	uint64_t frame = run(10, 0);

	assert_int_equal(take(NULL).id, 1);
	stacks__release(stacks);
	memset(&thread, 0, sizeof(thread));
	assert_null(stacks__resume(stacks, &image->python.walk, true));
	(void)run(20, frame);
	assert_int_equal(take(NULL).id, 2);
	image__run(image, image->state, frame);
	assert_int_equal(take(NULL).id, 1);
	assert_int_equal(reported.nr, 2);
}

/* With modules only, the frame is known; no stack is announced, and none counts as lost. */
static void test_without_ids(void **state)
{
	uint64_t frame = run(10, 0);

	stacks__release(stacks);
	assert_null(stacks__resume(stacks, &image->python.walk, false));
	for (int i = 0; i < WALKS_NR; i++) {
		struct op_stack s = take(NULL);

		assert_int_equal(s.id, 0);
		assert_int_equal(s.frame, frame);
	}
	assert_int_equal(reported.nr, 0);
	assert_int_equal(lost(GP_LOSS_STACK_ROOM) + lost(GP_LOSS_STACK_INCOMPLETE), 0);
}

static void test_bad_layout_is_refused(void **state)
{
	struct gp_python layout = image->python.walk;
	const char *why = NULL;

	layout.frame_bytes = 0;
	assert_null(stacks__new(&layout, true, &why));
	assert_non_null(why);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_ids),
		TEST(test_none),
		TEST(test_shared),
		TEST(test_truncated),
		TEST(test_wrong_layout),
		TEST(test_not_an_address),
		TEST(test_no_first_frame),
		TEST(test_new_thread_state),
		TEST(test_only_strangers),
		TEST(test_several_interpreters),
		TEST(test_finalizing),
		TEST(test_ring_full),
		TEST(test_table_full),
		TEST(test_resumed),
		TEST(test_without_ids),
		TEST(test_bad_layout_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
