/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * tests/data/v1.gpuprof was written by the first version of the format and is read for ever.
 * Neither the file nor what is expected of it may change: if this test fails, the reader is wrong.
 */
#include "recording/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <zlib.h>

#include <cmocka.h>

struct expected {
	unsigned int kind;
	size_t bytes;
	unsigned int process;
	uint32_t tid;
	uint64_t time_ns;
	uint32_t crc; /* zlib's crc32 of all its bytes */
};

static const struct expected events[] = {
	{1, 72, 0, 100U, 1000000U, 0x340cc5c0},	 {1, 72, 1, 101U, 1001000U, 0x834aefc5},
	{2, 64, 0, 102U, 1002000U, 0xf3a15c91},	 {3, 32, 1, 103U, 1003000U, 0x98db7ab9},
	{1, 72, 0, 104U, 1004000U, 0x9c48fbd3},	 {4, 24, 1, 105U, 1005000U, 0x67658dba},
	{5, 32, 0, 106U, 1006000U, 0xfdda4cf0},	 {7, 96, 1, 107U, 1007000U, 0x50fbcce4},
	{8, 104, 0, 108U, 1008000U, 0x5658470f}, {9, 72, 1, 109U, 1009000U, 0xf3f71d07},
	{10, 48, 0, 110U, 1010000U, 0x421be7a0}, {11, 32, 1, 111U, 1011000U, 0xc6a1e5e2},
	{1, 72, 0, 112U, 1012000U, 0x04110811},	 {1, 88, 1, 113U, 1013000U, 0x27defc70},
	{2, 64, 0, 114U, 1014000U, 0x58f909e1},	 {3, 32, 1, 115U, 1015000U, 0x59bbb0df},
	{1, 72, 0, 116U, 1016000U, 0xaae7a461},	 {4, 24, 1, 117U, 1017000U, 0x10f91b52},
	{5, 16, 0, 118U, 1018000U, 0xd45e3e38},	 {7, 96, 1, 119U, 1019000U, 0x2c74c82c},
	{8, 120, 0, 120U, 1020000U, 0xa1c1531d}, {9, 72, 1, 121U, 1021000U, 0xcec34fd4},
	{10, 48, 0, 122U, 1022000U, 0xa229a0c8}, {11, 32, 1, 123U, 1023000U, 0xf2a3b506},
	{1, 72, 0, 124U, 1024000U, 0xaa317efa},	 {1, 72, 1, 125U, 1025000U, 0xc66254ed},
	{2, 64, 0, 126U, 1026000U, 0x96fe7738},	 {3, 48, 1, 127U, 1027000U, 0x05125ea3},
	{1, 72, 0, 128U, 1028000U, 0x8ff9f0c9},	 {4, 24, 1, 129U, 1029000U, 0x9f739ce8},
	{5, 16, 0, 130U, 1030000U, 0x0bdbb26d},	 {7, 96, 1, 131U, 1031000U, 0x39262df5},
	{8, 104, 0, 132U, 1032000U, 0xc2daaf3a}, {9, 72, 1, 133U, 1033000U, 0x1fd14cba},
	{10, 64, 0, 134U, 1034000U, 0x16f19628}, {11, 32, 1, 135U, 1035000U, 0x15e3457d},
	{1, 72, 0, 136U, 1036000U, 0x6b6d4bef},	 {1, 72, 1, 137U, 1037000U, 0x471c622a},
	{2, 64, 0, 138U, 1038000U, 0x4bf1bd66},	 {3, 32, 1, 139U, 1039000U, 0x1d0648ed},
};

#define EVENTS (sizeof(events) / sizeof(events[0]))

static int check_event(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	size_t *nr = arg;
	const struct expected *e = &events[*nr];

	assert_true(*nr < EVENTS);
	assert_int_equal(head->kind, e->kind);
	assert_int_equal(bytes, e->bytes);
	assert_int_equal(head->process, e->process);
	assert_int_equal(head->tid, e->tid);
	assert_int_equal(head->time_ns, e->time_ns);
	assert_int_equal(crc32(0, event, (uInt)bytes), e->crc);
	(*nr)++;
	return 0;
}

static void check_described(const struct recording *r)
{
	const struct recording_process *p;
	uint64_t start, end, realtime;

	assert_int_equal(recording__metas(r), 2);
	assert_string_equal(recording__meta(r, "mode"), "trace");
	assert_string_equal(recording__meta(r, "host"), "caf\xc3\xa9");
	assert_int_equal(recording__processes(r), 2);
	p = recording__process_at(r, 0);
	assert_int_equal(p->index, 0);
	assert_int_equal(p->pid, 4242);
	assert_int_equal(p->rank, 1);
	assert_int_equal(p->world_size, 8);
	assert_true(p->start_boot_ns == 1311768467463790320);
	assert_string_equal(p->comm, "trainer");
	assert_string_equal(p->cmdline, "python3 train.py --lr=0.1");
	assert_int_equal(recording__process_at(r, 1)->pid, -1);
	recording__window(r, &start, &end, &realtime);
	assert_int_equal(start, 900000);
	assert_int_equal(end, 2000000);
	assert_true(realtime == 1729382256910270464);
}

static void check_names(const struct recording *r)
{
	const char *overload;
	uint64_t count;

	assert_string_equal(recording__name(r, 1, &overload), "aten::add");
	assert_string_equal(overload, "Tensor");
	assert_string_equal(recording__name(r, 3, &overload), "late");
	assert_string_equal(overload, "");
	assert_string_equal(recording__name(r, 7, &overload), "aten::mm");
	assert_string_equal(recording__loss_at(r, 0, &count), "ring_full");
	assert_int_equal(count, 17);
	assert_string_equal(recording__loss_at(r, 1, &count), "depth");
	assert_true(count == UINT64_MAX);
}

static void test_v1(void **state)
{
	struct recording *r;
	struct reason why = {0};
	size_t nr = 0;

	if (recording__open("tests/data/v1.gpuprof", &why, &r))
		fail_msg("%s (run from the root of the repository)", why.text);
	assert_null(recording__damage(r));
	check_described(r);
	check_names(r);
	assert_int_equal(recording__each_event(r, check_event, &nr), 0);
	assert_int_equal(nr, EVENTS);
	recording__free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_v1)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
