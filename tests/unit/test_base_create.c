/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Whose the files are that gpuprof makes: under sudo the caller's, else our own; and what was there
 * keeps its owner.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "unit/sample.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct stat made_by(void (*make)(const char *path))
{
	const char *path = sample_path("new");
	struct stat st;

	(void)unlink(path);
	make(path);
	assert_int_equal(stat(path, &st), 0);
	return st;
}

static void by_create(const char *path)
{
	int fd = file_create(path);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static void by_replacing(const char *path)
{
	struct file_new f;

	assert_int_equal(file_new__open(&f, path), 0);
	assert_int_equal(file_new__commit(&f), 0);
}

static void (*const ways[])(const char *) = {by_create, by_replacing};

static void expect_owner(uid_t uid, gid_t gid)
{
	for (size_t i = 0; i < 2; i++) {
		struct stat st = made_by(ways[i]);

		assert_int_equal(st.st_uid, uid);
		assert_int_equal(st.st_gid, gid);
	}
}

static int forget_sudo(void **state)
{
	(void)unsetenv("SUDO_UID");
	(void)unsetenv("SUDO_GID");
	return 0;
}

static void test_own_without_sudo(void **state)
{
	expect_owner(geteuid(), getegid());
}

static void test_callers_under_sudo(void **state)
{
	(void)setenv("SUDO_UID", "12345", 1);
	(void)setenv("SUDO_GID", "23456", 1);
	/* Only root is believed when it says so, and only root can give files away. */
	if (!geteuid())
		expect_owner(12345, 23456);
	else
		expect_owner(geteuid(), getegid());
}

static void test_bad_ids_are_ignored(void **state)
{
	static const char *const bad[] = {"",	   "-1",	 "12x", "4294967295",
					  " 5",	   "4294967296", "0x5", "99999999999999999999",
					  "12 34", "1e3"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)setenv("SUDO_UID", bad[i], 1);
		(void)setenv("SUDO_GID", "23456", 1);
		expect_owner(geteuid(), getegid());
	}
	(void)setenv("SUDO_UID", "12345", 1);
	(void)unsetenv("SUDO_GID");
	expect_owner(geteuid(), getegid());
}

static void test_mask_counts(void **state)
{
	mode_t old = umask(027);

	for (size_t i = 0; i < 2; i++)
		assert_int_equal(made_by(ways[i]).st_mode & 0777, 0640);
	(void)umask(old);
}

static void test_existing_file_is_emptied_and_kept(void **state)
{
	const char *path = sample_path("old");
	struct stat st;

	sample_write_file(path, "text", 4);
	assert_int_equal(chmod(path, 0604), 0);
	(void)setenv("SUDO_UID", "12345", 1);
	(void)setenv("SUDO_GID", "23456", 1);
	by_create(path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(st.st_mode & 0777, 0604);
	assert_int_equal(st.st_size, 0);
}

static void test_failures(void **state)
{
	assert_int_equal(file_create("/nowhere/at/all"), -ENOENT);
	assert_int_equal(file_create("/tmp"), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_own_without_sudo, forget_sudo),
		cmocka_unit_test_setup(test_callers_under_sudo, forget_sudo),
		cmocka_unit_test_setup(test_bad_ids_are_ignored, forget_sudo),
		cmocka_unit_test_setup(test_mask_counts, forget_sudo),
		cmocka_unit_test_setup(test_existing_file_is_emptied_and_kept, forget_sudo),
		cmocka_unit_test_setup(test_failures, forget_sudo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
