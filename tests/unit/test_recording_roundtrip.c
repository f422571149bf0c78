/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What was written is what is read; what goes wrong while writing is said and keeps the file good.
 */
#include "recording/format.h"
#include "recording/recording.h"
#include "unit/sample.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

static struct recording *open_good(const char *path)
{
	struct recording *r;
	struct reason why = {0};

	assert_int_equal(recording__open(path, &why, &r), 0);
	if (recording__damage(r))
		fail_msg("damage: %s", recording__damage(r));
	return r;
}

static void check_described(const struct recording *r)
{
	const struct recording_process *p;
	const char *key, *value;
	uint64_t start, end, realtime;

	assert_int_equal(recording__metas(r), 2);
	recording__meta_at(r, 1, &key, &value);
	assert_string_equal(key, "host");
	assert_string_equal(value, "caf\xc3\xa9");
	assert_string_equal(recording__meta(r, "mode"), "trace");
	assert_null(recording__meta(r, "none"));
	assert_int_equal(recording__processes(r), 2);
	p = recording__process_at(r, 0);
	assert_int_equal(p->pid, 4242);
	assert_int_equal(p->rank, 1);
	assert_int_equal(p->world_size, 8);
	assert_true(p->start_boot_ns == 0x123456789abcdef0);
	assert_string_equal(p->comm, "trainer");
	assert_string_equal(p->cmdline, "python3 train.py --lr=0.1");
	p = recording__process_at(r, 1);
	assert_int_equal(p->index, 1);
	assert_int_equal(p->rank, -1);
	assert_string_equal(p->comm, "");
	recording__window(r, &start, &end, &realtime);
	assert_int_equal(start, 900000);
	assert_int_equal(end, 2000000);
	assert_true(realtime == 0x1800000000000000);
}

static void check_names_and_losses(const struct recording *r)
{
	const char *overload;
	uint64_t count;

	assert_string_equal(recording__name(r, 1, &overload), "aten::add");
	assert_string_equal(overload, "Tensor");
	assert_string_equal(recording__name(r, 7, &overload), "aten::mm");
	assert_string_equal(overload, "");
	assert_string_equal(recording__name(r, 3, NULL), "late");
	assert_string_equal(recording__name(r, 0, &overload), "?");
	assert_string_equal(overload, "");
	assert_string_equal(recording__name(r, UINT32_MAX, NULL), "?");
	assert_int_equal(recording__losses(r), 3);
	assert_string_equal(recording__loss_at(r, 0, &count), "ring_full");
	assert_int_equal(count, 17);
	assert_string_equal(recording__loss_at(r, 1, &count), "depth");
	assert_true(count == UINT64_MAX);
	assert_string_equal(recording__loss_at(r, 2, &count), "unknown_events");
	assert_int_equal(count, 0);
}

static void test_roundtrip(void **state)
{
	const char *path = sample_path("a.gpuprof");
	struct recording *r;

	sample_write(path);
	r = open_good(path);
	check_described(r);
	check_names_and_losses(r);
	assert_int_equal(sample_check_events(r), SAMPLE_EVENTS);
	/* A second time gives the same. */
	assert_int_equal(sample_check_events(r), SAMPLE_EVENTS);
	recording__free(r);
}

static void test_empty(void **state)
{
	const char *path = sample_path("a.gpuprof");
	struct recording_writer *w;
	struct recording *r;
	uint64_t start, end, realtime;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	assert_int_equal(recording_writer__finish(w), 0);
	assert_int_equal(recording_writer__flush(w), -EBADF);
	recording_writer__free(w);
	r = open_good(path);
	assert_int_equal(sample_check_events(r), 0);
	recording__window(r, &start, &end, &realtime);
	assert_int_equal(end, 0);
	recording__free(r);
}

/* Long descriptions are packed as long as the reader takes it, then stored as they are. */
static void check_frame(struct recording_frame got, const struct recording_frame *want)
{
	assert_int_equal(got.kind, want->kind);
	assert_int_equal(got.address, want->address);
	assert_int_equal(got.line, want->line);
	assert_int_equal(got.inlined, want->inlined);
	assert_int_equal(got.first_line, want->first_line);
	assert_string_equal(got.file, want->file);
	assert_string_equal(got.function, want->function);
	assert_string_equal(got.module, want->module);
	assert_string_equal(got.build_id, want->build_id);
}

static void test_frames_of_all_kinds(void **state)
{
	static const struct recording_frame frames[] = {
		{"a.py", "f", "", "", 0, 7, RECORDING_FRAME_PYTHON, false, 5},
		{"mm.cpp", "at::mm", "/lib/libtorch.so", "00ff", 0x1234, 3, RECORDING_FRAME_NATIVE,
		 false, 0},
		{"", "", "", "", 1, 0, RECORDING_FRAME_NATIVE, false, 0},
		{"", "schedule", "[kernel]", "", 1ULL << 63, 0, RECORDING_FRAME_KERNEL, false, 0},
		{"?", "?", "", "", 0, 0, RECORDING_FRAME_PYTHON, false, 0},
	};
	static const uint32_t ids[] = {0, 1, 2, 3, 4};
	const char *path = sample_path("a.gpuprof");
	struct recording_writer *w;
	struct recording *r;
	const uint32_t *got;
	size_t nr;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(recording_writer__frame(w, i, &frames[i]), 0);
	assert_int_equal(recording_writer__frame(w, RECORDING_STACK_IDS, &frames[1]), -EINVAL);
	assert_int_equal(recording_writer__stack(w, 1, 0, ids, 5), 0);
	assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
	r = open_good(path);
	got = recording__stack(r, 1, &nr, NULL);
	assert_int_equal(nr, 5);
	for (uint32_t i = 0; i < 5; i++)
		check_frame(recording__frame(r, got[i]), &frames[i]);
	recording__free(r);
}

