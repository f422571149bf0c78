/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A collector's ring written by an attacker: invalid positions, sizes, events and whole rings are
 * refused and counted; nothing crashes, hangs or gets through.
 */
#include "unit/ring_ends.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define SMALL	     4096U
#define SLOT_BYTES   sizeof(struct gp_ring_slot)
#define ENOUGH_BEATS 1000
#define RANDOM_RINGS 300

static void test_positions(void **state)
{
	static const uint64_t heads[] = {
		SMALL + 8, 4, 1ULL << 63, UINT64_MAX - 7, UINT64_MAX, SMALL * 2, 1U << 31,
	};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct collector_status s;
		struct ends e;

		assert_int_equal(ends_open(&e, SMALL), 0);
		e.w.page->head = heads[i];
		assert_int_equal(ends_drain(&e), -EPROTO);
		e.w.page->head = 0;
		/* A ring that was given up stays so. */
		assert_int_equal(ends_drain(&e), -EPROTO);
		ring_reader__status(e.r, &s);
		assert_true(s.broken);
		assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), 1);
		ends_close(&e);
	}
}

/* The head moves back behind what was read. */
static void test_head_goes_back(void **state)
{
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	assert_true(ends_write_op(&e, 1) && ends_write_op(&e, 2));
	assert_int_equal(ends_drain(&e), 2);
	e.w.page->head -= 80;
	assert_int_equal(ends_drain(&e), -EPROTO);
	ends_close(&e);
}

/* The reader keeps its own tail and size, whatever the page says. */
static void test_own_copies(void **state)
{
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	assert_true(ends_write_op(&e, 1));
	e.w.page->tail = 1ULL << 40;
	e.w.page->data_bytes = 1U << 30;
	e.w.page->magic = 0;
	assert_int_equal(ends_drain(&e), 1);
	assert_true(e.w.page->tail == e.w.page->head);
	ends_close(&e);
}

static void test_slot_sizes(void **state)
{
	static const uint32_t sizes[] = {
		0,  1,	  4,	7,	   8,	       16,	   23,	       25,
		81, 1040, 4096, SMALL + 8, 0x7fffffff, 0x80000000, UINT32_MAX, UINT32_MAX - 7};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct gp_ring_slot *slot;
		struct ends e;

		assert_int_equal(ends_open(&e, SMALL), 0);
		slot = (struct gp_ring_slot *)e.w.data;
		assert_true(ends_write_op(&e, 1) && ends_write_op(&e, 2));
		slot->bytes = sizes[i];
		/* It counts as incomplete first, then as abandoned. */
		assert_int_equal(ends_drain(&e), 0);
		e.w.page->beat += ENOUGH_BEATS;
		assert_int_equal(ends_drain(&e), 1);
		assert_int_equal((uint32_t)e.seen.last_op.instance, 2);
		assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), 1);
		ends_close(&e);
	}
}

enum op_fault {
	STARTS_BEFORE_CAPTURE,
	STARTS_AFTER_END,
	ENDS_IN_FUTURE,
	TIMES_OVERFLOW,
	NO_INSTANCE_BIT,
	INSTANCE_OF_OTHER_PROCESS,
	PARENT_OF_OTHER_PROCESS,
	OWN_PARENT,
	SCOPE,
	SEQUENCE,
	OP_FAULTS_NR,
};

static void spoil(struct gp_ev_op *op, enum op_fault fault)
{
	switch (fault) {
	case STARTS_BEFORE_CAPTURE:
		op->start_ns = 1;
		break;
	case STARTS_AFTER_END:
		op->start_ns = op->head.time_ns + 1;
		break;
	case ENDS_IN_FUTURE:
		op->head.time_ns += 3600ULL * 1000000000;
		break;
	case TIMES_OVERFLOW:
		op->start_ns = op->head.time_ns = UINT64_MAX;
		break;
	case NO_INSTANCE_BIT:
		op->instance &= ~(1ULL << 63);
		break;
	case INSTANCE_OF_OTHER_PROCESS:
		op->instance += 1ULL << 52;
		break;
	case PARENT_OF_OTHER_PROCESS:
		op->parent = op->instance + (1ULL << 52) - 1;
		break;
	case OWN_PARENT:
		op->parent = op->instance;
		break;
	case SCOPE:
		op->scope = 1000;
		break;
	case SEQUENCE:
		op->sequence_nr = -2;
		break;
	case OP_FAULTS_NR:
		break;
	}
}

static void test_ops(void **state)
{
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	for (int fault = 0; fault < OP_FAULTS_NR; fault++) {
		struct gp_ev_op op = help_op(5);

		spoil(&op, (enum op_fault)fault);
		assert_true(ring_writer__write(&e.w, &op, sizeof(op)));
		assert_int_equal(ends_drain(&e), 0);
		assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), fault + 1);
	}
	ends_close(&e);
}

