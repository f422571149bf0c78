/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Cut, flipped and malicious recordings: nothing wrong is ever returned, what is whole still is,
 * and the damage is said.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "recording/format.h"
#include "recording/recording.h"
#include "unit/sample.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

/* ---- a good file, hurt ---- */

/* Whatever is there must be the sample's. Returns the number of events. */
static size_t check_truth(struct recording *r)
{
	const char *mode = recording__meta(r, "mode"), *host = recording__meta(r, "host");
	const char *name = recording__name(r, 1, NULL);
	size_t nr = sample_check_events(r);

	if (mode)
		assert_string_equal(mode, "trace");
	if (host)
		assert_string_equal(host, "caf\xc3\xa9");
	if (strcmp(name, "?"))
		assert_string_equal(name, "aten::add");
	assert_true(recording__metas(r) <= 2 && recording__processes(r) <= 2);
	for (size_t i = 0; i + 1 < recording__losses(r); i++) {
		uint64_t count;
		const char *loss = recording__loss_at(r, i, &count);

		assert_true(!strcmp(loss, "ring_full") ? count == 0 || count == 17
						       : !strcmp(loss, "depth"));
	}
	assert_true(nr == 0 || nr == 20 || nr == SAMPLE_EVENTS);
	return nr;
}

static void test_cut_anywhere(void **state)
{
	const char *path = sample_path("a.gpuprof");
	CLEANUP(cleanup_free) uint8_t *whole = NULL;
	size_t bytes, most = 0;

	sample_write(path);
	whole = sample_read_file(path, &bytes);
	for (size_t cut = 0; cut < bytes; cut++) {
		struct recording *r;
		struct reason why = {0};
		size_t nr;

		sample_write_file(path, whole, cut);
		if (cut < sizeof(struct format_header)) {
			assert_int_equal(recording__open(path, &why, &r), -EINVAL);
			assert_non_null(strstr(why.text, path));
			continue;
		}
		assert_int_equal(recording__open(path, &why, &r), 0);
		assert_non_null(recording__damage(r));
		assert_non_null(strstr(recording__damage(r), "cut after"));
		nr = check_truth(r);
		/* More of the file is never less of the events. */
		assert_true(nr >= most);
		most = nr;
		recording__free(r);
	}
	assert_int_equal(most, SAMPLE_EVENTS);
}

static void test_flip_any_byte(void **state)
{
	static const uint8_t masks[] = {0x01, 0x80, 0xff};
	const char *path = sample_path("a.gpuprof");
	CLEANUP(cleanup_free) uint8_t *whole = NULL;
	size_t bytes;

	sample_write(path);
	whole = sample_read_file(path, &bytes);
	for (size_t i = 0; i < bytes * sizeof(masks); i++) {
		uint8_t mask = masks[i % sizeof(masks)];
		size_t at = i / sizeof(masks);
		struct recording *r = NULL;
		int err;

		whole[at] ^= mask;
		sample_write_file(path, whole, bytes);
		whole[at] ^= mask;
		err = recording__open(path, NULL, &r);
		if (at < sizeof(struct format_header)) {
			assert_int_equal(err, -EINVAL);
			continue;
		}
		assert_int_equal(err, 0);
		assert_non_null(recording__damage(r));
		(void)check_truth(r);
		recording__free(r);
	}
}

/* The end of a recording that was cut is that of its last event. */
static void test_window_of_a_cut_recording(void **state)
{
	const char *path = sample_path("a.gpuprof");
	struct recording_writer *w;
	struct recording *r;
	uint64_t start, end, realtime;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	sample_fill(w); /* flushed up to event 20 only */
	recording_writer__free(w);
	assert_int_equal(recording__open(path, NULL, &r), 0);
	assert_int_equal(sample_check_events(r), 20);
	recording__window(r, &start, &end, &realtime);
	assert_int_equal(start, 900000);
	assert_int_equal(end, 1000000 + 1000 * 19);
	recording__free(r);
}

static int never(const void *event, size_t bytes, void *arg)
{
	fail_msg("an event of a file that is gone");
	return 0;
}

static void test_file_shrinks_while_open(void **state)
{
	const char *path = sample_path("a.gpuprof");
	struct recording *r;

	sample_write(path);
	assert_int_equal(recording__open(path, NULL, &r), 0);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(recording__each_event(r, never, NULL), -EIO);
	recording__free(r);
}

/* ---- a file made by hand, each chunk with a right checksum ---- */

