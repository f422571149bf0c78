/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Digests: known answers, and inputs that only together are the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/digest.h"

static void check(struct digest *d, const char *expected)
{
	char text[DIGEST_TEXT_BYTES];
	uint8_t sum[DIGEST_BYTES];

	digest__end(d, sum);
	digest_text(sum, text);
	assert_string_equal(text, expected);
}

/* Made by Python's hashlib.blake2b(..., digest_size=32). */
static void test_known_answers(void **state)
{
	struct digest d;

	digest__init(&d);
	check(&d, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
	digest__init(&d);
	digest__add_text(&d, "abc");
	digest__add_number(&d, 7);
	check(&d, "3b4c94faf8e7b847760cc2fd63cdab6e08221196bfae87ed4c527358f79ae314");
}

static void test_ends_of_inputs(void **state)
{
	uint8_t a[DIGEST_BYTES], b[DIGEST_BYTES];
	struct digest d;

	digest__init(&d);
	digest__add_text(&d, "a");
	digest__add_text(&d, "bc");
	digest__end(&d, a);
	digest__init(&d);
	digest__add_text(&d, "ab");
	digest__add_text(&d, "c");
	digest__end(&d, b);
	assert_memory_not_equal(a, b, DIGEST_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_answers),
		cmocka_unit_test(test_ends_of_inputs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