/* Only an allocation's address, time and size are used; of a free not even the size. */
static void test_memory(void **state)
{
	static const struct {
		uint8_t flags;
		uint64_t address;
		int64_t bytes;
		uint64_t later_ns;
		bool good;
	} cases[] = {
		{0, 64, 512, 0, true},
		{0, 64, 0, 0, false},
		{0, 64, -1, 0, false},
		{0, 64, INT64_MIN, 0, false},
		{0, 64, 512, 3600ULL * 1000000000, false},
		{GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN, 64, 0, 0, true},
		{GP_MEMORY_FREE, 64, 512, 0, true},
		{GP_MEMORY_FREE, 0, 0, 0, false},
		{GP_MEMORY_OOM | GP_MEMORY_TOTALS, 64, 0, 0, false},
	};
	uint64_t refused = 0;
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gp_ev_memory ev = {
			.head = {.kind = GP_EV_MEMORY,
				 .flags = cases[i].flags,
				 .time_ns = clock_now_ns() + cases[i].later_ns},
			.address = cases[i].address,
			.bytes = cases[i].bytes,
			.stack_id = 7,
		};

		assert_true(ring_writer__write(&e.w, &ev, sizeof(ev)));
		assert_int_equal(ends_drain(&e), cases[i].good);
		refused += !cases[i].good;
		assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), refused);
	}
	/* A stack that was never announced. */
	assert_int_equal(help_loss(e.r, GP_LOSS_STACK_ROOM), 1);
	ends_close(&e);
}

static void test_other_events(void **state)
{
	uint64_t bytes[64] = {0};
	struct gp_ev_head *head = (struct gp_ev_head *)bytes;
	uint64_t refused = 0;
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	for (unsigned kind = 0; kind < 256; kind++) {
		head->kind = (uint8_t)kind;
		for (size_t nr = sizeof(*head); nr <= sizeof(bytes); nr += 40) {
			assert_true(ring_writer__write(&e.w, bytes, nr));
			assert_int_equal(ends_drain(&e), 0);
			assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), ++refused);
		}
	}
	ends_close(&e);
}

static void test_names(void **state)
{
	struct {
		struct gp_ev_name name;
		char text[GP_RING_NAME_BYTES + 9];
	} ev;
	static const struct {
		uint32_t id, text_bytes;
		size_t bytes; /* text in the ring */
		bool good;
	} cases[] = {
		{0, 3, 8, false},	   {65536, 3, 8, false},      {UINT32_MAX, 3, 8, false},
		{1, 4096, 4096, false},	   {1, UINT32_MAX, 8, false}, {1, UINT32_MAX - 7, 0, false},
		{1, 3, 16, false},	   {1, 9, 8, false},	      {1, 3, 0, false},
		{65535, 4095, 4096, true}, {2, 0, 0, true},	      {2, 8, 8, true},
	};
	uint64_t refused = 0;
	struct ends e;

	assert_int_equal(ends_open(&e, 4 * SMALL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&ev, 1, sizeof(ev));
		ev.name.head = (struct gp_ev_head){.kind = GP_EV_NAME};
		ev.name.name_id = cases[i].id;
		ev.name.text_bytes = cases[i].text_bytes;
		ev.text[1] = '\0';
		assert_true(ring_writer__write(&e.w, &ev, sizeof(ev.name) + cases[i].bytes));
		assert_int_equal(ends_drain(&e), cases[i].good);
		refused += !cases[i].good;
		assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), refused);
		if (!cases[i].good)
			continue;
		/* Unchanged, except that it is terminated behind its last byte. */
		assert_int_equal(strlen(e.seen.last_name), cases[i].text_bytes);
		assert_int_equal(strspn(e.seen.last_name, "\1?"), cases[i].text_bytes);
		assert_true(cases[i].text_bytes < 2 || e.seen.last_name[1] == '?');
	}
	ends_close(&e);
}

static void test_unknown_name_id(void **state)
{
	static const uint32_t ids[] = {0, 1, 65535, 65536, UINT32_MAX};
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct gp_ev_op op = help_op(1);

		op.name_id = ids[i];
		assert_true(ring_writer__write(&e.w, &op, sizeof(op)));
		assert_int_equal(ends_drain(&e), 1);
		assert_int_equal(e.seen.last_op.name_id, 0);
		assert_int_equal(help_loss(e.r, GP_LOSS_NAMES), i + 1);
	}
	ends_close(&e);
}

static void test_status(void **state)
{
	struct collector_status s;
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	e.w.page->state = 77;
	memset(e.w.page->message, '\033', sizeof(e.w.page->message));
	for (int i = 0; i < GP_LOSS_NR; i++)
		e.w.page->losses[i] = UINT64_MAX;
	e.w.page->lost = UINT64_MAX;
	ring_reader__status(e.r, &s);
	assert_int_equal(s.state, GP_COLLECTOR_FAILED);
	assert_int_equal(strlen(s.message), sizeof(s.message) - 1);
	assert_int_equal(strspn(s.message, "?"), sizeof(s.message) - 1);
	assert_true(help_loss(e.r, GP_LOSS_COLLECTOR_FULL) == UINT64_MAX);
	ends_close(&e);
}

