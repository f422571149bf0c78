/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Operators' names out of symbols and schema texts, and the globs that choose among them.
 */
#include "probe/plan/globs.h"
#include "probe/plan/names.h"

#include <errno.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_symbols(void **state)
{
	static const char *const bad[] = {
		"",
		"_ZN2at4_ops",
		"_ZN2at4_ops10",
		"_ZN2at4_ops10add_Tensor",
		"_ZN2at4_ops10add_Tensor4call",
		"_ZN2at4_ops10add_Tensor10redispatchEN3c1014DispatchKeySetE",
		"_ZN2at4_ops9add_Tensor4callE",
		"_ZN2at4_ops0add4callE",
		"_ZN2at4_ops4callE",
		"_ZN2at4_ops99999999999999999999add4callE",
		"_ZN2at6native10add_Tensor4callE",
	};
	const char *joined;
	size_t bytes;

	assert_int_equal(
		op_symbol_parse("_ZN2at4_ops10add_Tensor4callERKNS_6TensorE", &joined, &bytes), 0);
	assert_int_equal(bytes, 10);
	assert_memory_equal(joined, "add_Tensor", 10);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(op_symbol_parse(bad[i], &joined, &bytes), -EINVAL);
}

static void expect_op_frame(const char *symbol, const char *name)
{
	const char *got;
	size_t bytes;

	assert_int_equal(op_frame_parse(symbol, &got, &bytes), name ? 0 : -EINVAL);
	if (!name)
		return;
	assert_int_equal(bytes, strlen(name));
	assert_memory_equal(got, name, bytes);
}

static void expect_node_frame(const char *symbol, const char *name)
{
	char got[NODE_NAME_BYTES];

	assert_int_equal(node_frame_parse(symbol, got, sizeof(got)), name ? 0 : -EINVAL);
	if (name)
		assert_string_equal(got, name);
}

static void test_frames(void **state)
{
	char small[8];

	expect_op_frame("_ZN2at4_ops10add_Tensor4callERKNS_6TensorE", "add_Tensor");
	expect_op_frame("_ZN2at4_ops2mm10redispatchEN3c1014DispatchKeySetE.cold", "mm");
	expect_op_frame("_ZN2at4_ops2mm6schemaE", NULL);
	expect_op_frame("_ZN2at4_ops99mm4callE", NULL);
	expect_op_frame("_ZN2at4_ops", NULL);
	expect_node_frame("_ZN5torch8autograd9generated11MmBackward05applyEOSt6vector",
			  "MmBackward0");
	expect_node_frame("_ZN5torch8autograd14AccumulateGrad5applyEOSt6vector",
			  "torch::autograd::AccumulateGrad");
	expect_node_frame("_ZN5torch8autograd6Engine5applied", NULL);
	expect_node_frame("", NULL);
	assert_int_equal(node_frame_parse("_ZN5torch8autograd9generated11MmBackward05applyE", small,
					  sizeof(small)),
			 -EINVAL);
}

static void expect_node(const char *symbol, const char *name)
{
	char got[NODE_NAME_BYTES];
	int err = node_name_parse(symbol, got, sizeof(got));

	if (name) {
		assert_int_equal(err, 0);
		assert_string_equal(got, name);
	} else {
		assert_int_equal(err, -EINVAL);
	}
}

static void test_nodes(void **state)
{
	char longest[600] = "_ZTVN250";

	expect_node("_ZTVN5torch8autograd9generated11MmBackward0E", "MmBackward0");
	expect_node("_ZTVN5torch8autograd14AccumulateGradE", "torch::autograd::AccumulateGrad");
	expect_node("_ZTVN5torch8autograd7CppNodeIN6vision3ops9RoiAlignFE",
		    "torch::autograd::CppNode");
	expect_node("_ZTVN5torch8autograd99MmBackward0E", NULL);
	expect_node("_ZTVN5torch8autograd", NULL);
	expect_node("_ZTVNE", NULL);
	expect_node("_ZTVN99999999999999999999999aE", NULL);
	expect_node("_ZN5torch8autogradE", NULL);
	expect_node("", NULL);
	memset(longest + 8, 'a', 250);
	longest[258] = 'E';
	expect_node(longest, NULL);
}