/* What the compiler put into a function is a frame of its own, and the function has the line of the
 * call. */
static void test_lines_of_frames(void **state)
{
	static const struct recording_frame native = {
		"",    "at::mm", "/lib/libtorch.so", "00ff", 0x1234, 0, RECORDING_FRAME_NATIVE,
		false, 0};
	static const struct recording_frame python = {
		"a.py", "f", "", "", 0, 7, RECORDING_FRAME_PYTHON, false, 0};
	static const struct recording_line lines[] = {{"inner", "a.h", 3}, {"", "a.c", 9}};
	static uint32_t ids[RECORDING_STACK_FRAMES];
	const char *path = sample_path("a.gpuprof");
	struct recording_frame want = native;
	struct recording_writer *w;
	struct recording *r;
	const uint32_t *got;
	size_t nr;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	assert_int_equal(recording_writer__frame(w, 1, &native), 0);
	assert_int_equal(recording_writer__frame(w, 2, &python), 0);
	assert_int_equal(recording_writer__stack(w, 1, 0, (uint32_t[]){1, 2}, 2), 0);
	for (size_t i = 0; i < RECORDING_STACK_FRAMES; i++)
		ids[i] = 1;
	assert_int_equal(recording_writer__stack(w, 2, 0, ids, RECORDING_STACK_FRAMES), 0);
	assert_int_equal(recording_writer__frame_lines(w, 1, lines, 2), 0);
	assert_int_equal(recording_writer__frame_lines(w, 1, lines, 0), -EINVAL);
	assert_int_equal(recording_writer__frame_lines(w, 1, lines, RECORDING_FRAME_LINES + 1),
			 -EINVAL);
	assert_int_equal(recording_writer__frame_lines(w, RECORDING_STACK_IDS, lines, 2), -EINVAL);
	assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
	r = open_good(path);
	got = recording__stack(r, 1, &nr, NULL);
	assert_int_equal(nr, 3);
	want.file = "a.h";
	want.function = "inner";
	want.line = 3;
	want.inlined = true;
	check_frame(recording__frame(r, got[0]), &want);
	want = native;
	want.file = "a.c";
	want.line = 9;
	check_frame(recording__frame(r, got[1]), &want);
	check_frame(recording__frame(r, got[2]), &python);
	assert_string_equal(recording__frame_lines(r, got[1], &nr)[0].function, "inner");
	assert_int_equal(nr, 2);
	assert_null(recording__frame_lines(r, got[2], &nr));
	/* No stack becomes longer than one can be. */
	assert_non_null(recording__stack(r, 2, &nr, NULL));
	assert_int_equal(nr, RECORDING_STACK_FRAMES);
	recording__free(r);
}

static void test_many_names(void **state)
{
	const char *path = sample_path("a.gpuprof");
	static char name[10000];
	struct recording_writer *w;
	struct recording *r;
	uint64_t bytes;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	memset(name, 'n', sizeof(name) - 1);
	for (uint32_t id = 0; id < 5000; id++) {
		memcpy(name, &(char[4]){'a' + id % 26, 'a' + id / 26 % 26, 'a' + id / 676, 'x'}, 4);
		assert_int_equal(recording_writer__name(w, id, name, ""), 0);
	}
	assert_int_equal(recording_writer__finish(w), 0);
	bytes = recording_writer__bytes(w);
	recording_writer__free(w);
	/* 50 MB, of which 32 are packed. */
	assert_true(bytes > 10000000 && bytes < 30000000);
	r = open_good(path);
	for (uint32_t id = 0; id < 5000; id++) {
		memcpy(name, &(char[4]){'a' + id % 26, 'a' + id / 26 % 26, 'a' + id / 676, 'x'}, 4);
		assert_string_equal(recording__name(r, id, NULL), name);
	}
	recording__free(r);
}

struct many {
	uint64_t nr;
	uint64_t stop_at;
};

static int count_op(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_op *op = event;
	struct many *m = arg;

	assert_int_equal(bytes, sizeof(*op));
	assert_int_equal(op->instance, m->nr);
	m->nr++;
	return m->nr == m->stop_at ? 77 : 0;
}

