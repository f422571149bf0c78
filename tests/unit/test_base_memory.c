/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define MEMINFO "MemTotal:       24683520 kB\nMemFree: 1 kB\nMemAvailable:   23579136 kB\n"

static void test_parse(void **state)
{
	struct memory_now now;

	(void)state;
	assert_true(memory_parse("4000 1234 900 1 0 2 0\n", MEMINFO, 4096, &now));
	assert_int_equal(now.own, 1234 * 4096);
	assert_int_equal(now.left, 23579136ULL * 1024);
}

static void test_unknown(void **state)
{
	struct memory_now now;

	(void)state;
	assert_false(memory_parse("", MEMINFO, 4096, &now));
	assert_false(memory_parse("4000 x", MEMINFO, 4096, &now));
	/* Kernels before 3.14. */
	assert_false(memory_parse("4000 1234 900", "MemTotal: 1 kB\nMemFree: 1 kB\n", 4096, &now));
	assert_false(memory_parse("4000 18446744073709551615 9", MEMINFO, 4096, &now));
	assert_false(memory_parse("4000 1234 9", "x\nMemAvailable: 18446744073709551615 kB\n", 4096,
				  &now));
}

static void test_now(void **state)
{
	struct memory_now now;

	(void)state;
	assert_true(memory_now(&now));
	assert_true(now.own > 100000 && now.left > 0);
}

static char mount[64];

static int make_mount(void **state)
{
	(void)state;
	(void)snprintf(mount, sizeof(mount), "/tmp/gpuprof-test-XXXXXX");
	return mkdtemp(mount) ? 0 : -1;
}

static int drop_mount(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", mount);
	return system(command);
}

/* A file of a group, whose folders are made. */
static void put(const char *path, const char *text)
{
	char whole[256];
	FILE *file;

	(void)snprintf(whole, sizeof(whole), "%s%s", mount, path);
	for (char *slash = whole + strlen(mount); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(whole, 0700);
		*slash = '/';
	}
	file = fopen(whole, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

#define LEFT(cgroups) memory_group_left(cgroups, mount)

static void test_version_2(void **state)
{
	(void)state;
	assert_true(LEFT("0::/a/b\n") == UINT64_MAX);
	put("/a/b/memory.max", "max\n");
	put("/a/b/memory.current", "500\n");
	assert_true(LEFT("0::/a/b\n") == UINT64_MAX);
	put("/a/b/memory.max", "2000\n");
	assert_int_equal(LEFT("0::/a/b\n"), 1500);
	/* What files take is given back before anything is refused; others' lines are not it. */
	put("/a/b/memory.stat", "anon 7\ninactive_file 300\ntotal_inactive_file 9\nactive_file 60\n"
				"slab_reclaimable 5\nslab_unreclaimable 3\n");
	assert_int_equal(LEFT("0::/a/b\n"), 1865);
	put("/a/b/memory.stat", "inactive_file 501\n");
	assert_int_equal(LEFT("0::/a/b\n"), 2000);
	put("/a/b/memory.stat", "inactive_file -1\n");
	assert_int_equal(LEFT("0::/a/b\n"), 1500);
	/* The lower of its limits counts. */
	put("/a/b/memory.high", "1900\n");
	assert_int_equal(LEFT("0::/a/b\n"), 1400);
	put("/a/b/memory.high", "max\n");
	assert_int_equal(LEFT("0::/a/b\n"), 1500);
	/* A group above it has less left. */
	put("/a/memory.max", "3000\n");
	put("/a/memory.current", "2900\n");
	assert_int_equal(LEFT("0::/a/b\n"), 100);
	put("/a/memory.current", "3100\n");
	assert_int_equal(LEFT("0::/a/b\n"), 0);
	/* Those beside it and below it do not count. */
	assert_true(LEFT("0::/c/b\n") == UINT64_MAX);
	assert_true(LEFT("0::/\n") == UINT64_MAX);
}

static void test_version_1(void **state)
{
	const char *cgroups = "9:name=systemd:/a\n4:memory:/a\n3:cpuset:/\n0::/\n";

	(void)state;
	assert_true(LEFT(cgroups) == UINT64_MAX);
	/* As it is without a limit. */
	put("/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/memory/memory.usage_in_bytes", "4096\n");
	assert_true(LEFT(cgroups) > 1ULL << 60);
	put("/memory/a/memory.limit_in_bytes", "9000\n");
	put("/memory/a/memory.usage_in_bytes", "8000\n");
	assert_int_equal(LEFT(cgroups), 1000);
	put("/memory/a/memory.stat",
	    "inactive_file 11\nactive_file 7\ntotal_inactive_file 50\ntotal_active_file 2000\n");
	assert_int_equal(LEFT(cgroups), 3050);
	/* Mounted together with another controller, which its own name leads to. */
	assert_int_equal(LEFT("4:cpu,memory:/a\n"), 3050);
	assert_true(LEFT("4:cpu,memory_of:/a\n") == UINT64_MAX);
	/* Version 2 may be beside version 1, and have memory. */
	put("/unified/a/memory.max", "700\n");
	put("/unified/a/memory.current", "100\n");
	assert_int_equal(LEFT("3:cpuset:/\n0::/a\n"), 600);
}

/* The path is as the machine has it, the mount as the container has it. */
static void test_in_a_container(void **state)
{
	(void)state;
	put("/memory.max", "700\n");
	put("/memory.current", "100\n");
	assert_int_equal(LEFT("0::/docker/0123\n"), 600);
	assert_int_equal(LEFT("0::/../..\n"), 600);
	put("/memory/memory.limit_in_bytes", "500\n");
	put("/memory/memory.usage_in_bytes", "100\n");
	assert_int_equal(LEFT("4:memory:/docker/0123\n0::/docker/0123\n"), 400);
}

static void test_no_groups(void **state)
{
	char far[6000];

	(void)state;
	put("/memory.max", "x\n");
	put("/memory.current", "100\n");
	assert_true(LEFT("") == UINT64_MAX);
	assert_true(LEFT("0::/") == UINT64_MAX);
	assert_true(LEFT("nonsense\n0:\n:::\n0::a\n") == UINT64_MAX);
	memset(far, '/', sizeof(far) - 1);
	far[sizeof(far) - 1] = '\0';
	memcpy(far, "0::", 3);
	assert_true(LEFT(far) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_now),
		cmocka_unit_test_setup_teardown(test_version_2, make_mount, drop_mount),
		cmocka_unit_test_setup_teardown(test_version_1, make_mount, drop_mount),
		cmocka_unit_test_setup_teardown(test_in_a_container, make_mount, drop_mount),
		cmocka_unit_test_setup_teardown(test_no_groups, make_mount, drop_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
