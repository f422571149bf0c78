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

/* RFC 8439, 2.5.2. */
static void test_checksum(void **state)
{
	static const uint8_t key[DIGEST_BYTES] = {0x85, 0xd6, 0xbe, 0x78, 0x57, 0x55, 0x6d, 0x33,
						  0x7f, 0x44, 0x52, 0xfe, 0x42, 0xd5, 0x06, 0xa8,
						  0x01, 0x03, 0x80, 0x8a, 0xfb, 0x0d, 0xb2, 0xfd,
						  0x4a, 0xbf, 0xf6, 0xaf, 0x41, 0x49, 0xf5, 0x1b};
	static const uint8_t expected[CHECKSUM_BYTES] = {0xa8, 0x06, 0x1d, 0xc1, 0x30, 0x51,
							 0x36, 0xc6, 0xc2, 0x2b, 0x8b, 0xaf,
							 0x0c, 0x01, 0x27, 0xa9};
	static const char text[] = "Cryptographic Forum Research Group";
	uint8_t sum[CHECKSUM_BYTES];

	checksum_bytes(text, strlen(text), key, sum);
	assert_memory_equal(sum, expected, CHECKSUM_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_answers),
		cmocka_unit_test(test_ends_of_inputs),
		cmocka_unit_test(test_checksum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