static void put_header(struct buf *b, uint32_t version, uint32_t wire)
{
	struct format_header h = {.version = version, .wire_version = wire};

	memcpy(h.magic, FORMAT_MAGIC, FORMAT_MAGIC_BYTES);
	h.crc = (uint32_t)crc32(0, (const Bytef *)&h, offsetof(struct format_header, crc));
	buf__add(b, &h, sizeof(h));
}

static void put_chunk(struct buf *b, struct format_chunk c, const void *stored)
{
	c.magic = FORMAT_CHUNK_MAGIC;
	c.crc = format_chunk_crc(&c, stored);
	buf__add(b, &c, sizeof(c));
	buf__add(b, stored, c.stored_bytes);
}

static void put_plain(struct buf *b, unsigned int type, uint32_t index, const void *p, size_t nr)
{
	struct format_chunk c = {.type = (uint16_t)type,
				 .index = index,
				 .stored_bytes = (uint32_t)nr,
				 .raw_bytes = (uint32_t)nr};

	put_chunk(b, c, p);
}

/* Opens what is in b; the damage must have `words` in it (NULL: there must be none). */
static struct recording *open_made(struct buf *b, const char *words)
{
	const char *path = sample_path("made.gpuprof");
	struct recording *r;
	struct reason why = {0};

	assert_int_equal(buf__error(b), 0);
	sample_write_file(path, b->bytes, b->nr);
	buf__done(b);
	if (recording__open(path, &why, &r))
		fail_msg("cannot open: %s", why.text);
	if (!words)
		assert_null(recording__damage(r));
	else if (!recording__damage(r) || !strstr(recording__damage(r), words))
		fail_msg("damage is '%s', not '%s'", recording__damage(r), words);
	return r;
}

/* One chunk of `type` with this payload is refused, and gives no event. */
static void expect_refused(unsigned int type, const void *payload, size_t bytes)
{
	struct buf b = {0};
	struct recording *r;

	put_header(&b, FORMAT_VERSION, GP_WIRE_VERSION);
	put_plain(&b, type, 0, payload, bytes);
	r = open_made(&b, "damaged after 0 chunks");
	assert_int_equal(sample_check_events(r), 0);
	recording__free(r);
}

static void test_bad_texts(void **state)
{
	static const uint32_t too_long[] = {5, 0x64636261};
	static const uint32_t huge[] = {UINT32_MAX, 0x64636261};
	static const char with_nul[] = "\3\0\0\0a\0b\1\0\0\0v";
	static const char no_value[] = "\3\0\0\0abc";
	static const char half_length[] = "\3\0";

	expect_refused(FORMAT_META, too_long, sizeof(too_long));
	expect_refused(FORMAT_META, huge, sizeof(huge));
	expect_refused(FORMAT_META, with_nul, sizeof(with_nul) - 1);
	expect_refused(FORMAT_META, no_value, sizeof(no_value) - 1);
	expect_refused(FORMAT_META, half_length, sizeof(half_length) - 1);
	expect_refused(FORMAT_PROCESS, too_long, sizeof(too_long));
	expect_refused(FORMAT_LOSSES, too_long, sizeof(too_long));
	expect_refused(FORMAT_WINDOW, too_long, sizeof(too_long));
	expect_refused(FORMAT_END, too_long, 4);
}

static void test_bad_numbers(void **state)
{
	struct {
		uint32_t id, bytes;
		char text[4];
		uint32_t none;
	} name = {RECORDING_NAME_IDS, 4, "name", 0};
	struct {
		struct format_process p;
		uint64_t texts;
	} process = {.p.index = 65536};
	struct format_end end = {.events = 1};

	expect_refused(FORMAT_NAMES, &name, sizeof(name));
	name.id = UINT32_MAX;
	expect_refused(FORMAT_NAMES, &name, sizeof(name));
	expect_refused(FORMAT_PROCESS, &process, sizeof(process));
	expect_refused(FORMAT_END, &end, sizeof(end));
}

