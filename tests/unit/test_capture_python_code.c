/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Code objects read from a process, which is this one: what has been freed is not believed, and
 * neither is what has been freed in part.
 */
#include "capture/symbols/python_code.h"
#include "unit/python_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE	  41
#define REFERENCE 1
/* An ASCII text in one piece. */
#define TEXT_STATE (1 << 2 | 32 | 64)
/* What an allocator writes over a freed block's begin. */
#define FREED 0x7f0012345678ULL

struct made {
	struct image *image;
	struct python_codes *codes;
	uint64_t code;
	struct gp_stack_frame frame;
};

static uint64_t field(const struct made *m, uint16_t at)
{
	return *image__word(m->code + at);
}

/* One code object of a function "made.py", all of whose instructions are in one line. */
static void make(struct made *m, unsigned int minor)
{
	uint8_t bytes[PYTHON_CODE_BYTES];
	struct target_python *py;
	int32_t line = LINE;

	m->image = image__get(minor);
	py = &m->image->python;
	py->pid = getpid();
	py->ascii_bytes = 48;
	m->code = image__code(m->image, "made.py", 3);
	*image__word(m->code) = REFERENCE;
	py->code_type = *image__word(m->code + 8);
	memcpy((void *)(uintptr_t)(m->code + py->name), &(uint64_t){field(m, py->filename)}, 8);
	memcpy((void *)(uintptr_t)(m->code + py->firstlineno), &line, sizeof(line));
	*image__word(field(m, py->filename) + 32) = TEXT_STATE;
	*image__word(field(m, py->linetable)) = REFERENCE;
	memcpy(bytes, (const void *)(uintptr_t)m->code, sizeof(bytes));
	m->frame =
		(struct gp_stack_frame){.code = m->code, .check = target_python_check(py, bytes)};
	m->codes = python_codes__new(py);
	assert_non_null(m->codes);
}

static int place(const struct made *m, struct python_place *ret_place)
{
	return python_codes__place(m->codes, &m->frame, ret_place);
}

static void test_alive(void **state)
{
	struct python_place place_of;
	struct made m;

	(void)state;
	for (unsigned int minor = IMAGE_FIRST_MINOR; minor <= IMAGE_LAST_MINOR; minor++) {
		make(&m, minor);
		assert_int_equal(place(&m, &place_of), 0);
		assert_string_equal(place_of.function, "made.py");
		assert_int_equal(place_of.first_line, LINE);
		python_codes__free(m.codes);
	}
}

/* Each of the words 0: no references. */
static void refuses(unsigned int minor, bool table, uint64_t references)
{
	struct python_place place_of;
	struct made m;
	uint64_t *word;

	make(&m, minor);
	word = image__word(table ? field(&m, m.image->python.linetable) : m.code);
	*word = references;
	assert_int_not_equal(place(&m, &place_of), 0);
	/* Nothing of it was kept. */
	*word = REFERENCE;
	assert_int_equal(place(&m, &place_of), 0);
	python_codes__free(m.codes);
}

static void test_freed(void **state)
{
	(void)state;
	for (unsigned int minor = IMAGE_FIRST_MINOR; minor <= IMAGE_LAST_MINOR; minor++)
		for (int table = 0; table <= 1; table++) {
			refuses(minor, table, 0);
			refuses(minor, table, FREED);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alive),
		cmocka_unit_test(test_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