/* More than one chunk's worth, without a flush: the file must not wait for the end. */
static void test_many_events(void **state)
{
	const char *path = sample_path("a.gpuprof");
	struct gp_ev_op op = {.head = {.kind = GP_EV_OP, .tid = 5}};
	struct recording_writer *w;
	struct recording *r;
	struct many all = {0}, some = {.stop_at = 12345};
	uint64_t begin;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	begin = recording_writer__bytes(w);
	for (op.instance = 0; op.instance < 40000; op.instance++) {
		op.head.time_ns = op.instance * 1001;
		assert_int_equal(recording_writer__event(w, &op, sizeof(op)), 0);
	}
	assert_true(recording_writer__bytes(w) > begin);
	assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
	r = open_good(path);
	assert_int_equal(recording__each_event(r, count_op, &all), 0);
	assert_int_equal(all.nr, 40000);
	assert_int_equal(recording__each_event(r, count_op, &some), 77);
	assert_int_equal(some.nr, 12345);
	recording__free(r);
}

static int count_any(const void *event, size_t bytes, void *arg)
{
	(*(size_t *)arg)++;
	return 0;
}

static void test_unknown_kinds_are_counted(void **state)
{
	const char *path = sample_path("a.gpuprof");
	struct gp_ev_head maps = {.kind = GP_EV_MAPS}, later = {.kind = 200};
	struct recording_writer *w;
	struct recording *r;
	size_t nr = 0;
	uint64_t count;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	assert_int_equal(recording_writer__event(w, &maps, sizeof(maps)), 0);
	assert_int_equal(recording_writer__event(w, &later, sizeof(later)), 0);
	assert_int_equal(recording_writer__event(w, &maps, sizeof(maps)), 0);
	assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
	r = open_good(path);
	assert_int_equal(recording__each_event(r, count_any, &nr), 0);
	assert_int_equal(nr, 2);
	assert_string_equal(recording__loss_at(r, 0, &count), "unknown_events");
	assert_int_equal(count, 1);
	recording__free(r);
}

static void test_bad_arguments(void **state)
{
	const char *path = sample_path("a.gpuprof");
	struct recording_process p = {.index = 65536};
	struct recording_writer *w;
	uint64_t event[16] = {GP_EV_OP};

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	assert_int_equal(recording_writer__event(w, event, 8), -EINVAL);
	assert_int_equal(recording_writer__event(w, event, 73), -EINVAL);
	assert_int_equal(recording_writer__event(w, event, 65536), -EINVAL);
	assert_int_equal(recording_writer__event(w, event, 64), -EINVAL);
	event[0] = GP_EV_NAME;
	assert_int_equal(recording_writer__event(w, event, 24), -EINVAL);
	assert_int_equal(recording_writer__name(w, RECORDING_NAME_IDS, "x", ""), -EINVAL);
	assert_int_equal(recording_writer__process(w, &p), -EINVAL);
	/* None of that spoils the file. */
	assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
	recording__free(open_good(path));
}

static void test_cannot_create(void **state)
{
	struct recording_writer *w;
	struct reason why;

	assert_int_equal(recording_writer__new("/nowhere/at/all.gpuprof", &why, &w), -ENOENT);
	assert_non_null(strstr(why.text, "/nowhere/at/all.gpuprof"));
	assert_non_null(strstr(why.text, "-o"));
	assert_int_equal(recording_writer__new("/dev/full", &why, &w), -ENOSPC);
	assert_non_null(strstr(why.text, "/dev/full"));
}

/* A limit on the size of files stands for a full disk: the write that crosses it is done in part.
 */
static void test_full_disk(void **state)
{
	const char *path = sample_path("a.gpuprof");
	struct rlimit old, limit;
	struct recording_writer *w;
	struct recording *r;
	struct reason why;
	size_t whole;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	sample_fill(w);
	whole = (size_t)recording_writer__bytes(w);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = whole + 10;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(recording_writer__flush(w), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	/* It sticks, though there is room again. */
	assert_int_equal(recording_writer__loss(w, "x", 1), -EFBIG);
	assert_int_equal(recording_writer__meta(w, "x", "y"), -EFBIG);
	assert_int_equal(recording_writer__finish(w), -EFBIG);
	assert_int_equal(recording_writer__bytes(w), whole);
	recording_writer__free(w);
	free(sample_read_file(path, &whole));
	assert_int_equal(recording__open(path, &why, &r), 0);
	assert_non_null(strstr(recording__damage(r), "did not end"));
	assert_int_equal(sample_check_events(r), 20);
	recording__free(r);
}

static void test_names_of_losses(void **state)
{
	for (int i = 0; i < GP_LOSS_NR; i++) {
		assert_non_null(recording_loss_name(i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(recording_loss_name(i), recording_loss_name(j));
	}
	assert_string_equal(recording_loss_name(GP_LOSS_NR), "?");
	assert_int_equal(recording_event_bytes(0), 0);
	assert_int_equal(recording_event_bytes(GP_EV_OP), 72);
	assert_int_equal(recording_event_bytes(255), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roundtrip),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_frames_of_all_kinds),
		cmocka_unit_test(test_lines_of_frames),
		cmocka_unit_test(test_many_names),
		cmocka_unit_test(test_many_events),
		cmocka_unit_test(test_unknown_kinds_are_counted),
		cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_cannot_create),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_names_of_losses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
