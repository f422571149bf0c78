/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The in-process walk on made-up interpreters: it finds the frames in every version's layout, with
 * both ways of reading. Whatever the memory holds, a walk with checked reads ends.
 */
#include "collector/python/python.h"
#include "unit/python_image.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define SELF   ((uint64_t)(uintptr_t)pthread_self())
#define MINORS (IMAGE_LAST_MINOR - IMAGE_FIRST_MINOR + 1)

static uint32_t check_of(const struct image *i, uint64_t code)
{
	uint8_t bytes[PYTHON_CODE_BYTES];

	memcpy(bytes, (const void *)(uintptr_t)code, sizeof(bytes));
	return target_python_check(&i->python, bytes);
}

static uint64_t first_frame(const struct image *i, enum python_reads reads)
{
	uint64_t frame;

	assert_true(python_first_frame(&i->python.walk, i->state, reads, &frame));
	return frame;
}

/* Walks both ways, which must agree. */
static struct python_stack walk(const struct image *i)
{
	uint64_t frame = first_frame(i, PYTHON_PLAIN);
	struct python_stack plain, checked;

	assert_int_equal(first_frame(i, PYTHON_CHECKED), frame);
	assert_true(python_walk(&i->python.walk, frame, PYTHON_PLAIN, &plain));
	assert_true(python_walk(&i->python.walk, frame, PYTHON_CHECKED, &checked));
	assert_int_equal(plain.hash, checked.hash);
	assert_int_equal(plain.nr, checked.nr);
	assert_int_equal(plain.flags, checked.flags);
	assert_memory_equal(plain.frames, checked.frames, plain.nr * sizeof(plain.frames[0]));
	return plain;
}

static void test_frames(void **state)
{
	for (unsigned int minor = IMAGE_FIRST_MINOR; minor <= IMAGE_LAST_MINOR; minor++) {
		struct image *i = image__get(minor);
		uint64_t outer = image__code(i, "/a/outer.py", 1);
		uint64_t inner = image__code(i, "<string>", 2);
		uint64_t frame = image__frame(i, outer, 10, 0);
		struct python_stack s;

		assert_int_equal(walk(i).nr, 0);
		if (minor >= 12)
			frame = image__shim(i, frame);
		frame = image__frame(i, inner, -2, frame);
		image__run(i, i->state, frame);
		s = walk(i);
		assert_int_equal(s.nr, 2);
		assert_int_equal(s.flags, 0);
		assert_int_equal(s.frames[0].code, inner);
		assert_int_equal(s.frames[0].lasti, -2);
		assert_int_equal(s.frames[0].check, check_of(i, inner));
		assert_int_equal(s.frames[1].code, outer);
		assert_int_equal(s.frames[1].lasti, 10);
		assert_int_equal(s.frames[1].check, check_of(i, outer));
	}
}

/* Code compiled at run time, at the same address, has other checksums. */
static void test_made_code(void **state)
{
	for (unsigned int minor = IMAGE_FIRST_MINOR; minor < 12; minor++) {
		struct image *i = image__get(minor);
		uint64_t code = image__code(i, "<made 1>", 1);
		uint64_t text = *image__word(code + i->python.filename);
		uint64_t lines = *image__word(code + i->python.linetable), before;

		image__run(i, i->state, image__frame(i, code, 0, 0));
		before = walk(i).hash;
		((char *)(uintptr_t)text)[48 + 6] = '2';
		assert_int_not_equal(walk(i).hash, before);
		((char *)(uintptr_t)text)[48 + 6] = '1';
		assert_int_equal(walk(i).hash, before);
		((char *)(uintptr_t)lines)[32] ^= 1;
		assert_int_not_equal(walk(i).hash, before);
	}
}

static void test_deep(void **state)
{
	for (unsigned int minor = IMAGE_FIRST_MINOR; minor <= IMAGE_LAST_MINOR; minor++) {
		struct image *i = image__get(minor);
		uint64_t code = image__code(i, "/a.py", 1), frame = 0;
		struct python_stack s;

		for (int depth = 0; depth < GP_STACK_FRAMES; depth++)
			frame = image__frame(i, code, depth, frame);
		image__run(i, i->state, frame);
		s = walk(i);
		assert_int_equal(s.nr, GP_STACK_FRAMES);
		assert_int_equal(s.flags, 0);
		for (int depth = 0; depth < 1000; depth++)
			frame = image__frame(i, code, depth, frame);
		image__run(i, i->state, frame);
		s = walk(i);
		assert_int_equal(s.nr, GP_STACK_FRAMES);
		assert_int_equal(s.flags, GP_STACK_TRUNCATED);
	}
}

/* Frames in a circle, and frames of the interpreter's own. */
static void test_cycles(void **state)
{
	for (unsigned int minor = IMAGE_FIRST_MINOR; minor <= IMAGE_LAST_MINOR; minor++) {
		struct image *i = image__get(minor);
		const struct gp_python *w = &i->python.walk;
		uint64_t code = image__code(i, "/a.py", 1);
		uint64_t one = image__frame(i, code, 1, 0), two = image__frame(i, code, 2, one);

		*image__word(one + w->frame_at + w->frame_back) = two;
		image__run(i, i->state, one);
		assert_int_equal(walk(i).flags, GP_STACK_TRUNCATED);
		if (minor < 12)
			continue;
		one = image__shim(i, 0);
		*image__word(one + w->frame_at + w->frame_back) = one;
		image__run(i, i->state, one);
		assert_int_equal(walk(i).flags, GP_STACK_INCOMPLETE);
	}
}

