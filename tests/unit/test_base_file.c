/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * base/file: a file is there whole or not at all, and nothing is left behind.
 */
#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

static char folder[64];
static char path[96];

static int make_folder(void **state)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/gpuprof-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/out", folder);
	return 0;
}

static int drop_folder(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static size_t files_in_folder(void)
{
	struct dirent *entry;
	DIR *d = opendir(folder);
	size_t nr = 0;

	assert_non_null(d);
	while ((entry = readdir(d)))
		nr += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
	(void)closedir(d);
	return nr;
}

static void put(const char *text)
{
	struct file_new f;

	assert_int_equal(file_new__open(&f, path), 0);
	assert_int_equal(file_write_all(f.fd, text, strlen(text)), 0);
	assert_int_equal(file_new__commit(&f), 0);
	file_new__done(&f);
}

static void must_hold(const char *expected)
{
	char *text;
	size_t bytes;

	assert_int_equal(file_read(path, 1 << 20, &text, &bytes), 0);
	assert_string_equal(text, expected);
	assert_int_equal(bytes, strlen(expected));
	free(text);
}

static void replaces_whole(void **state)
{
	struct file_new f;

	put("old");
	assert_int_equal(file_new__open(&f, path), 0);
	assert_int_equal(file_write_all(f.fd, "new content", 11), 0);
	must_hold("old");
	assert_int_equal(file_new__commit(&f), 0);
	must_hold("new content");
	assert_int_equal(files_in_folder(), 1);
}

/* A link stays one: what it leads to is written, there already or not. */
static void follows_links(void **state)
{
	char link[128], to_link[160];
	struct file_new f;
	struct stat st;

	(void)snprintf(link, sizeof(link), "%s/link", folder);
	(void)snprintf(to_link, sizeof(to_link), "%s/to_link", folder);
	assert_int_equal(symlink(file_base_name(path), link), 0);
	assert_int_equal(symlink(link, to_link), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(file_new__open(&f, to_link), 0);
		assert_int_equal(file_write_all(f.fd, i ? "b" : "a", 1), 0);
		assert_int_equal(file_new__commit(&f), 0);
		must_hold(i ? "b" : "a");
		assert_true(!lstat(link, &st) && S_ISLNK(st.st_mode));
		assert_true(!lstat(to_link, &st) && S_ISLNK(st.st_mode));
		assert_int_equal(files_in_folder(), 3);
	}
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink(to_link, link), 0);
	assert_int_equal(file_new__open(&f, link), -ELOOP);
	assert_int_equal(files_in_folder(), 3);
}

/* What is open already, as the standard output is: from where it stands, and it stays that file. */
static void writes_to_own_descriptor(void **state)
{
	char name[64], link[128];
	struct file_new f;
	struct stat st;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	(void)snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink(name, link), 0);
	assert_int_equal(file_write_all(fd, "before ", 7), 0);
	assert_int_equal(file_new__open(&f, link), 0);
	assert_int_equal(file_write_all(f.fd, "new ", 4), 0);
	assert_int_equal(file_new__commit(&f), 0);
	assert_int_equal(file_write_all(fd, "after", 5), 0);
	must_hold("before new after");
	assert_true(!lstat(link, &st) && S_ISLNK(st.st_mode));
	assert_int_equal(close(fd), 0);
}

static void leaves_nothing_without_commit(void **state)
{
	struct file_new f;

	put("old");
	assert_int_equal(file_new__open(&f, path), 0);
	assert_int_equal(file_write_all(f.fd, "half", 4), 0);
	assert_int_equal(files_in_folder(), 2);
	file_new__done(&f);
	assert_int_equal(files_in_folder(), 1);
	must_hold("old");
	file_new__done(&f);
}

