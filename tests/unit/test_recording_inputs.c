/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Lists of inputs as they come from the target: what is right is read whole, whatever else is cut
 * or changed is refused and never read past its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recording/inputs.h"

static const uint8_t sample[] = {
	GP_INPUT_TENSOR,
	6,
	2,
	0x80,
	2,
	3, /* float [256, 3] */
	GP_INPUT_STRIDED,
	4,
	2,
	5,
	3,
	1,
	5, /* long [5, 3], turned */
	GP_INPUT_OTHER,
	GP_INPUT_OPAQUE, /* */
	GP_INPUT_SPARSE,
	7,
	2,
	9,
	0, /* double [9, 0] */
	GP_INPUT_TENSOR_LIST,
	4,
	GP_INPUT_TENSOR,
	11,
	0, /* bool [] */
	GP_INPUT_SPARSE,
	6,
	1,
	2, /* float [2] */
	GP_INPUT_OPAQUE,
	GP_INPUT_CUT, /* */
	GP_INPUT_SCALAR_LIST,
	2,
	GP_INPUT_INT,
	3,
	GP_INPUT_NO_VALUE, /* -2 */
	GP_INPUT_INT,
	0xfe,
	0xff,
	0xff,
	0xff,
	0xff,
	0xff,
	0xff,
	0xff,
	0xff,
	1,
	GP_INPUT_TRUE,
	GP_INPUT_DOUBLE,
	0,
	0,
	0,
	0,
	0,
	0,
	0xd0,
	0x3f,
	GP_INPUT_CUT,
};

static struct input next(struct inputs_reader *r)
{
	struct input in;

	assert_int_equal(inputs_reader__next(r, &in), 1);
	return in;
}

static void test_read(void **state)
{
	struct inputs_reader r;
	struct input in;

	(void)state;
	inputs_reader__init(&r, sample, sizeof(sample));
	in = next(&r);
	assert_int_equal(in.dtype, 6);
	assert_int_equal(in.dims, 2);
	assert_int_equal(in.sizes[0], 256);
	assert_int_equal(in.strides_nr, 2);
	assert_int_equal(in.strides[0], 3);
	assert_int_equal(in.strides[1], 1);
	in = next(&r);
	assert_int_equal(in.strides_nr, 2);
	assert_int_equal(in.strides[0], 1);
	assert_int_equal(in.strides[1], 5);
	assert_int_equal(next(&r).what, GP_INPUT_OTHER);
	assert_int_equal(next(&r).what, GP_INPUT_OPAQUE);
	in = next(&r);
	assert_int_equal(in.dtype, 7);
	assert_int_equal(in.dims, 2);
	assert_int_equal(in.sizes[0], 9);
	assert_int_equal(in.sizes[1], 0);
	assert_int_equal(in.strides_nr, 0);
	assert_int_equal(next(&r).items, 4);
	assert_int_equal(next(&r).dtype, 11);
	assert_int_equal(next(&r).sizes[0], 2);
	assert_int_equal(next(&r).what, GP_INPUT_OPAQUE);
	assert_int_equal(next(&r).what, GP_INPUT_CUT);
	assert_int_equal(next(&r).items, 2);
	assert_int_equal(next(&r).integer, -2);
	assert_int_equal(next(&r).what, GP_INPUT_NO_VALUE);
	assert_true(next(&r).integer == INT64_MAX);
	assert_int_equal(next(&r).what, GP_INPUT_TRUE);
	assert_true(next(&r).real == 0.25);
	assert_int_equal(next(&r).what, GP_INPUT_CUT);
	assert_int_equal(inputs_reader__next(&r, &in), 0);
	assert_true(inputs_are_sane(sample, sizeof(sample)));
}

/* Each in memory of its own length, where a sanitizer sees a step too far. */
static bool is_sane(const uint8_t *data, size_t bytes)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);
	bool sane;

	assert_non_null(copy);
	memcpy(copy, data, bytes);
	sane = inputs_are_sane(copy, bytes);
	free(copy);
	return sane;
}

static void test_damage(void **state)
{
	uint8_t data[sizeof(sample)];

	(void)state;
	for (size_t nr = 0; nr < sizeof(sample); nr++)
		(void)is_sane(sample, nr);
	assert_false(is_sane(sample, 5));
	for (size_t at = 0; at < sizeof(sample); at++) {
		for (unsigned int value = 0; value < 256; value++) {
			memcpy(data, sample, sizeof(data));
			data[at] = (uint8_t)value;
			(void)is_sane(data, sizeof(data));
		}
	}
}

static void test_refused(void **state)
{
	static const uint8_t many_dims[] = {GP_INPUT_TENSOR,
					    6,
					    GP_INPUT_DIMS_MAX + 1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1,
					    1};
	static const uint8_t negative[] = {
		GP_INPUT_TENSOR, 6, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
	static const uint8_t long_number[] = {GP_INPUT_INT, 0xff, 0xff, 0xff, 0xff, 0xff,
					      0xff,	    0xff, 0xff, 0xff, 0xff, 1};
	static const uint8_t nested[] = {GP_INPUT_TENSOR_LIST, 1, GP_INPUT_TENSOR_LIST, 0};
	static const uint8_t mixed[] = {GP_INPUT_SCALAR_LIST, 1, GP_INPUT_OPAQUE};
	static const uint8_t after_cut[] = {GP_INPUT_CUT, GP_INPUT_OTHER};
	static const uint8_t unknown[] = {12};
	static const uint8_t short_list[] = {GP_INPUT_TENSOR_LIST, 2, GP_INPUT_OPAQUE};
	uint8_t many[GP_INPUTS_MAX + 2] = {0};

	(void)state;
	assert_false(is_sane(many_dims, sizeof(many_dims)));
	assert_false(is_sane(negative, sizeof(negative)));
	assert_false(is_sane(long_number, sizeof(long_number)));
	assert_false(is_sane(nested, sizeof(nested)));
	assert_false(is_sane(mixed, sizeof(mixed)));
	assert_false(is_sane(after_cut, sizeof(after_cut)));
	assert_false(is_sane(unknown, sizeof(unknown)));
	assert_false(is_sane(short_list, sizeof(short_list)));
	assert_false(is_sane(many, sizeof(many)));
	assert_true(is_sane(many, GP_INPUTS_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