static void test_whose_state(void **state)
{
	for (unsigned int minor = IMAGE_FIRST_MINOR; minor <= IMAGE_LAST_MINOR; minor++) {
		struct image *i = image__get(minor);
		const struct gp_python *w = &i->python.walk;
		uint64_t other = image__state(i, i->interp, SELF + 64), sub;

		assert_true(python_state_is_good(w, i->state, SELF));
		assert_true(python_state_is_good(w, other, SELF + 64));
		assert_false(python_state_is_good(w, other, SELF));
		assert_false(python_state_is_good(w, 0, SELF));
		/* The state is no longer in the list. */
		*image__word(*image__word(i->state) + 8) = 0;
		assert_false(python_state_is_good(w, i->state, SELF));
		*image__word(*image__word(i->state) + 8) = i->state;
		assert_true(python_state_is_only(w, i->state, SELF));
		sub = image__interp(i);
		assert_true(python_state_is_only(w, i->state, SELF));
		(void)image__state(i, sub, SELF);
		assert_false(python_state_is_only(w, i->state, SELF));
		/* An endless list. */
		*image__word(sub + w->interp_next) = sub;
		assert_false(python_state_is_only(w, i->state, SELF));
	}
}

static void test_bad_addresses(void **state)
{
	static const uint64_t bad[] = {8,	   4096,  0x7fffffffffff,
				       1ULL << 47, ~0ULL, 0xffff800000000000};

	for (unsigned int minor = IMAGE_FIRST_MINOR; minor <= IMAGE_LAST_MINOR; minor++) {
		struct image *i = image__get(minor);
		const struct gp_python *w = &i->python.walk;
		uint64_t code = image__code(i, "/a.py", 1), frame = image__frame(i, code, 1, 0);
		struct python_stack s;

		for (size_t b = 0; b < sizeof(bad) / sizeof(bad[0]); b++) {
			assert_false(python_walk(w, bad[b], PYTHON_CHECKED, &s));
			assert_int_equal(s.flags, GP_STACK_INCOMPLETE);
			*image__word(frame + w->frame_at + w->frame_back) = bad[b];
			assert_false(python_walk(w, frame, PYTHON_CHECKED, &s));
			assert_int_equal(s.nr, 1);
			/* Plain reads refuse impossible addresses. */
			assert_false(python_walk(w, frame, PYTHON_PLAIN, &s));
			*image__word(frame + w->frame_at + w->frame_back) = 0;
			*image__word(frame + w->frame_at + w->frame_code) = bad[b];
			assert_false(python_walk(w, frame, PYTHON_CHECKED, &s));
			assert_int_equal(s.nr, 0);
			*image__word(frame + w->frame_at + w->frame_code) = code;
		}
	}
}

/* Any word of the image may have any value. */
static void test_garbage(void **state)
{
	void *gone = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t seed = 7;

	assert_ptr_not_equal(gone, MAP_FAILED);
	for (int round = 0; round < 1400; round++) {
		struct image *i = image__get(IMAGE_FIRST_MINOR + (unsigned int)round % MINORS);
		uint64_t code = image__code(i, "<made>", 3), frame = 0, first;
		struct python_stack s;

		for (int depth = 0; depth < 8; depth++)
			frame = image__frame(i, code, depth, frame);
		image__run(i, i->state, frame);
		for (int hits = 0; hits < 12; hits++) {
			const uint64_t values[] = {
				0,    seed,  frame,	i->state,  (uintptr_t)gone,
				code, ~0ULL, frame + 4, i->interp, 1ULL << 40};

			seed = seed * 1664525 + 1013904223;
			i->words[seed % i->used] = values[(seed >> 20) % 10];
		}
		(void)python_state_is_good(&i->python.walk, i->state, SELF);
		if (!python_first_frame(&i->python.walk, i->state, PYTHON_CHECKED, &first))
			continue;
		(void)python_walk(&i->python.walk, first, PYTHON_CHECKED, &s);
		assert_true(s.nr <= GP_STACK_FRAMES);
	}
	(void)munmap(gone, 65536);
}

static void test_layouts(void **state)
{
	for (unsigned int minor = IMAGE_FIRST_MINOR; minor <= IMAGE_LAST_MINOR; minor++) {
		struct gp_python good = image__get(minor)->python.walk, w;

		assert_true(python_layout_is_sane(&good));
#define REFUSES(member, value)                                                                     \
	do {                                                                                       \
		w = good;                                                                          \
		w.member = (value);                                                                \
		assert_false(python_layout_is_sane(&w));                                           \
	} while (0)
		REFUSES(frame_bytes, 0);
		REFUSES(frame_bytes, GP_PYTHON_FRAME_BYTES + 1);
		REFUSES(frame_code, good.frame_bytes - 7);
		REFUSES(frame_back, 0xffff);
		REFUSES(frame_instr, good.frame_bytes);
		REFUSES(frame_owner, good.frame_bytes);
		REFUSES(state_frame, GP_PYTHON_STATE_BYTES);
		REFUSES(state_thread_id, GP_PYTHON_STATE_BYTES - 7);
		REFUSES(interpreters, 0);
		REFUSES(code_filename, good.code_check + GP_PYTHON_CHECK_BYTES - 7);
	}
	assert_false(python_layout_is_sane(&(struct gp_python){0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),	    cmocka_unit_test(test_made_code),
		cmocka_unit_test(test_deep),	    cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_whose_state), cmocka_unit_test(test_bad_addresses),
		cmocka_unit_test(test_garbage),	    cmocka_unit_test(test_layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
