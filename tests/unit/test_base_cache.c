/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What is kept between runs: folders and files that somebody else could have written, links and
 * FIFOs in their place. As another user's files and folders there are those of `nobody`, which
 * takes root; for an ordinary user root's own files stand for them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/cleanup.h"

#define NOBODY 65534

static char folder[] = "/tmp/gpuprof-cache-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[2][512];
	static int turn;

	turn = !turn;
	(void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

static int write_text(const char *dir, const char *name, const char *text)
{
	struct cache_part parts[] = {{text, 1}, {text + 1, strlen(text + 1)}};

	return cache_write(dir, name, 0600, parts, 2);
}

static int read_text(const char *dir, const char *name, const char *expected)
{
	CLEANUP(cleanup_free) char *text = NULL;
	size_t nr;
	int err = cache_read(dir, name, 64, &text, &nr);

	if (err)
		return err;
	assert_string_equal(text, expected);
	assert_int_equal(nr, strlen(expected));
	return 0;
}

static void test_written_and_read(void **state)
{
	struct stat st;

	(void)umask(0);
	assert_int_equal(read_text(folder, "a", ""), -ENOENT);
	assert_int_equal(write_text(folder, "a", "first"), 0);
	assert_int_equal(read_text(folder, "a", "first"), 0);
	assert_int_equal(write_text(folder, "a", "second"), 0);
	assert_int_equal(read_text(folder, "a", "second"), 0);
	assert_int_equal(stat(in_folder("a"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(unlink(in_folder("a")), 0);
	/* Nothing is left beside it. */
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(mkdir(folder, 0700), 0);
}

/* The user of sudo could change what belongs to him. */
static void test_nothing_is_given_away(void **state)
{
	struct stat st;

	assert_int_equal(setenv("SUDO_UID", "65534", 1), 0);
	assert_int_equal(setenv("SUDO_GID", "65534", 1), 0);
	assert_int_equal(write_text(folder, "a", "text"), 0);
	assert_int_equal(unsetenv("SUDO_UID"), 0);
	assert_int_equal(unsetenv("SUDO_GID"), 0);
	assert_int_equal(stat(in_folder("a"), &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(unlink(in_folder("a")), 0);
}

/* Refused, and replaced by the next that is written. */
static void check_foreign(const char *name)
{
	struct stat st;

	assert_true(read_text(folder, name, "") < 0);
	assert_int_equal(write_text(folder, name, "own"), 0);
	assert_int_equal(read_text(folder, name, "own"), 0);
	assert_int_equal(lstat(in_folder(name), &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(unlink(in_folder(name)), 0);
}

static void test_foreign_files(void **state)
{
	static const mode_t modes[] = {0666, 0620, 0602};

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		assert_int_equal(write_text(folder, "a", "poison"), 0);
		assert_int_equal(chmod(in_folder("a"), modes[i]), 0);
		assert_int_equal(read_text(folder, "a", ""), -EPERM);
		check_foreign("a");
	}
	assert_int_equal(write_text(folder, "other", "poison"), 0);
	assert_int_equal(symlink("other", in_folder("a")), 0);
	check_foreign("a");
	/* What the link led to is as it was. */
	assert_int_equal(read_text(folder, "other", "poison"), 0);
	/* Does not wait for a writer. */
	assert_int_equal(mkfifo(in_folder("a"), 0600), 0);
	check_foreign("a");
	if (!geteuid()) {
		assert_int_equal(chown(in_folder("other"), NOBODY, NOBODY), 0);
		assert_int_equal(read_text(folder, "other", ""), -EPERM);
	}
	assert_int_equal(unlink(in_folder("other")), 0);
	assert_int_equal(mkdir(in_folder("a"), 0700), 0);
	assert_true(read_text(folder, "a", "") < 0);
	assert_true(write_text(folder, "a", "own") < 0);
	assert_int_equal(rmdir(in_folder("a")), 0);
	assert_int_equal(write_text(folder, "a",
				    "longer than what may be read: refused before it "
				    "is, so nothing of it is in memory"),
			 0);
	assert_int_equal(read_text(folder, "a", ""), -EFBIG);
	assert_int_equal(unlink(in_folder("a")), 0);
}

static void check_refused(const char *dir)
{
	struct reason why = {""};

	assert_int_equal(cache_check(dir, &why), -EPERM);
	assert_non_null(strstr(why.text, dir));
	assert_int_equal(read_text(dir, "a", ""), -EPERM);
	assert_int_equal(write_text(dir, "b", "text"), -EPERM);
}

/* The folder itself, and the one it is in. */
static void test_folders_that_others_can_change(void **state)
{
	char inner[256];

	assert_int_equal(mkdir(in_folder("in"), 0755), 0);
	(void)snprintf(inner, sizeof(inner), "%s", in_folder("in"));
	assert_int_equal(cache_check(inner, NULL), 0);
	assert_int_equal(write_text(inner, "a", "text"), 0);
	assert_int_equal(chmod(inner, 0777), 0);
	check_refused(inner);
	assert_int_equal(chmod(inner, 01777), 0);
	check_refused(inner);
	assert_int_equal(chmod(inner, 0775), 0);
	check_refused(inner);
	assert_int_equal(chmod(inner, 0700), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	check_refused(inner);
	/* Here nobody can put another one in its place. */
	assert_int_equal(chmod(folder, 01777), 0);
	assert_int_equal(read_text(inner, "a", "text"), 0);
	assert_int_equal(chmod(folder, 0700), 0);
	if (geteuid()) {
		check_refused("/etc");
	} else {
		assert_int_equal(chown(inner, NOBODY, NOBODY), 0);
		check_refused(inner);
		assert_int_equal(chown(inner, 0, 0), 0);
		assert_int_equal(chown(folder, NOBODY, NOBODY), 0);
		check_refused(inner);
		assert_int_equal(chown(folder, 0, 0), 0);
	}
	assert_int_equal(unlink(in_folder("in/a")), 0);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(cache_check(inner, NULL), -ENOENT);
}

/* A link is followed if it is one's own, and lies where nobody else could have put it. */
static void test_links_in_the_path(void **state)
{
	char link[256];

	assert_int_equal(mkdir(in_folder("in"), 0700), 0);
	(void)snprintf(link, sizeof(link), "%s", in_folder("link"));
	assert_int_equal(symlink("./in", link), 0);
	assert_int_equal(write_text(link, "a", "text"), 0);
	assert_int_equal(read_text(in_folder("in/../in/"), "a", "text"), 0);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink(in_folder("in"), link), 0);
	assert_int_equal(read_text(link, "a", "text"), 0);
	if (!geteuid()) {
		assert_int_equal(lchown(link, NOBODY, NOBODY), 0);
		check_refused(link);
	}
	assert_int_equal(chmod(folder, 0777), 0);
	check_refused(link);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("link", link), 0);
	assert_true(cache_check(link, NULL) < 0);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(unlink(in_folder("in/a")), 0);
	assert_int_equal(rmdir(in_folder("in")), 0);
}

/* Of a name that no caller makes it does not leave the folder's room. */
static void test_long_names(void **state)
{
	char name[300];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(write_text(folder, name, "text"), -ENAMETOOLONG);
	assert_int_equal(cache_check(in_folder(name), NULL), -ENAMETOOLONG);
}

static void set_age(const char *name, time_t seconds)
{
	struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

	assert_int_equal(utimensat(AT_FDCWD, in_folder(name), times, 0), 0);
}

static void test_shrinks(void **state)
{
	static const char *const suffixes[] = {".plan"};
	static const char *const names[] = {"b.plan", "a.plan", "c.plan", "keep"};

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(write_text(folder, names[i], "text"), 0);
		set_age(names[i], 1000 + (time_t)i);
	}
	cache_shrink(folder, suffixes, 1, 1 << 20);
	assert_int_equal(read_text(folder, "b.plan", "text"), 0);
	/* A file takes 4 KiB. */
	cache_shrink(folder, suffixes, 1, 4095);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(read_text(folder, names[i], ""), -ENOENT);
	assert_int_equal(read_text(folder, "keep", "text"), 0);
	assert_int_equal(unlink(in_folder("keep")), 0);
}

static void test_oldest_go_first(void **state)
{
	static const char *const suffixes[] = {".plan"};

	assert_int_equal(write_text(folder, "new.plan", "text"), 0);
	assert_int_equal(write_text(folder, "old.plan", "text"), 0);
	set_age("old.plan", 1000);
	cache_shrink(folder, suffixes, 1, 4096);
	assert_int_equal(read_text(folder, "old.plan", ""), -ENOENT);
	assert_int_equal(read_text(folder, "new.plan", "text"), 0);
	assert_int_equal(unlink(in_folder("new.plan")), 0);
}

static int set_up(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_and_read),
		cmocka_unit_test(test_nothing_is_given_away),
		cmocka_unit_test(test_foreign_files),
		cmocka_unit_test(test_folders_that_others_can_change),
		cmocka_unit_test(test_links_in_the_path),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_shrinks),
		cmocka_unit_test(test_oldest_go_first),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
