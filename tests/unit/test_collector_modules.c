/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Module calls: found in the frames of a made-up interpreter of each version, distinguished by what
 * each call creates anew, and followed from op to op into the ring.
 */
#include "collector/python/modules.h"
#include "collector/python/python_calls.h"
#include "unit/python_image.h"
#include "unit/ring_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MODULE_FILE "/usr/lib/python3/dist-packages/torch/nn/modules/module.py"
#define LOCALS_NR   4

static struct image *image;
static struct python_codes codes;
static uint64_t dict_type[4], cell_type[4];

static uint64_t take(size_t words)
{
	uint64_t *at = image->words + image->used;

	image->used += words;
	assert_true(image->used <= IMAGE_WORDS);
	memset(at, 0, words * sizeof(*at));
	return (uint64_t)(uintptr_t)at;
}

static uint64_t text(const char *characters)
{
	uint64_t at = take(7 + strlen(characters) / 8);

	image__word(at)[2] = strlen(characters);
	memcpy((char *)(uintptr_t)at + 48, characters, strlen(characters));
	return at;
}

static uint64_t code(const char *file, const char *name)
{
	uint64_t at = image__code(image, file, (uint32_t)image->used), name_at = text(name);
	uint32_t locals_nr = LOCALS_NR;

	memcpy((char *)(uintptr_t)at + image->python.name, &name_at, sizeof(name_at));
	memcpy((char *)(uintptr_t)at + image->python.walk.code_locals_nr, &locals_nr,
	       sizeof(locals_nr));
	return at;
}

static uint64_t *locals(uint64_t frame)
{
	return image__word(frame + image->python.walk.frame_locals);
}

/* Its variables lie right behind it. */
static uint64_t frame_of(uint64_t code_at, uint64_t back)
{
	uint64_t frame = image__frame(image, code_at, 10, back);

	image->python.walk.frame_locals = (uint16_t)(take(LOCALS_NR) - frame);
	return frame;
}

static uint64_t object(uint64_t type)
{
	uint64_t at = take(4);

	image__word(at)[1] = type;
	return at;
}

static uint64_t module(const char *type_name)
{
	uint64_t type = take(4), name = take(4);

	memcpy((char *)(uintptr_t)name, type_name, strlen(type_name));
	image__word(type)[3] = name;
	return object(type);
}

static uint64_t call_frame(const char *name, uint64_t self, uint64_t back)
{
	uint64_t frame = frame_of(code(MODULE_FILE, name), back);

	locals(frame)[0] = self;
	locals(frame)[1] = object((uintptr_t)dict_type + 8);
	locals(frame)[2] = object((uintptr_t)dict_type);
	return frame;
}

static void make(unsigned int minor)
{
	image = image__get(minor);
	image->python.walk.code_file = image->python.filename;
	image->python.walk.code_name = image->python.name;
	image->python.walk.code_locals_nr = (uint16_t)(image->python.firstlineno + 4);
	image->python.walk.text_bytes = 48;
	image->python.walk.dict_version = minor <= 13 ? 24 : 0;
	codes = (struct python_codes){.dict_type = (uintptr_t)dict_type,
				      .cell_type = (uintptr_t)cell_type};
}

static struct python_modules find(uint64_t frame)
{
	struct python_modules plain, checked;
	const struct gp_python *py = &image->python.walk;

	assert_true(python_modules(py, &codes, frame, PYTHON_CHECKED, &checked));
	assert_true(python_modules(py, &codes, frame, PYTHON_PLAIN, &plain));
	assert_true(python_modules_equal(&plain, &checked));
	return plain;
}

static void test_calls_are_found(void **state)
{
	for (unsigned int minor = IMAGE_FIRST_MINOR; minor <= IMAGE_LAST_MINOR; minor++) {
		uint64_t outer, inner, frame, self, cell;
		struct python_modules found;

		make(minor);
		self = module("Linear");
		frame = frame_of(code("/train.py", "main"), 0);
		frame = outer = call_frame("Module._wrapped_call_impl", module("Net"), frame);
		frame = frame_of(code("/train.py", "Net.forward"), frame);
		frame = inner = call_frame("_wrapped_call_impl", self, frame);
		/* Variables that an inner function uses lie in cells. */
		frame = call_frame("Module._call_impl", 0, frame);
		if (minor > 10) {
			cell = object((uintptr_t)cell_type);
			image__word(cell)[2] = self;
			locals(frame)[0] = cell;
		}
		found = find(frame_of(code("/torch/nn/modules/linear.py", "forward"), frame));
		assert_int_equal(found.nr, 2);
		assert_false(found.cut);
		assert_int_equal(found.calls[0].frame, inner);
		assert_int_equal(found.calls[0].object, self);
		assert_string_equal((char *)(uintptr_t)found.calls[0].type, "Linear");
		assert_int_equal(found.calls[1].frame, outer);
		assert_string_equal((char *)(uintptr_t)found.calls[1].type, "Net");
	}
}

