/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Demangling: real kernels, what is no mangled name, and names made to explode.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/demangle.h"

static void check(const char *name, const char *want)
{
	struct buf out = {0};

	buf__str(&out, "before ");
	assert_int_equal(demangle(&out, name), want != NULL);
	assert_int_equal(buf__error(&out), 0);
	assert_int_equal(strncmp(out.bytes, "before ", 7), 0);
	assert_string_equal(out.bytes + 7, want ? want : "");
	assert_int_equal(out.nr, strlen(out.bytes));
	buf__done(&out);
}

static void test_names(void **state)
{
	check("_Z6reducePKfPfi", "reduce(float const*, float*, int)");
	check("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIP"
	      "cLm3EEEEviT0_T1_",
	      "void at::native::vectorized_elementwise_kernel<4, "
	      "at::native::CUDAFunctor_add<float>,"
	      " std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, "
	      "std::array<char*, 3ul>)");
	check("_ZN12_GLOBAL__N_16kernelIJidEEEvDpT_",
	      "void (anonymous namespace)::kernel<int, double>(int, double)");
	check("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const");
}

static void test_rust(void **state)
{
	check("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt");
	check("_RNvC6_123foo3bar", "123foo::bar");
	check("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
	check("_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of::<usize, f64>");
	check("_RNvC6_123fo", NULL);
}

static void test_not_mangled(void **state)
{
	/* "f" and "Pi" are types to a demangler. */
	static const char *const names[] = {"",	 "f",	"Pi",		"ampere_sgemm_32x128_tn",
					    "_", "_Z",	"_Znot_a_name", "triton_poi_fused_add_0",
					    "?", "_R0", "_Z6reducePK"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		check(names[i], NULL);
}

/* Each parameter is a template of the one before it, twice: 2^levels pieces of text. */
static void bomb(struct buf *name, int levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	assert_true(levels < 36);
	buf__str(name, "_Z1f1AIiiE");
	for (int i = 0; i < levels; i++)
		buf__printf(name, "S_IS%c_S%c_E", digits[i], digits[i]);
	assert_int_equal(buf__error(name), 0);
}

static void test_bomb(void **state)
{
	struct buf name = {0};

	bomb(&name, 1);
	check(name.bytes, "f(A<int, int>, A<A<int, int>, A<int, int> >)");
	buf__clear(&name);
	bomb(&name, 34);
	check(name.bytes, NULL);
	buf__done(&name);
}

/* As deep as a name can be: too deep to print. */
static void test_deep(void **state)
{
	char name[4097];

	memset(name, 'P', sizeof(name));
	memcpy(name, "_Z1f", 4);
	name[4095] = 'i';
	name[4096] = '\0';
	check(name, NULL);
}

/* As long as a name may be, and one byte longer than that. */
static void test_long(void **state)
{
	char name[4098];
	struct buf out = {0};

	memset(name, 'a', sizeof(name));
	memcpy(name, "_Z4089", 6);
	name[4095] = 'v';
	name[4096] = '\0';
	assert_true(demangle(&out, name));
	assert_int_equal(out.nr, 4089 + strlen("()"));
	buf__done(&out);
	memcpy(name, "_Z4090", 6);
	name[4095] = 'a';
	name[4096] = 'v';
	name[4097] = '\0';
	check(name, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	    cmocka_unit_test(test_rust),
		cmocka_unit_test(test_not_mangled), cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_deep),	    cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