static void add(struct op_names *names, const char *joined)
{
	assert_int_equal(op_names__add(names, joined, strlen(joined)), 0);
}

static void expect(const struct op_names *names, const char *joined, const char *name,
		   const char *overload, bool whole)
{
	const struct op_name *n = op_names__find(names, joined, strlen(joined));

	assert_non_null(n);
	if (!name) {
		assert_null(n->name);
		return;
	}
	assert_non_null(n->name);
	assert_string_equal(n->name, name);
	assert_string_equal(n->overload, overload);
	assert_int_equal(n->whole, whole);
}

static void test_schemas(void **state)
{
	static const char text[] =
		"\0some words (of no matter) -> here\0"
		"add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)\0"
		"aten::add.Tensor(Tensor self, Tensor other) -> Tensor\0"
		"__and__.Scalar(Tensor self, Scalar other) -> Tensor\0"
		"_softmax_backward_data.out(Tensor g, *, Tensor(a!) o) -> Tensor(a!)\0"
		"_conj(Tensor(a) self) -> Tensor(a)\0"
		"quantized::mul(Tensor qa, Tensor qb) -> Tensor qc\0"
		"max_pool2d_with_indices(Tensor self) -> (Tensor, Tensor)\0"
		"relu(Tensor self -> Tensor\0"
		"unended(Tensor self) -> Tensor";
	static const char *const known[] = {"add__Tensor",
					    "add_Tensor",
					    "__and___Scalar",
					    "_softmax_backward_data_out",
					    "_conj",
					    "conj",
					    "mul",
					    "max_pool2d_with_indices",
					    "relu",
					    "unended",
					    "nowhere"};
	struct op_names names = {0};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		add(&names, known[i]);
	add(&names, "conj");
	assert_int_equal(op_names__scan(&names, (const unsigned char *)text, sizeof(text) - 1), 0);
	expect(&names, "add__Tensor", "aten::add_", "Tensor", true);
	expect(&names, "add_Tensor", "aten::add", "Tensor", true);
	expect(&names, "__and___Scalar", "aten::__and__", "Scalar", true);
	expect(&names, "_softmax_backward_data_out", "aten::_softmax_backward_data", "out", true);
	expect(&names, "_conj", "aten::_conj", "", true);
	expect(&names, "conj", "aten::conj", "", false);
	expect(&names, "mul", NULL, NULL, false);
	expect(&names, "max_pool2d_with_indices", "aten::max_pool2d_with_indices", "", true);
	expect(&names, "relu", NULL, NULL, false);
	expect(&names, "unended", "aten::unended", "", true);
	expect(&names, "nowhere", NULL, NULL, false);
	assert_null(op_names__find(&names, "absent", 6));
	op_names__done(&names);
}

/* A text of its own wins over the end of another, whichever comes first. */
static void test_whole_wins(void **state)
{
	static const char before[] = "x.out(int a) -> b\0_x.out(int a) -> b\0y_x.out(int a) -> b";
	static const char after[] = "_x.out(int a) -> b\0x.out(int a) -> b";
	static const char only[] = "ab_x.out(int a) -> b";
	struct op_names names[3] = {0};

	for (int i = 0; i < 3; i++)
		add(&names[i], "x_out");
	assert_int_equal(op_names__scan(&names[0], (const unsigned char *)before, sizeof(before)),
			 0);
	assert_int_equal(op_names__scan(&names[1], (const unsigned char *)after, sizeof(after)), 0);
	assert_int_equal(op_names__scan(&names[2], (const unsigned char *)only, sizeof(only)), 0);
	expect(&names[0], "x_out", "aten::x", "out", true);
	expect(&names[1], "x_out", "aten::x", "out", true);
	expect(&names[2], "x_out", "aten::x", "out", false);
	for (int i = 0; i < 3; i++)
		op_names__done(&names[i]);
}

