/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The sinks: what is written comes out unchanged and in order, whatever the size of the pieces; a
 * file appears whole or not at all; the first error sticks.
 */
#include "output/format/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"

struct place {
	char dir[64];
	char path[128];
};

static int make_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/gpuprof-sink-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	*state = p;
	return 0;
}

static const char *in_place(struct place *p, const char *name)
{
	(void)snprintf(p->path, sizeof(p->path), "%s/%s", p->dir, name);
	return p->path;
}

/* Names in the place; removes them when asked to. */
static size_t names_in(struct place *p, bool remove_them)
{
	DIR *d = opendir(p->dir);
	struct dirent *e;
	size_t nr = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		nr++;
		if (remove_them)
			assert_int_equal(unlinkat(dirfd(d), e->d_name, 0), 0);
	}
	closedir(d);
	return nr;
}

static int drop_place(void **state)
{
	struct place *p = *state;

	(void)names_in(p, true);
	assert_int_equal(rmdir(p->dir), 0);
	free(p);
	return 0;
}

/* Text that differs at each position, so that a lost or doubled piece shows. */
static char *sample_text(size_t bytes)
{
	struct buf b = {};

	for (uint64_t i = 0; b.nr < bytes; i++) {
		buf__u64(&b, i * 2654435761u);
		buf__char(&b, '\n');
	}
	assert_int_equal(buf__error(&b), 0);
	b.bytes[bytes] = '\0';
	return b.bytes;
}

/* Writes text in pieces of 1, 2, 4, ... bytes, over and over. */
static void write_pieces(struct sink *s, const char *text, size_t bytes)
{
	size_t piece = 1;

	for (size_t at = 0; at < bytes; piece = piece < 300000 ? 2 * piece : 1) {
		size_t part = piece < bytes - at ? piece : bytes - at;

		assert_int_equal(sink__write(s, text + at, part), 0);
		at += part;
	}
}

static void assert_file_is(const char *path, const char *text, size_t bytes)
{
	char *got = NULL;
	size_t got_bytes = 0;

	assert_int_equal(file_read(path, 1 << 24, &got, &got_bytes), 0);
	assert_int_equal(got_bytes, bytes);
	assert_memory_equal(got, text, bytes);
	free(got);
}

static void memory_keeps_all(void **state)
{
	const size_t bytes = 700001;
	char *text = sample_text(bytes);
	struct sink *s = NULL;
	size_t got = 1;

	assert_int_equal(sink__new_memory(&s), 0);
	assert_string_equal(sink__bytes(s, &got), "");
	assert_int_equal(got, 0);
	write_pieces(s, text, bytes);
	assert_int_equal(sink__finish(s), 0);
	assert_memory_equal(sink__bytes(s, &got), text, bytes);
	assert_int_equal(got, bytes);
	sink__free(s);
	free(text);
}

static void fd_gets_all_and_stays_open(void **state)
{
	struct place *p = *state;
	const size_t bytes = 700001;
	char *text = sample_text(bytes);
	const char *path = in_place(p, "fd");
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	struct sink *s = NULL;

	assert_true(fd >= 0);
	assert_int_equal(sink__new_fd(fd, &s), 0);
	write_pieces(s, text, bytes);
	assert_int_equal(sink__finish(s), 0);
	sink__free(s);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	assert_file_is(path, text, bytes);
	free(text);
}

static void path_appears_when_whole(void **state)
{
	struct place *p = *state;
	const size_t bytes = 300000;
	char *text = sample_text(bytes);
	const char *path = in_place(p, "out.json");
	struct sink *s = NULL;
	struct stat st;

	assert_int_equal(sink__new_path(path, &s), 0);
	write_pieces(s, text, bytes);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(sink__finish(s), 0);
	assert_file_is(path, text, bytes);
	sink__free(s);
	assert_file_is(path, text, bytes);
	assert_int_equal(names_in(p, false), 1);
	free(text);
}

static void path_is_replaced_only_by_finish(void **state)
{
	struct place *p = *state;
	const char *path = in_place(p, "out");
	struct sink *s = NULL;

	for (int round = 0; round < 2; round++) {
		assert_int_equal(sink__new_path(path, &s), 0);
		assert_int_equal(sink__write(s, round ? "new" : "old", 3), 0);
		if (!round)
			assert_int_equal(sink__finish(s), 0);
		sink__free(s);
	}
	assert_file_is(path, "old", 3);
	assert_int_equal(names_in(p, false), 1);
}

static void empty_path_is_an_empty_file(void **state)
{
	struct place *p = *state;
	const char *path = in_place(p, "empty");
	struct sink *s = NULL;

	assert_int_equal(sink__new_path(path, &s), 0);
	assert_int_equal(sink__finish(s), 0);
	sink__free(s);
	assert_file_is(path, "", 0);
}

static void assert_gunzips_to(const char *path, const char *text, size_t bytes)
{
	unsigned char magic[2] = {};
	char *got = malloc(bytes + 1);
	FILE *f = fopen(path, "rb");
	gzFile z = gzopen(path, "rb");

	assert_non_null(f);
	assert_int_equal(fread(magic, 1, 2, f), 2);
	assert_int_equal(magic[0], 0x1f);
	assert_int_equal(magic[1], 0x8b);
	fclose(f);
	assert_non_null(z);
	assert_non_null(got);
	assert_int_equal(gzread(z, got, (unsigned)bytes + 1), bytes);
	assert_memory_equal(got, text, bytes);
	assert_int_equal(gzclose(z), Z_OK);
	free(got);
}