/* Before PyTorch 2.1 there was only one function. A name alone is not enough. */
static void test_only_the_function_behind_call(void **state)
{
	uint64_t frame;
	struct python_modules found;

	make(11);
	frame = frame_of(code("/my/module.py", "Module._call_impl"), 0);
	frame = call_frame("not_call_impl", module("Never"), frame);
	frame = call_frame("Module._call_impl", module("Linear"), frame);
	found = find(frame);
	assert_int_equal(found.nr, 1);
	assert_int_equal(found.calls[0].frame, frame);
}

static void test_calls_are_told_apart(void **state)
{
	for (unsigned int minor = IMAGE_FIRST_MINOR; minor <= IMAGE_LAST_MINOR; minor++) {
		uint64_t around, frame, before;

		make(minor);
		around = frame_of(code("/train.py", "main"), 0);
		frame = call_frame("_wrapped_call_impl", module("Linear"), around);
		before = find(frame).calls[0].call;
		assert_int_equal(find(frame).calls[0].call, before);
		if (minor <= 13)
			image__word(locals(frame)[2])[3]++;
		else
			locals(around)[LOCALS_NR - 1] = 64;
		assert_int_not_equal(find(frame).calls[0].call, before);
		before = find(frame).calls[0].call;
		/* On 3.14 the tag bits of a reference can change. */
		locals(around)[LOCALS_NR - 1] |= minor > 13;
		assert_int_equal(find(frame).calls[0].call, before);
	}
}

static void test_what_cannot_be(void **state)
{
	struct python_modules found;
	uint64_t frame = 0;

	make(14);
	/* More calls than there is room for. */
	for (int i = 0; i <= GP_MODULE_DEPTH; i++)
		frame = call_frame("_wrapped_call_impl", module("Deep"), frame);
	found = find(frame);
	assert_true(found.cut);
	assert_int_equal(found.nr, GP_MODULE_DEPTH);
	/* Variables that point nowhere, and frames in a circle. */
	locals(frame)[0] = 8;
	assert_false(python_modules(&image->python.walk, &codes, frame, PYTHON_CHECKED, &found));
	frame = frame_of(code("/a.py", "f"), 0);
	image__word(frame + image->python.walk.frame_at)[1] = frame;
	assert_true(python_modules(&image->python.walk, &codes, frame, PYTHON_CHECKED, &found));
	assert_true(found.cut);
}

/* ---- from op to op ---- */

static struct ring_writer w;
static struct ring_reader *r;
static struct {
	size_t nr;
	struct gp_ev_module_call calls[8];
} reported;

static int begin(void **state)
{
	memset(&reported, 0, sizeof(reported));
	return ring_ends_open(&w, &r, 1 << 16);
}

static int end(void **state)
{
	ring_ends_close(&w, r);
	return 0;
}

static int hear(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_module_call *c = event;

	assert_int_equal(c->head.kind, GP_EV_MODULE_CALL);
	assert_int_equal(bytes, sizeof(*c));
	assert_true(reported.nr < 8);
	reported.calls[reported.nr++] = *c;
	return 0;
}

/* Begins and ends an op inside calls of these objects, outermost first. */
static void op(struct thread_modules *m, uint32_t nr, const uint64_t *objects, size_t objects_nr)
{
	m->found.nr = (uint32_t)objects_nr;
	for (size_t i = 0; i < objects_nr; i++)
		m->found.calls[objects_nr - 1 - i] = (struct python_module){
			.frame = i, .object = objects[i], .call = objects[i]};
	for (uint32_t i = modules__keep(m, &w); i < objects_nr; i++)
		modules__open(m, &m->found.calls[objects_nr - 1 - i], 0);
	modules__begin(m, HELP_PREFIX | 1ULL << 32 | nr, clock_now_ns());
	modules__end(m, m->nr, clock_now_ns());
}