/* The same numbers on every machine. */
static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*seed >> 33);
}

static void test_random_rings(void **state)
{
	uint64_t seed = 1;

	for (uint32_t round = 0; round < RANDOM_RINGS; round++) {
		struct ends e;
		int nr;

		assert_int_equal(ends_open(&e, SMALL), 0);
		for (size_t i = 0; i < SMALL; i++)
			e.w.data[i] = (unsigned char)next_random(&seed);
		/* Some words look like slots, so that some pass for events. */
		for (int i = 0; i < 64; i++) {
			uint32_t at = next_random(&seed) % (SMALL / 8) * 8;
			struct gp_ring_slot slot = {next_random(&seed) % 200, at + 1};

			memcpy(e.w.data + at, &slot, sizeof(slot));
		}
		e.w.page->head = next_random(&seed) % (SMALL / 8 + 1) * 8;
		for (int i = 0; i < 10; i++) {
			nr = ends_drain(&e);
			assert_true(nr >= 0);
			e.w.page->beat += ENOUGH_BEATS;
		}
		assert_true(e.w.page->tail <= e.w.page->head);
		ring_reader__process_gone(e.r);
		nr = ends_drain(&e);
		assert_true(nr >= 0);
		assert_true(e.w.page->tail == e.w.page->head);
		ends_close(&e);
	}
}

/* A memfd of the ring's name with this content of its page; its descriptor. */
static int make_ring(const struct gp_ring_page *page, size_t bytes, int seals)
{
	int fd = (int)syscall(SYS_memfd_create, GP_RING_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(pwrite(fd, page, sizeof(*page), 0), sizeof(*page));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void expect_refusal(const struct gp_ring_page *page, size_t bytes, int seals, int err)
{
	int fd = make_ring(page, bytes, seals);
	struct reason why = {""};
	struct ring_reader *r;

	assert_int_equal(ring_reader__open(getpid(), HELP_PROCESS, &why, &r), err);
	assert_true(why.text[0]);
	(void)close(fd);
}

static void test_rings_that_are_none(void **state)
{
	const struct gp_ring_page good = {
		.magic = GP_RING_MAGIC,
		.wire_version = GP_WIRE_VERSION,
		.data_bytes = SMALL,
	};
	struct reason why = {""};
	struct ring_reader *r;
	struct gp_ring_page page;
	int fd;

	assert_int_equal(ring_reader__open(getpid(), 0, &why, &r), -ENOENT);
	expect_refusal(&good, 4096 + SMALL, 0, -EPROTO);
	expect_refusal(&good, 4096 + SMALL, F_SEAL_GROW, -EPROTO);
	expect_refusal(&good, 4096 + SMALL, F_SEAL_SHRINK | F_SEAL_WRITE, -EPROTO);
	expect_refusal(&good, sizeof(good), F_SEAL_SHRINK, -EPROTO);
	expect_refusal(&good, 4096, F_SEAL_SHRINK, -EPROTO);
	expect_refusal(&good, 4096 + SMALL + 8, F_SEAL_SHRINK, -EPROTO);
	expect_refusal(&good, 4096 + 2 * SMALL, F_SEAL_SHRINK, -EPROTO);
	expect_refusal(&good, 4096 + (512UL << 20), F_SEAL_SHRINK, -EPROTO);
	page = good;
	page.magic++;
	expect_refusal(&page, 4096 + SMALL, F_SEAL_SHRINK, -EPROTO);
	page = good;
	page.wire_version++;
	expect_refusal(&page, 4096 + SMALL, F_SEAL_SHRINK, -EPROTO);
	page = good;
	page.heartbeat_ns = 1;
	expect_refusal(&page, 4096 + SMALL, F_SEAL_SHRINK, -EAGAIN);
	page.heartbeat_ns = clock_now_ns();
	fd = make_ring(&page, 4096 + SMALL, F_SEAL_SHRINK);
	/* It may count as fresh or not, depending on time, but never as ours. */
	assert_int_not_equal(ring_reader__open(getpid(), HELP_PROCESS, &why, &r), 0);
	(void)close(fd);
	fd = make_ring(&good, 4096 + SMALL, F_SEAL_SHRINK);
	assert_int_equal(ring_reader__open(getpid(), HELP_PROCESS, &why, &r), 0);
	/* The ring is in use now. */
	struct ring_reader *second;

	assert_int_not_equal(ring_reader__open(getpid(), HELP_PROCESS, &why, &second), 0);
	ring_reader__free(r);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_positions),
		cmocka_unit_test(test_head_goes_back),
		cmocka_unit_test(test_own_copies),
		cmocka_unit_test(test_slot_sizes),
		cmocka_unit_test(test_ops),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_other_events),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_unknown_name_id),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_random_rings),
		cmocka_unit_test(test_rings_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
