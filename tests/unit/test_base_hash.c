/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * base/hash against a plain array that does the same slowly.
 */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define KEYS  400 /* so few that setting, finding and deleting meet often */
#define STEPS 200000

/* What the hash should hold. */
struct model {
	bool there[KEYS];
	uint64_t value[KEYS];
	size_t nr;
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* Keys that are near each other, far apart, 0 and the greatest. */
static uint64_t key_of(size_t i)
{
	if (i == 0)
		return 0;
	if (i == 1)
		return UINT64_MAX;
	return i < KEYS / 2 ? i : (uint64_t)i << 40;
}

static void compare(const struct hash *h, const struct model *m)
{
	assert_int_equal(h->nr, m->nr);
	for (size_t i = 0; i < KEYS; i++) {
		const uint64_t *v = hash__find(h, key_of(i));

		assert_int_equal(v != NULL, m->there[i]);
		if (v)
			assert_int_equal(*v, m->value[i]);
	}
}

static void delete_one(struct hash *h, struct model *m, size_t i)
{
	uint64_t value = 0;
	bool was = hash__delete(h, key_of(i), &value);

	assert_int_equal(was, m->there[i]);
	if (was)
		assert_int_equal(value, m->value[i]);
	m->nr -= was;
	m->there[i] = false;
}

static void does_what_an_array_does(void **state)
{
	static struct model m;
	struct hash h = {0};
	uint64_t random = 7;

	for (size_t step = 0; step < STEPS; step++) {
		size_t i = next_random(&random) % KEYS;
		/* Tides: mostly setting, then mostly deleting. */
		bool set = next_random(&random) % 8 < (step / 5000 % 2 ? 2 : 6);

		if (set) {
			uint64_t value = next_random(&random);

			assert_int_equal(hash__set(&h, key_of(i), value), 0);
			m.nr += !m.there[i];
			m.there[i] = true;
			m.value[i] = value;
		} else {
			delete_one(&h, &m, i);
		}
		if (step % 1000 == 0)
			compare(&h, &m);
	}
	compare(&h, &m);
	for (size_t i = 0; i < KEYS; i++)
		delete_one(&h, &m, i);
	compare(&h, &m);
	assert_int_equal(h.nr, 0);
	hash__done(&h);
}

static void empty_one_answers(void **state)
{
	struct hash h = {0};

	assert_null(hash__find(&h, 1));
	assert_false(hash__delete(&h, 1, NULL));
	hash__done(&h);
	assert_int_equal(hash__set(&h, 1, 2), 0);
	assert_true(hash__delete(&h, 1, NULL));
	hash__done(&h);
	hash__done(&h);
}

static void bytes_have_known_hashes(void **state)
{
	/* FNV-1a's own start value, mixed; and that every byte counts, the last zero too. */
	assert_true(hash_bytes("", 0) == hash_mix(0xcbf29ce484222325ULL));
	assert_true(hash_bytes("a", 1) == hash_mix(0xaf63dc4c8601ec8cULL));
	assert_true(hash_bytes("a", 1) != hash_bytes("a", 2));
	assert_true(hash_bytes("ab", 2) != hash_bytes("ba", 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_what_an_array_does),
		cmocka_unit_test(empty_one_answers),
		cmocka_unit_test(bytes_have_known_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