static void gz_is_readable_by_zlib(void **state)
{
	struct place *p = *state;
	const size_t sizes[] = {0, 1, 128 * 1024, 128 * 1024 + 1, 2000003};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *text = sample_text(sizes[i] + 1);
		const char *path = in_place(p, "out.json.gz");
		struct sink *s = NULL;

		assert_int_equal(sink__new_path(path, &s), 0);
		write_pieces(s, text, sizes[i]);
		assert_int_equal(sink__finish(s), 0);
		sink__free(s);
		assert_gunzips_to(path, text, sizes[i]);
		free(text);
	}
	assert_int_equal(names_in(p, false), 1);
}

static void gz_bytes_do_not_depend_on_pieces(void **state)
{
	struct place *p = *state;
	const size_t bytes = 500000;
	char *text = sample_text(bytes);
	char *first = NULL;
	size_t first_bytes = 0;
	struct sink *s = NULL;

	assert_int_equal(sink__new_path(in_place(p, "a.gz"), &s), 0);
	assert_int_equal(sink__write(s, text, bytes), 0);
	assert_int_equal(sink__finish(s), 0);
	sink__free(s);
	assert_int_equal(file_read(p->path, 1 << 24, &first, &first_bytes), 0);
	assert_int_equal(sink__new_path(in_place(p, "b.gz"), &s), 0);
	write_pieces(s, text, bytes);
	assert_int_equal(sink__finish(s), 0);
	sink__free(s);
	assert_file_is(p->path, first, first_bytes);
	free(first);
	free(text);
}

static void full_device_says_so_and_sticks(void **state)
{
	const size_t bytes = 400000;
	char *text = sample_text(bytes);
	struct sink *s = NULL;

	/* Little enough to stay in the block: finish has to notice. */
	assert_int_equal(sink__new_path("/dev/full", &s), 0);
	assert_int_equal(sink__write(s, "x", 1), 0);
	assert_int_equal(sink__finish(s), -ENOSPC);
	assert_int_equal(sink__finish(s), -ENOSPC);
	assert_int_equal(sink__write(s, "x", 1), -ENOSPC);
	sink__free(s);

	assert_int_equal(sink__new_path("/dev/full", &s), 0);
	assert_int_equal(sink__write(s, text, bytes), -ENOSPC);
	assert_int_equal(sink__write(s, text, 1), -ENOSPC);
	assert_int_equal(sink__finish(s), -ENOSPC);
	sink__free(s);
	free(text);
}

/* In a child, because a process's own limit cannot be raised again by everyone. */
static int write_beyond_limit(const char *path, const char *text, size_t bytes)
{
	struct rlimit small = {.rlim_cur = 100000, .rlim_max = 100000};
	struct sink *s = NULL;
	int err;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &small) || sink__new_path(path, &s))
		return 1;
	(void)sink__write(s, text, bytes);
	err = sink__finish(s);
	sink__free(s);
	return err == -EFBIG ? 0 : 2;
}

static void nothing_is_left_when_a_file_cannot_grow(void **state)
{
	struct place *p = *state;
	const size_t bytes = 1000000;
	char *text = sample_text(bytes);
	const char *const names[] = {"out.json", "out.json.gz"};

	for (int i = 0; i < 2; i++) {
		const char *path = in_place(p, names[i]);
		pid_t pid = fork();
		int status = -1;

		assert_true(pid >= 0);
		if (!pid)
			_exit(write_beyond_limit(path, text, bytes));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(names_in(p, false), 0);
	}
	free(text);
}

static void missing_directory_is_an_error(void **state)
{
	struct place *p = *state;
	struct sink *s = NULL;

	assert_int_equal(sink__new_path(in_place(p, "none/out.gz"), &s), -ENOENT);
	assert_null(s);
	assert_int_equal(names_in(p, false), 0);
}

static void closed_descriptor_is_an_error(void **state)
{
	struct sink *s = NULL;

	assert_int_equal(sink__new_fd(-1, &s), 0);
	assert_int_equal(sink__write(s, "x", 1), 0);
	assert_int_equal(sink__finish(s), -EBADF);
	sink__free(s);
}

static void write_after_finish_is_refused(void **state)
{
	struct sink *s = NULL;

	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(sink__write(s, "ab", 2), 0);
	assert_int_equal(sink__finish(s), 0);
	assert_int_equal(sink__write(s, "c", 1), -EINVAL);
	assert_string_equal(sink__bytes(s, NULL), "ab");
	sink__free(s);
	sink__free(NULL);
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, drop_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_keeps_all),
		IN_PLACE(fd_gets_all_and_stays_open),
		IN_PLACE(path_appears_when_whole),
		IN_PLACE(path_is_replaced_only_by_finish),
		IN_PLACE(empty_path_is_an_empty_file),
		IN_PLACE(gz_is_readable_by_zlib),
		IN_PLACE(gz_bytes_do_not_depend_on_pieces),
		cmocka_unit_test(full_device_says_so_and_sticks),
		IN_PLACE(nothing_is_left_when_a_file_cannot_grow),
		IN_PLACE(missing_directory_is_an_error),
		cmocka_unit_test(closed_descriptor_is_an_error),
		cmocka_unit_test(write_after_finish_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