static void test_calls_are_followed(void **state)
{
	static struct thread_modules m;
	uint64_t first = HELP_PREFIX | 1ULL << 32;

	m.tid = (uint32_t)getpid();
	op(&m, 1, (uint64_t[]){10, 20}, 2);
	op(&m, 2, (uint64_t[]){10, 30}, 2);
	op(&m, 3, (uint64_t[]){10, 30}, 2);
	op(&m, 4, NULL, 0);
	op(&m, 5, (uint64_t[]){40}, 1);
	modules__leave(&m, &w, 0);
	assert_true(ring_reader__drain(r, hear, NULL) >= 0);
	assert_int_equal(reported.nr, 4);
	for (size_t i = 0; i < reported.nr; i++) {
		static const struct {
			uint64_t object, first, last;
			uint32_t depth;
		} wanted[] = {{20, 1, 1, 1}, {30, 2, 3, 1}, {10, 1, 3, 0}, {40, 5, 5, 0}};

		assert_int_equal(reported.calls[i].object, wanted[i].object);
		assert_int_equal(reported.calls[i].first, first + wanted[i].first);
		assert_int_equal(reported.calls[i].last, first + wanted[i].last);
		assert_int_equal(reported.calls[i].depth, wanted[i].depth);
		assert_true(reported.calls[i].start_ns <= reported.calls[i].head.time_ns);
	}
	assert_true(reported.calls[2].start_ns <= reported.calls[0].start_ns);
	assert_true(reported.calls[2].head.time_ns >= reported.calls[1].head.time_ns);
	/* Calls of an earlier arming are dropped. */
	op(&m, 6, (uint64_t[]){50}, 1);
	modules__leave(&m, &w, 1);
	assert_true(ring_reader__drain(r, hear, NULL) >= 0);
	assert_int_equal(reported.nr, 4);
}

/* The process writes the ring: impossible events are refused and counted. */
static void test_hostile_calls_are_refused(void **state)
{
	const uint64_t now = clock_now_ns(), first = HELP_PREFIX | 1ULL << 32 | 7;
	const struct gp_ev_module_call good = {
		.head = {.kind = GP_EV_MODULE_CALL, .tid = (uint32_t)getpid(), .time_ns = now},
		.start_ns = now,
		.first = first,
		.last = first,
	};
	struct gp_ev_module_call bad[6] = {good, good, good, good, good, good};
	uint64_t losses[GP_LOSS_NR] = {0};

	bad[0].start_ns = now + 1;
	bad[1].first = 1ULL << 32 | 7;
	bad[2].last = first - 1;
	bad[3].last = first + (1ULL << 32);
	bad[4].depth = GP_MODULE_DEPTH;
	bad[5].head.time_ns = UINT64_MAX;
	for (size_t i = 0; i < 6; i++)
		assert_true(ring_writer__write(&w, &bad[i], sizeof(bad[i])));
	assert_true(ring_writer__write(&w, &good, sizeof(good) - 8));
	assert_true(ring_writer__write(&w, &good, sizeof(good)));
	assert_true(ring_reader__drain(r, hear, NULL) >= 0);
	assert_int_equal(reported.nr, 1);
	ring_reader__losses(r, losses);
	assert_int_equal(losses[GP_LOSS_RECORD], 7);
}

static struct python_calls calls_of(uint64_t frame)
{
	struct python_calls plain, checked;

	assert_true(python_calls(&image->python.walk, frame, PYTHON_PLAIN, &plain));
	assert_true(python_calls(&image->python.walk, frame, PYTHON_CHECKED, &checked));
	assert_true(python_calls_equal(&plain, &checked));
	return plain;
}

/* Calls of any function, compared by where the calls around wait and by their variables. */
static void test_python_calls(void **state)
{
	for (unsigned int minor = IMAGE_FIRST_MINOR; minor <= IMAGE_LAST_MINOR; minor++) {
		struct python_calls one, other;
		uint64_t outer, inner;

		make(minor);
		outer = frame_of(code("/a.py", "outer"), 0);
		inner = frame_of(code("/a.py", "inner"), outer);
		one = calls_of(inner);
		assert_int_equal(one.nr, 2);
		assert_int_equal(one.calls[one.at].frame, outer);
		/* The innermost one runs on. */
		locals(inner)[0] = 64;
		*image__word(inner + image->python.walk.frame_at +
			     image->python.walk.frame_instr) += 2;
		other = calls_of(inner);
		assert_int_equal(python_calls_same(&one, &other), 2);
		other = calls_of(frame_of(code("/a.py", "deeper"), inner));
		assert_int_equal(other.nr, 3);
		assert_int_equal(python_calls_same(&one, &other), 2);
		assert_int_equal(python_calls_same(&other, &one), 2);
		other = calls_of(frame_of(code("/a.py", "beside"), outer));
		assert_int_equal(python_calls_same(&one, &other), 1);
		locals(outer)[1] += 8;
		other = calls_of(inner);
		assert_int_equal(python_calls_same(&one, &other), 1);
		locals(outer)[1] -= 8;
		*image__word(outer + image->python.walk.frame_at +
			     image->python.walk.frame_instr) += 2;
		other = calls_of(inner);
		assert_int_equal(python_calls_same(&one, &other), 1);
		other = calls_of(outer);
		assert_int_equal(python_calls_same(&one, &other), 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_are_found),
		cmocka_unit_test(test_only_the_function_behind_call),
		cmocka_unit_test(test_calls_are_told_apart),
		cmocka_unit_test(test_what_cannot_be),
		cmocka_unit_test(test_python_calls),
		cmocka_unit_test_setup_teardown(test_calls_are_followed, begin, end),
		cmocka_unit_test_setup_teardown(test_hostile_calls_are_refused, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
