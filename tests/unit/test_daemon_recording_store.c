/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The shelf of recordings, within its bounds, and the profiles that are on their way.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/profiles.h"
#include "daemon/recording_store.h"
#include "events.h"
#include "sample.h"

#define SECOND_NS 1000000000ULL

static struct store_item item_of(const char *id, const char *content)
{
	struct store_item item = {.fd = memfd_create("item", MFD_CLOEXEC),
				  .bytes = strlen(content)};

	assert_int_equal(write(item.fd, content, item.bytes), item.bytes);
	(void)snprintf(item.id, sizeof(item.id), "%s", id);
	return item;
}

static int put(struct recording_store *s, const char *id, const char *content)
{
	struct store_item item = item_of(id, content);

	return recording_store__put(s, &item);
}

static void assert_content(struct recording_store *s, const char *id, const char *content)
{
	struct store_item *item = recording_store__take(s, id);
	char got[64] = {0};

	assert_non_null(item);
	assert_int_equal(pread(item->fd, got, sizeof(got) - 1, 0), strlen(content));
	assert_string_equal(got, content);
	recording_store__give_back(s, item);
}

static void test_memory_is_bounded(void **state)
{
	struct store_item *held;
	struct reason why;
	struct recording_store *s;
	char got[4] = {0};

	assert_int_equal(recording_store__new(NULL, 10, &why, &s), 0);
	assert_int_equal(put(s, "1", "aaaa"), 0);
	assert_int_equal(put(s, "2", "bbbb"), 0);
	assert_int_equal(put(s, "3", "12345678901"), -EFBIG);
	held = recording_store__take(s, "1");
	assert_non_null(held);
	assert_int_equal(put(s, "4", "cccc"), 0);
	assert_null(recording_store__take(s, "1"));
	assert_content(s, "2", "bbbb");
	assert_content(s, "4", "cccc");
	/* Who has it can go on reading. */
	assert_int_equal(pread(held->fd, got, 3, 0), 3);
	assert_string_equal(got, "aaa");
	recording_store__give_back(s, held);
	recording_store__free(s);
}

static void test_folder(void **state)
{
	char *folder = strdup(sample_path("shelf")), file[512];
	uint64_t nr, memory, disk;
	struct buf json = {0};
	struct reason why;
	struct recording_store *s;

	assert_int_equal(mkdir(folder, 0700), 0);
	(void)snprintf(file, sizeof(file), "%s/keep.txt", folder);
	sample_write_file(file, "x", 1);
	assert_int_equal(recording_store__new(folder, 10, &why, &s), 0);
	assert_int_equal(put(s, "20260101T000000Z-1-1", "aaaa"), 0);
	assert_int_equal(put(s, "20260101T000001Z-1-2", "bbbb"), 0);
	recording_store__free(s);

	/* Another daemon finds them, and goes on within the bounds. */
	assert_int_equal(recording_store__new(folder, 10, &why, &s), 0);
	assert_content(s, "20260101T000001Z-1-2", "bbbb");
	assert_int_equal(put(s, "20260101T000002Z-2-1", "cccc"), 0);
	assert_null(recording_store__take(s, "20260101T000000Z-1-1"));
	recording_store__sizes(s, &nr, &memory, &disk);
	assert_int_equal(nr, 2);
	assert_int_equal(memory, 0);
	assert_int_equal(disk, 8);
	recording_store__json(s, &json);
	assert_non_null(strstr(json.bytes, "{\"recordings\":[{\"id\":\"20260101T000002Z-2-1\","
					   "\"bytes\":4,"));
	buf__done(&json);
	recording_store__free(s);
	assert_int_equal(access(file, F_OK), 0);
	(void)snprintf(file, sizeof(file), "%s/20260101T000000Z-1-1.gpuprof", folder);
	assert_int_equal(access(file, F_OK), -1);
	assert_int_equal(recording_store__new(sample_path("nowhere"), 10, &why, &s), -ENOENT);
	free(folder);
}