static void leaves_nothing_when_the_rename_fails(void **state)
{
	struct file_new f;
	char inside[128];

	assert_int_equal(file_new__open(&f, path), 0);
	assert_int_equal(file_write_all(f.fd, "x", 1), 0);
	/* Meanwhile a folder took the name. */
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(inside, sizeof(inside), "%s/file", path);
	assert_int_equal(close(open(inside, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_true(file_new__commit(&f) < 0);
	assert_int_equal(files_in_folder(), 1);
	file_new__done(&f);
}

static void refuses_a_missing_folder(void **state)
{
	struct file_new f;
	char deep[128];

	(void)snprintf(deep, sizeof(deep), "%s/no/such/out", folder);
	assert_int_equal(file_new__open(&f, deep), -ENOENT);
	file_new__done(&f);
	assert_int_equal(files_in_folder(), 0);
}

/* Under a mask that takes everything away, too. */
static void is_for_its_owner(void **state)
{
	mode_t before = umask(0);
	struct stat st;

	put("x");
	(void)umask(0777);
	assert_int_equal(unlink(path), 0);
	put("x");
	(void)umask(before);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* Longer names of temporary files do not fit either. */
static void takes_the_longest_name(void **state)
{
	size_t bytes = strlen(folder) + 1 + NAME_MAX;
	char *longest = malloc(bytes + 2);
	struct file_new f;

	assert_non_null(longest);
	memset(longest, 'x', bytes + 2);
	memcpy(longest, folder, strlen(folder));
	longest[strlen(folder)] = '/';
	longest[bytes] = '\0';
	assert_int_equal(file_new__open(&f, longest), 0);
	assert_int_equal(file_new__commit(&f), 0);
	assert_int_equal(access(longest, F_OK), 0);
	longest[bytes] = 'x';
	longest[bytes + 1] = '\0';
	assert_int_equal(file_new__open(&f, longest), -ENAMETOOLONG);
	free(longest);
	assert_int_equal(files_in_folder(), 1);
}

/* It has its name while it is still being written; what comes later is in it too. */
static void is_placed_early(void **state)
{
	struct file_new f;

	put("old");
	assert_int_equal(file_new__open(&f, path), 0);
	assert_int_equal(file_write_all(f.fd, "some", 4), 0);
	assert_int_equal(file_new__place(&f), 0);
	must_hold("some");
	file_new__abandon_all();
	assert_int_equal(file_write_all(f.fd, " more", 5), 0);
	assert_int_equal(file_new__commit(&f), 0);
	must_hold("some more");
	assert_int_equal(files_in_folder(), 1);
}

/* A child that is ended by a signal leaves its parent's files alone. */
static void abandons_its_own_alone(void **state)
{
	struct file_new f;
	pid_t child;
	int how;

	assert_int_equal(file_new__open(&f, path), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		file_new__abandon_all();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_int_equal(files_in_folder(), 1);
	assert_int_equal(file_new__commit(&f), 0);
	must_hold("");
}

static void opens_regular_files_alone(void **state)
{
	CLEANUP(cleanup_fd) int fd = -1;
	char pipe[128];

	(void)snprintf(pipe, sizeof(pipe), "%s/pipe", folder);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(file_open_regular(pipe), -EINVAL);
	assert_int_equal(file_open_regular("/dev/null"), -EINVAL);
	assert_int_equal(file_open_regular(folder), -EINVAL);
	assert_int_equal(file_open_regular(path), -ENOENT);
	put("text");
	fd = file_open_regular(path);
	assert_true(fd >= 0);
}

static void writes_into_what_is_no_file(void **state)
{
	struct file_new f;
	int ends[2];
	char got[8] = "";

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
	assert_int_equal(file_new__open(&f, path), 0);
	assert_null(f.temporary);
	assert_int_equal(file_write_all(f.fd, "piped", 5), 0);
	assert_int_equal(file_new__commit(&f), 0);
	assert_int_equal(read(ends[0], got, sizeof(got)), 5);
	assert_string_equal(got, "piped");
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_int_equal(files_in_folder(), 0);
}

static void emits_a_full_disk(void **state)
{
	CLEANUP(cleanup_fd) int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, "x", 1), -ENOSPC);
	assert_int_equal(file_write_all(-1, "x", 1), -EBADF);
	assert_int_equal(file_write_all(-1, "x", 0), 0);
}

static void reads_within_bounds(void **state)
{
	char *text = NULL;
	size_t bytes = 0;

	put("12345678");
	assert_int_equal(file_read(path, 8, &text, &bytes), 0);
	assert_int_equal(bytes, 8);
	free(TAKE(text));
	assert_int_equal(file_read(path, 7, &text, &bytes), -EFBIG);
	assert_null(text);
	assert_int_equal(file_read(folder, 100, &text, NULL), -EISDIR);
	assert_int_equal(file_read("/dev/zero", 100000, &text, NULL), -EFBIG);
	assert_int_equal(file_read("/dev/null", 0, &text, &bytes), 0);
	assert_string_equal(text, "");
	assert_int_equal(bytes, 0);
	free(text);
	assert_int_equal(file_read("/proc/self/stat", 65536, &text, NULL), 0);
	assert_true(strlen(text) > 10);
	free(text);
}

static void abandons_what_is_not_finished(void **state)
{
	struct file_new f, other;

	put("old");
	assert_int_equal(file_new__open(&other, path), 0);
	file_new__done(&other);
	assert_int_equal(file_new__open(&f, path), 0);
	assert_int_equal(file_write_all(f.fd, "half", 4), 0);
	assert_int_equal(files_in_folder(), 2);
	file_new__abandon_all();
	assert_int_equal(files_in_folder(), 1);
	must_hold("old");
	file_new__done(&f);
	put("new");
	file_new__abandon_all();
	must_hold("new");
}

static void emits_what_is_the_same(void **state)
{
	char other[160];

	/* Neither is there yet. */
	(void)snprintf(other, sizeof(other), "%s/./out", folder);
	assert_true(file_is_same(path, other));
	assert_false(file_is_same("/no/such/folder/out", path));
	(void)snprintf(other, sizeof(other), "%s/out2", folder);
	assert_false(file_is_same(path, other));
	put("text");
	assert_false(file_is_same(path, other));
	assert_int_equal(link(path, other), 0);
	assert_true(file_is_same(path, other));
}

/* Says it in two parts, the second one once the first was taken. */
static void say_in_parts(int to)
{
	int left = 1;

	(void)!write(to, "abc", 3);
	while (!ioctl(to, FIONREAD, &left) && left)
		(void)sched_yield();
	(void)!write(to, "def", 3);
	_exit(0);
}

static void reads_all_that_comes(void **state)
{
	char text[8] = "";
	int ends[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		say_in_parts(ends[1]);
	(void)close(ends[1]);
	assert_int_equal(file_read_all(ends[0], text, 6), 6);
	assert_string_equal(text, "abcdef");
	assert_int_equal(file_read_all(ends[0], text, 6), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	(void)close(ends[0]);
	assert_int_equal(file_read_all(-1, text, 1), -EBADF);
}

static void reads_all_from_an_offset(void **state)
{
	char text[8] = "";

	(void)state;
	put("0123456789");
	CLEANUP(cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(file_read_all_at(fd, 2, text, 4), 4);
	assert_string_equal(text, "2345");
	assert_int_equal(file_read_all_at(fd, 8, text, 4), 2);
	assert_memory_equal(text, "89", 2);
	assert_int_equal(file_read_all_at(fd, 10, text, 4), 0);
	assert_int_equal(file_read_all_at(fd, INT64_MAX - 2, text, 4), -EOVERFLOW);
	assert_int_equal(file_read_all_at(fd, UINT64_MAX, text, 1), -EOVERFLOW);
	/* The descriptor stands where it stood. */
	assert_int_equal(file_read_all(fd, text, 1), 1);
	assert_int_equal(text[0], '0');
}

int main(void)
{
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)
	const struct CMUnitTest tests[] = {
		IN_A_FOLDER(replaces_whole),
		IN_A_FOLDER(follows_links),
		IN_A_FOLDER(writes_to_own_descriptor),
		IN_A_FOLDER(leaves_nothing_without_commit),
		IN_A_FOLDER(leaves_nothing_when_the_rename_fails),
		IN_A_FOLDER(refuses_a_missing_folder),
		IN_A_FOLDER(abandons_what_is_not_finished),
		IN_A_FOLDER(is_for_its_owner),
		IN_A_FOLDER(takes_the_longest_name),
		IN_A_FOLDER(is_placed_early),
		IN_A_FOLDER(abandons_its_own_alone),
		IN_A_FOLDER(opens_regular_files_alone),
		IN_A_FOLDER(writes_into_what_is_no_file),
		IN_A_FOLDER(emits_a_full_disk),
		IN_A_FOLDER(reads_within_bounds),
		IN_A_FOLDER(reads_all_that_comes),
		IN_A_FOLDER(reads_all_from_an_offset),
		IN_A_FOLDER(emits_what_is_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
