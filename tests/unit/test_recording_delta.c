/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Events as differences and back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recording/delta.h"
#include "recording/format.h"
#include "wire.h"

#define BYTES 65536

static uint64_t random_word(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 11 ^ *state << 40;
}

/* Runs of any kinds and lengths. How many bytes they are. */
static size_t make_runs(uint8_t *to, uint64_t seed)
{
	size_t at = 0;

	for (;;) {
		struct format_run run = {
			.bytes = 8 * (2 + (uint32_t)(random_word(&seed) % 12)),
			.nr = 1 + (uint32_t)(random_word(&seed) % 9),
		};

		if (at + sizeof(run) + (size_t)run.bytes * run.nr > BYTES)
			return at;
		memcpy(to + at, &run, sizeof(run));
		at += sizeof(run);
		for (uint32_t i = 0; i < run.nr * (run.bytes / 8); i++, at += 8) {
			uint64_t word = random_word(&seed);

			memcpy(to + at, &word, 8);
			to[at] = (uint8_t)(word % 5); /* kinds come again */
		}
	}
}

static void test_there_and_back(void **state)
{
	uint8_t *events = malloc(BYTES), *deltas = malloc(BYTES);

	for (uint64_t seed = 1; seed < 50; seed++) {
		size_t bytes = make_runs(events, seed);

		delta_encode(events, bytes, deltas);
		assert_memory_not_equal(events, deltas, bytes);
		assert_int_equal(delta_decode(deltas, bytes), 0);
		assert_memory_equal(events, deltas, bytes);
	}
	free(events);
	free(deltas);
}

/* By hand, as FORMAT.md has it. */
static void test_by_hand(void **state)
{
	static const struct {
		struct format_run two;
		uint64_t a[3], b[3];
		struct format_run one;
		uint64_t c[2];
		struct format_run longer;
		uint64_t d[4];
	} events =
		{
			{24, 2}, {0x100000001, 7, 9},	 {0x300000001, 6, 9}, {16, 1}, {0x2, 5},
			{32, 1}, {0x300000101, 8, 9, 4},
		},
	  expected = {
		  {24, 2}, {0x100000001, 7, 9}, {0x200000001, UINT64_MAX, 0}, {16, 1}, {0x2, 5},
		  {32, 1}, {0x101, 2, 0, 4},
	  };
	uint64_t to[sizeof(events) / 8];

	delta_encode((const uint8_t *)&events, sizeof(events), (uint8_t *)to);
	assert_memory_equal(to, &expected, sizeof(expected));
	assert_int_equal(delta_decode((uint8_t *)to, sizeof(to)), 0);
	assert_memory_equal(to, &events, sizeof(events));
}

static void test_nothing(void **state)
{
	assert_int_equal(delta_decode(NULL, 0), 0);
}

static void test_no_runs(void **state)
{
	static const struct format_run runs[] = {
		{0, 1}, {8, 1}, {20, 1}, {16, 0}, {16, 2}, {16, UINT32_MAX}, {UINT32_MAX - 7, 1},
	};

	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		uint64_t content[3] = {0};

		memcpy(content, &runs[i], sizeof(runs[i]));
		assert_int_equal(delta_decode((uint8_t *)content, sizeof(content)), -EBADMSG);
	}
	for (size_t bytes = 1; bytes < 24; bytes++) {
		uint64_t content[3] = {0};

		memcpy(content, &(struct format_run){16, 1}, sizeof(struct format_run));
		assert_int_equal(delta_decode((uint8_t *)content, bytes), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_no_runs),
	};

	return cmocka_run_group_tests_name("recording_delta", tests, NULL, NULL);
}