/* A daemon that was killed while it wrote left a part; what is somebody else's stays. */
static void test_parts_go(void **state)
{
	char *folder = strdup(sample_path("parts")), part[512], other[512];
	struct reason why;
	struct recording_store *s;
	uint64_t nr, memory, disk;

	assert_int_equal(mkdir(folder, 0700), 0);
	(void)snprintf(part, sizeof(part), "%s/20260101T000000Z-1-1.gpuprof.part", folder);
	(void)snprintf(other, sizeof(other), "%s/mine.gpuprof.part", folder);
	sample_write_file(part, "x", 1);
	sample_write_file(other, "x", 1);
	assert_int_equal(recording_store__new(folder, 10, &why, &s), 0);
	recording_store__sizes(s, &nr, &memory, &disk);
	assert_int_equal(nr, 0);
	recording_store__free(s);
	assert_int_equal(access(part, F_OK), -1);
	assert_int_equal(access(other, F_OK), 0);
	assert_int_equal(unlink(other), 0);
	/* Where others may write, what lies there may be anything. */
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(recording_store__new(folder, 10, &why, &s), geteuid() ? 0 : -EPERM);
	if (geteuid())
		recording_store__free(s);
	assert_int_equal(rmdir(folder), 0);
	free(folder);
}

/* ---- profiles ---- */

static bool has_42(void *arg, int32_t pid)
{
	return pid == 42;
}

static struct profile *ask(struct profiles *ps, int32_t pid)
{
	struct profile *p = NULL;

	assert_int_equal(profiles__ask(ps, PROFILE_CPU, pid, 2, &p), 0);
	return p;
}

static void add(struct profiles *ps, uint64_t nr)
{
	struct events *e = events__new();

	events__op(e, (struct event_op){
			      .name = "aten::mm", .start_ns = 1, .end_ns = 5, .instance = 1});
	profiles__add(ps, nr, events__timeline(e), 0);
	events__free(e);
}

/* From the cut after it was asked for to the one after its time: recordings 3 and 4. */
static void test_profile(void **state)
{
	struct profiles *ps = profiles__new(false);
	struct profile *p = ask(ps, 0);
	unsigned char magic[2];
	int fd = -1;

	assert_true(profiles__poll(ps, 0, has_42, NULL));
	profiles__cut(ps, 3, 0);
	assert_false(profiles__poll(ps, 1, has_42, NULL));
	profiles__cut(ps, 4, SECOND_NS);
	assert_true(profiles__poll(ps, 2 * SECOND_NS, has_42, NULL));
	profiles__cut(ps, 5, 2 * SECOND_NS);
	assert_false(profiles__poll(ps, 3 * SECOND_NS, has_42, NULL));
	add(ps, 2);
	add(ps, 3);
	profiles__finish(ps, 4);
	assert_int_equal(profiles__get(ps, p, &fd), -EAGAIN);
	add(ps, 4);
	profiles__finish(ps, 5);
	assert_int_equal(profiles__get(ps, p, &fd), 0);
	assert_int_equal(pread(fd, magic, 2, 0), 2);
	assert_int_equal(magic[0], 0x1f);
	assert_int_equal(magic[1], 0x8b);
	(void)close(fd);
	assert_int_equal(profiles__nr(ps), 0);
	profiles__free(ps);
}

static void test_profile_fails(void **state)
{
	struct profiles *ps = profiles__new(false);
	struct profile *none = ask(ps, 41), *lost = ask(ps, 42), *left = ask(ps, 0);
	struct profile *more[PROFILES_MAX];
	int fd = -1;

	for (size_t i = 3; i < PROFILES_MAX; i++)
		more[i] = ask(ps, 0);
	assert_int_equal(profiles__ask(ps, PROFILE_CPU, 0, 2, &more[0]), -EBUSY);
	assert_true(profiles__poll(ps, 0, has_42, NULL));
	profiles__finish(ps, 0);
	assert_int_equal(profiles__get(ps, none, &fd), -ESRCH);
	profiles__cut(ps, 1, 0);
	profiles__abandon(ps, left);
	profiles__add(ps, 1, NULL, -EBUSY);
	assert_true(profiles__poll(ps, 2 * SECOND_NS, has_42, NULL));
	profiles__cut(ps, 2, 2 * SECOND_NS);
	profiles__finish(ps, 2);
	assert_int_equal(profiles__get(ps, lost, &fd), -EBUSY);
	assert_int_equal(profiles__nr(ps), PROFILES_MAX - 3);
	/* Those that nobody fetches are freed all the same. */
	profiles__free(ps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_bounded), cmocka_unit_test(test_folder),
		cmocka_unit_test(test_parts_go),	  cmocka_unit_test(test_profile),
		cmocka_unit_test(test_profile_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
