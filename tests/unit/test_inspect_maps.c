/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Lines of /proc/PID/maps: those the kernel writes, and those it never would.
 */
#include "inspect/access/maps.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

/* Parses a copy of exactly the line's size, so that a sanitizer sees a step behind it. The copy
 * lives until the next call. */
static int parse(const char *line, struct map_line *ret_map)
{
	static char *copy;

	free(copy);
	copy = line ? strdup(line) : NULL;
	return line ? map_line_parse(copy, ret_map) : 0;
}

static void takes_what_the_kernel_writes(void **state)
{
	struct map_line m;

	assert_int_equal(parse("7f10a000-7f10b000 r-xp 0001a000 fd:01 394222            "
			       "         /usr/lib/libc.so.6",
			       &m),
			 0);
	assert_int_equal(m.start, 0x7f10a000);
	assert_int_equal(m.end, 0x7f10b000);
	assert_int_equal(m.offset, 0x1a000);
	assert_int_equal(m.device, makedev(0xfd, 1));
	assert_int_equal(m.inode, 394222);
	assert_true(m.executable);
	assert_false(m.deleted);
	assert_string_equal(m.path, "/usr/lib/libc.so.6");
	assert_int_equal(parse("7ffc1000-7ffc2000 rw-s 00000000 00:00 0 ", &m), 0);
	assert_string_equal(m.path, "");
	assert_false(m.executable);
	assert_int_equal(parse("7ffc1000-7ffc2000 rw-p 00000000 00:00 0", &m), 0);
	assert_string_equal(m.path, "");
	assert_int_equal(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    "
			       "              [vsyscall]",
			       &m),
			 0);
	assert_true(m.executable);
	assert_string_equal(m.path, "[vsyscall]");
	(void)parse(NULL, NULL);
}

static void knows_names(void **state)
{
	static const struct {
		const char *written, *path;
		bool deleted;
	} names[] = {
		{"/a b/c", "/a b/c", false},
		{"/a\\012b", "/a\nb", false},
		{"/a\\012", "/a\n", false},
		{"/a\\01", "/a\\01", false},
		{"/a\\134", "/a\\134", false},
		{"/a (deleted)", "/a", true},
		{"/a (deleted) (deleted)", "/a (deleted)", true},
		{"/memfd:x (deleted)", "/memfd:x", true},
		{"/ (deleted)", "/", true},
		{" (deleted)", "(deleted)", false},
		{"/x(deleted)", "/x(deleted)", false},
		{"[anon: (deleted)", "[anon: (deleted)", false},
		{"/\\012 (deleted)", "/\n", true},
	};
	char line[256];
	struct map_line m;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		(void)snprintf(line, sizeof(line), "1000-2000 r-xp 00000000 08:01 7 %s",
			       names[i].written);
		assert_int_equal(parse(line, &m), 0);
		assert_string_equal(m.path, names[i].path);
		assert_int_equal(m.deleted, names[i].deleted);
	}
	(void)parse(NULL, NULL);
}

static void refuses_the_rest(void **state)
{
	static const char *const lines[] = {
		"",
		" ",
		"-",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 r",
		"1000-2000 r-x",
		"1000-2000 r-xp",
		"1000-2000 r-xp ",
		"1000-2000 r-xp 0",
		"1000-2000 r-xp 0 ",
		"1000-2000 r-xp 0 8:1",
		"1000-2000 r-xp 0 8:1 ",
		"1000-2000 r-xp 0 8:1 x",
		"1000-2000 r-xp 0 8:1 7x /a",
		"1000-2000 r-xp 0 8:1 7\t/a",
		"1000-2000 r-xp 0 8:1 -7 /a",
		"1000-2000 r-xp 0 8: 7 /a",
		"1000-2000 r-xp 0 :1 7 /a",
		"1000-2000 r-xp 0 100000000:1 7 /a",
		"1000-2000 r-xp g 8:1 7 /a",
		"1000-2000 r-xq 0 8:1 7 /a",
		"1000-2000 wr-p 0 8:1 7 /a",
		"1000-2000  r-xp 0 8:1 7 /a",
		" 1000-2000 r-xp 0 8:1 7 /a",
		"+1000-2000 r-xp 0 8:1 7 /a",
		"0x1000-2000 r-xp 0 8:1 7 /a",
		"1000-1000 r-xp 0 8:1 7 /a",
		"2000-1000 r-xp 0 8:1 7 /a",
		"1000-10000000000000000 r-xp 0 8:1 7 /a",
		"1000-2000 r-xp fffffffffffffffff 8:1 7 /a",
		"1000-2000 r-xp 0 8:1 99999999999999999999 /a",
	};
	struct map_line m = {.inode = 4242};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (parse(lines[i], &m) != -EBADMSG)
			fail_msg("taken: '%s'", lines[i]);
	assert_int_equal(m.inode, 4242);
	(void)parse(NULL, NULL);
}

static void knows_a_torn_list(void **state)
{
	assert_true(maps_in_order(""));
	assert_true(maps_in_order("1000-2000 r-xp 0 8:1 7 /a\n2000-3000 r--p 0 8:1 7 /a\n"));
	/* Joined with the next one in between; told again; grown to its front. */
	assert_false(maps_in_order("1000-2000 r-xp 0 8:1 7 /a\n1000-4000 r-xp 0 8:1 7 /a\n"));
	assert_false(maps_in_order("1000-2000 r-xp 0 8:1 7 /a\n1000-2000 r-xp 0 8:1 7 /a\n"));
	assert_false(maps_in_order("1000-2000 rw-p 0 0:0 0\n1800-4000 rw-p 0 0:0 0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_the_kernel_writes),
		cmocka_unit_test(knows_names),
		cmocka_unit_test(refuses_the_rest),
		cmocka_unit_test(knows_a_torn_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