static void test_bad_runs(void **state)
{
	struct {
		struct format_run run;
		struct gp_ev_op op;
	} one = {{sizeof(struct gp_ev_op), 1}, {.head = {.kind = GP_EV_OP}}};

	one.run.nr = 0;
	expect_refused(FORMAT_EVENTS, &one, sizeof(one));
	one.run.nr = 2;
	expect_refused(FORMAT_EVENTS, &one, sizeof(one));
	one.run.nr = UINT32_MAX;
	expect_refused(FORMAT_EVENTS, &one, sizeof(one));
	one.run = (struct format_run){0, 1};
	expect_refused(FORMAT_EVENTS, &one, sizeof(one));
	one.run = (struct format_run){8, 9};
	expect_refused(FORMAT_EVENTS, &one, sizeof(one));
	one.run = (struct format_run){36, 2};
	expect_refused(FORMAT_EVENTS, &one, sizeof(one));
	one.run = (struct format_run){UINT32_MAX - 7, 1};
	expect_refused(FORMAT_EVENTS, &one, sizeof(one));
	/* Too short for its kind. */
	one.run = (struct format_run){24, 3};
	expect_refused(FORMAT_EVENTS, &one, sizeof(one));
	/* A run header that is cut. */
	one.run = (struct format_run){sizeof(struct gp_ev_op), 1};
	expect_refused(FORMAT_EVENTS, &one, 4);
}

static void test_bad_frames(void **state)
{
	const struct {
		struct format_chunk c;
		const char *damage;
	} cases[] = {
		{{.type = FORMAT_META, .stored_bytes = 8, .raw_bytes = 9}, "damaged after 0"},
		{{.type = FORMAT_META, .stored_bytes = 8, .raw_bytes = 8, .index = 1},
		 "damaged after 0"},
		{{.type = FORMAT_META, .stored_bytes = 8, .raw_bytes = 8, .flags = FORMAT_ZSTD},
		 "damaged after 0"},
		{{.type = FORMAT_EVENTS, .stored_bytes = 8, .raw_bytes = 8, .flags = FORMAT_ZSTD},
		 "damaged after 0"},
		{{.type = FORMAT_EVENTS,
		  .stored_bytes = 8,
		  .raw_bytes = FORMAT_CHUNK_MAX + 1,
		  .flags = FORMAT_ZSTD},
		 "damaged after 0"},
		{{.type = FORMAT_META, .stored_bytes = 8, .raw_bytes = 8, .flags = FORMAT_DELTA},
		 "damaged after 0"},
		{{.type = FORMAT_EVENTS, .stored_bytes = 8, .raw_bytes = 8, .flags = FORMAT_DELTA},
		 "damaged after 0"},
		{{.type = FORMAT_EVENTS, .stored_bytes = 8, .raw_bytes = 8, .flags = 4},
		 "newer gpuprof"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf b = {0};
		struct recording *r;

		put_header(&b, FORMAT_VERSION, GP_WIRE_VERSION);
		put_chunk(&b, cases[i].c, "\0\0\0\0\0\0\0\0");
		r = open_made(&b, cases[i].damage);
		assert_int_equal(recording__metas(r), 0);
		recording__free(r);
	}
}

/* A length beyond the end of the file asks for no memory: it is a cut. */
static void test_length_beyond_the_file(void **state)
{
	struct format_chunk c = {.magic = FORMAT_CHUNK_MAGIC,
				 .type = FORMAT_META,
				 .stored_bytes = FORMAT_CHUNK_MAX,
				 .raw_bytes = FORMAT_CHUNK_MAX};
	struct buf b = {0};

	put_header(&b, FORMAT_VERSION, GP_WIRE_VERSION);
	buf__add(&b, &c, sizeof(c));
	buf__str(&b, "text");
	recording__free(open_made(&b, "cut after 0 chunks"));
}

/* 64 MiB of zeros in some KiB: unpacked within the limit, then refused. */
static void test_packed_bombs(void **state)
{
	static const uint32_t claims[] = {FORMAT_CHUNK_MAX, FORMAT_CHUNK_MAX - 8, 100};
	CLEANUP(cleanup_free) void *zeros = calloc(1, FORMAT_CHUNK_MAX);
	CLEANUP(cleanup_free) void *packed = malloc(1 << 20);
	size_t nr = ZSTD_compress(packed, 1 << 20, zeros, FORMAT_CHUNK_MAX, 1);

	assert_false(ZSTD_isError(nr));
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		struct format_chunk c = {.type = FORMAT_EVENTS,
					 .flags = FORMAT_ZSTD,
					 .stored_bytes = (uint32_t)nr,
					 .raw_bytes = claims[i]};
		struct buf b = {0};

		put_header(&b, FORMAT_VERSION, GP_WIRE_VERSION);
		put_chunk(&b, c, packed);
		recording__free(open_made(&b, "damaged after 0 chunks"));
	}
}

