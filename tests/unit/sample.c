/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The sample recording. Every field of an event has a value of its own, made from the event's
 * number.
 */
#include "unit/sample.h"

#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const uint8_t kinds[] = {GP_EV_OP,     GP_EV_OP,		GP_EV_MEMORY, GP_EV_THREAD,
				GP_EV_OP,     GP_EV_PROCESS,	GP_EV_MAPS,   GP_EV_API,
				GP_EV_KERNEL, GP_EV_GPU_MEMORY, GP_EV_SYNC,   GP_EV_CLOCK};

size_t sample_event(size_t i, void *event)
{
	struct gp_ev_head head = {
		.kind = kinds[i % (sizeof(kinds) / sizeof(kinds[0]))],
		.flags = (uint8_t)i,
		.process = (uint16_t)(i % 2),
		.tid = (uint32_t)(100 + i),
		.time_ns = 1000000 + 1000 * i,
	};
	size_t bytes = recording_event_bytes(head.kind);
	uint8_t *to = event;

	/* Every seventh is longer, as a later version's may be. */
	if (i % 7 == 6)
		bytes += 16;
	for (size_t at = 0; at < bytes; at++)
		to[at] = (uint8_t)(3 * i + 7 * at);
	memcpy(to, &head, sizeof(head));
	return bytes;
}

static void add_events(struct recording_writer *w, size_t from, size_t to)
{
	uint64_t event[SAMPLE_EVENT_MAX / 8];

	for (size_t i = from; i < to; i++) {
		size_t bytes = sample_event(i, event);

		assert_int_equal(recording_writer__event(w, event, bytes), 0);
	}
}

void sample_fill(struct recording_writer *w)
{
	struct recording_process p = {.index = 0,
				      .pid = 4242,
				      .rank = 1,
				      .world_size = 8,
				      .start_boot_ns = 0x123456789abcdef0,
				      .comm = "trainer",
				      .cmdline = "python3 train.py --lr=0.1"};

	assert_int_equal(recording_writer__meta(w, "mode", "trace"), 0);
	assert_int_equal(recording_writer__meta(w, "host", "first"), 0);
	assert_int_equal(recording_writer__meta(w, "host", "caf\xc3\xa9"), 0);
	assert_int_equal(recording_writer__window(w, 900000, 0, 0x1800000000000000), 0);
	assert_int_equal(recording_writer__process(w, &p), 0);
	assert_int_equal(recording_writer__name(w, 1, "aten::add", "Tensor"), 0);
	assert_int_equal(recording_writer__name(w, 7, "aten::mm", ""), 0);
	add_events(w, 0, 20);
	assert_int_equal(recording_writer__loss(w, "ring_full", 0), 0);
	assert_int_equal(recording_writer__flush(w), 0);
	p = (struct recording_process){
		.index = 1, .pid = -1, .rank = -1, .world_size = -1, .comm = "", .cmdline = ""};
	assert_int_equal(recording_writer__process(w, &p), 0);
	assert_int_equal(recording_writer__name(w, 3, "late", NULL), 0);
	add_events(w, 20, SAMPLE_EVENTS);
	assert_int_equal(recording_writer__loss(w, "ring_full", 17), 0);
	assert_int_equal(recording_writer__loss(w, "depth", UINT64_MAX), 0);
	assert_int_equal(recording_writer__window(w, 900000, 2000000, 0x1800000000000000), 0);
}

void sample_write(const char *path)
{
	struct recording_writer *w;
	struct reason why;

	assert_int_equal(recording_writer__new(path, &why, &w), 0);
	sample_fill(w);
	assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
}

static int check_event(const void *event, size_t bytes, void *arg)
{
	uint64_t expected[SAMPLE_EVENT_MAX / 8];
	size_t *nr = arg;

	assert_true(*nr < SAMPLE_EVENTS);
	assert_int_equal((uintptr_t)event % 8, 0);
	assert_int_equal(bytes, sample_event(*nr, expected));
	assert_memory_equal(event, expected, bytes);
	(*nr)++;
	return 0;
}

size_t sample_check_events(struct recording *r)
{
	size_t nr = 0;

	assert_int_equal(recording__each_event(r, check_event, &nr), 0);
	return nr;
}

static char dir[] = "/tmp/gpuprof-test-XXXXXX";

static void remove_dir(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		(void)closedir(d);
	(void)rmdir(dir);
}

const char *sample_path(const char *name)
{
	static char path[256];
	static int made;

	if (!made) {
		assert_non_null(mkdtemp(dir));
		(void)atexit(remove_dir);
		made = 1;
	}
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

uint8_t *sample_read_file(const char *path, size_t *ret_bytes)
{
	char *text;

	assert_int_equal(file_read(path, 64 << 20, &text, ret_bytes), 0);
	return (uint8_t *)text;
}

void sample_write_file(const char *path, const void *data, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, data, bytes), 0);
	assert_int_equal(close(fd), 0);
}