static void test_hostile(void **state)
{
	struct op_names names = {0};
	unsigned char noise[4096];
	uint32_t seed = 7;

	add(&names, "a");
	assert_int_equal(op_names__scan(&names, noise, 0), 0);
	memset(noise, 'a', sizeof(noise));
	memcpy(noise + 4000, "(a) -> a", 8);
	assert_int_equal(op_names__scan(&names, noise, sizeof(noise)), 0);
	expect(&names, "a", NULL, NULL, false);
	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < sizeof(noise); i++) {
			seed = seed * 1664525 + 1013904223;
			noise[i] = (unsigned char)"a.() ->:\0_b"[(seed >> 16) % 11];
		}
		assert_int_equal(op_names__scan(&names, noise, sizeof(noise)), 0);
	}
	op_names__done(&names);
}

static struct gp_globs globs;

static bool fits(const char *patterns, const char *name)
{
	assert_int_equal(globs_compile(patterns, &globs), 0);
	return globs_fit(&globs, name);
}

static void test_globs(void **state)
{
	assert_true(fits("aten::mm", "aten::mm"));
	assert_true(fits("x,aten::conv*,", "aten::conv2d"));
	assert_true(fits("*", "aten::mm"));
	assert_true(fits("*,x", ""));
	assert_true(fits("a[[:digit:]x]c,z", "a7c"));
	assert_true(fits("aten::conv[123]d", "aten::conv3d"));
	assert_false(fits("aten::conv[123]d", "aten::conv4d"));
	assert_false(fits("", "aten::mm"));
	assert_false(fits(",,", ""));
	assert_false(fits("aten::m", "aten::mm"));
	assert_false(fits("aten::mm", "aten::m"));
}

/* One pattern against fnmatch(), of an alphabet in which much is near a match. */
static void test_globs_are_those_of_fnmatch(void **state)
{
	static const char alphabet[] = "ab*?*b[]!-\\^:a";
	uint32_t random = 1, alike = 0;

	for (int i = 0; i < 300000; i++) {
		char pattern[12] = "", name[10] = "";

		for (size_t k = 0; k < sizeof(pattern) - 1; k++) {
			random = random * 1664525U + 1013904223U;
			if (random >> 28 > 12)
				break;
			pattern[k] = alphabet[(random >> 20) % (sizeof(alphabet) - 1)];
		}
		for (size_t k = 0; k < sizeof(name) - 1; k++) {
			random = random * 1664525U + 1013904223U;
			if (random >> 28 > 13)
				break;
			name[k] = "aabb-]:"[(random >> 20) % 7];
		}
		/* What a backslash at the end means is not said. */
		if (!*pattern || pattern[strlen(pattern) - 1] == '\\')
			continue;
		if (fits(pattern, name) != !fnmatch(pattern, name, 0))
			fail_msg("'%s' and '%s'", pattern, name);
		alike += fits(pattern, name);
	}
	assert_true(alike > 1000);
}

static void test_globs_have_an_end(void **state)
{
	static char many[2 * GP_GLOB_TOKENS];

	memset(many, 'a', GP_GLOB_TOKENS - 2);
	assert_int_equal(globs_compile(many, &globs), 0);
	assert_true(globs_fit(&globs, many));
	memset(many, 'a', GP_GLOB_TOKENS - 1);
	assert_int_equal(globs_compile(many, &globs), -E2BIG);
	memset(many, 0, sizeof(many));
	for (size_t i = 0; i < GP_GLOB_SETS; i++)
		memcpy(many + 3 * i, "[a]", 3);
	assert_int_equal(globs_compile(many, &globs), 0);
	memcpy(many + 3UL * GP_GLOB_SETS, "[a]", 3);
	assert_int_equal(globs_compile(many, &globs), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_schemas),
		cmocka_unit_test(test_whole_wins),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_globs),
		cmocka_unit_test(test_globs_are_those_of_fnmatch),
		cmocka_unit_test(test_globs_have_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