/* Everything but events stays in memory: 2,000 chunks of 1 MiB in one small file are too much. */
static void test_packed_descriptions_are_bounded(void **state)
{
	CLEANUP(cleanup_free) char *raw = malloc(1 << 20);
	CLEANUP(cleanup_free) void *packed = malloc(ZSTD_compressBound(1 << 20));
	struct buf b = {0};
	struct recording *r;
	uint32_t bytes;
	size_t nr;

	memset(raw, 'x', 1 << 20);
	for (size_t at = 0; at < 1 << 20; at += 1 << 19) {
		bytes = (1 << 19) - 4;
		memcpy(raw + at, &bytes, sizeof(bytes));
	}
	nr = ZSTD_compress(packed, ZSTD_compressBound(1 << 20), raw, 1 << 20, 1);
	put_header(&b, FORMAT_VERSION, GP_WIRE_VERSION);
	for (uint32_t i = 0; i < 2000; i++) {
		struct format_chunk c = {.type = FORMAT_META,
					 .flags = FORMAT_ZSTD,
					 .index = i,
					 .stored_bytes = (uint32_t)nr,
					 .raw_bytes = 1 << 20};

		put_chunk(&b, c, packed);
	}
	r = open_made(&b, "damaged after 32 chunks");
	assert_int_equal(recording__metas(r), 1);
	recording__free(r);
}

static void test_later_chunks_are_skipped(void **state)
{
	struct format_chunk later = {
		.type = 99, .flags = 0x8001, .index = 0, .stored_bytes = 3, .raw_bytes = 1000};
	struct format_end end = {0};
	struct buf b = {0};
	struct recording *r;

	put_header(&b, FORMAT_VERSION, GP_WIRE_VERSION);
	put_chunk(&b, later, "abc");
	put_plain(&b, FORMAT_META, 1, "\1\0\0\0k\1\0\0\0v", 10);
	put_plain(&b, FORMAT_END, 2, &end, sizeof(end));
	r = open_made(&b, NULL);
	assert_string_equal(recording__meta(r, "k"), "v");
	recording__free(r);
}

static void test_after_the_end(void **state)
{
	struct format_end end = {0};
	struct buf b = {0};

	put_header(&b, FORMAT_VERSION, GP_WIRE_VERSION);
	put_plain(&b, FORMAT_END, 0, &end, sizeof(end));
	put_plain(&b, FORMAT_META, 1, "\1\0\0\0k\1\0\0\0v", 10);
	recording__free(open_made(&b, "34 bytes after the end"));
}

/* ---- no recordings ---- */

static void expect_error(const char *path, int err, const char *words)
{
	struct recording *r;
	struct reason why = {0};

	assert_int_equal(recording__open(path, &why, &r), err);
	if (!strstr(why.text, words) || !strstr(why.text, path))
		fail_msg("'%s' lacks '%s' or the path", why.text, words);
}

static void test_no_recordings(void **state)
{
	static const char text[] = "#!/bin/sh\necho this is no recording at all\n";
	struct buf b = {0};
	const char *path;

	expect_error("/nowhere.gpuprof", -ENOENT, "No such file");
	expect_error("/tmp", -EINVAL, "no regular file");
	path = sample_path("fifo");
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_error(path, -EINVAL, "no regular file");
	path = sample_path("text");
	sample_write_file(path, text, sizeof(text));
	expect_error(path, -EINVAL, "no gpuprof recording");
	sample_write_file(path, text, 0);
	expect_error(path, -EINVAL, "only 0 bytes");
	put_header(&b, FORMAT_VERSION + 1, GP_WIRE_VERSION);
	sample_write_file(path, b.bytes, b.nr);
	expect_error(path, -ENOTSUP, "format 2.1");
	buf__clear(&b);
	put_header(&b, FORMAT_VERSION, GP_WIRE_VERSION + 1);
	sample_write_file(path, b.bytes, b.nr);
	expect_error(path, -ENOTSUP, "format 1.2");
	buf__done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_flip_any_byte),
		cmocka_unit_test(test_window_of_a_cut_recording),
		cmocka_unit_test(test_file_shrinks_while_open),
		cmocka_unit_test(test_bad_texts),
		cmocka_unit_test(test_bad_numbers),
		cmocka_unit_test(test_bad_runs),
		cmocka_unit_test(test_bad_frames),
		cmocka_unit_test(test_length_beyond_the_file),
		cmocka_unit_test(test_packed_bombs),
		cmocka_unit_test(test_packed_descriptions_are_bounded),
		cmocka_unit_test(test_later_chunks_are_skipped),
		cmocka_unit_test(test_after_the_end),
		cmocka_unit_test(test_no_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
