/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Schema texts: what the arguments of an operator are, and which of them it writes.
 */
#include "probe/plan/schemas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_lines(void **state)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
		{"add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1", "add_ Tto\n"},
		{"aten::relu(Tensor self", "relu t\n"},
		{"rand(SymInt[] size, *, ScalarType? dtype=None, Device? device=None",
		 "rand ooo\n"},
		{"_foreach_mul_.List(Tensor(a!)[] self, Tensor[] other", "_foreach_mul_ Ll\n"},
		{"linear(Tensor input, Tensor weight, Tensor? bias=None", "linear ttq\n"},
		{"mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out", "mm ttT\n"},
		{"view(Tensor(a) self, SymInt[] size", "view to\n"},
		{"index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool b=False",
		 "index_put_ Toto\n"},
		{"mean.dim(Tensor self, int[1]? dim=[0, 1], str s=\"a, (b\"", "mean too\n"},
		{"cat(Tensor[]? x, Tensor(a -> *)[] y", "cat kl\n"},
		{"prims::add(Tensor a, Tensor b", "prims::add tt\n"},
		{"nothing(", "nothing \n"},
		{"no schema", ""},
		{"(Tensor a", ""},
		{"open(Tensor(a", "open o\n"},
		{"", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = {0};

		schemas_line(cases[i].text, strlen(cases[i].text), &out);
		assert_int_equal(buf__error(&out), 0);
		assert_string_equal(out.bytes ? out.bytes : "", cases[i].line);
		buf__done(&out);
	}
}

/* More than can be told are not told. */
static void test_too_many_arguments(void **state)
{
	char text[2048] = "many(";
	struct buf out = {0};
	size_t nr = strlen(text);

	for (int i = 0; i < 129; i++) {
		memcpy(text + nr, "int a, ", 7);
		nr += 7;
	}
	schemas_line(text, nr, &out);
	assert_int_equal(out.nr, 0);
	schemas_line(text, nr - 7, &out);
	assert_int_equal(out.nr, strlen("many ") + 128 + 1);
	buf__done(&out);
}

static int collect(const char *text, size_t bytes, void *arg)
{
	struct buf *out = arg;

	buf__add(out, text, bytes);
	buf__char(out, '|');
	return buf__error(out);
}

static void test_finds_texts(void **state)
{
	static const char data[] = "junk\0one(Tensor a) -> Tensor\0) -> \0two() -> ()\0half(int";
	struct buf out = {0};

	assert_int_equal(schemas_each((const unsigned char *)data, sizeof(data), collect, &out), 0);
	assert_string_equal(out.bytes, "one(Tensor a||two(|");
	buf__done(&out);
}

static void test_not_a_library(void **state)
{
	struct reason why = {0};
	struct buf out = {0};

	assert_true(schemas_read("/dev/null", &why, &out) < 0);
	assert_true(why.text[0]);
	buf__done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_too_many_arguments),
		cmocka_unit_test(test_finds_texts),
		cmocka_unit_test(test_not_a_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
