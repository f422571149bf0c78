/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GPU events in the collector's ring with one invalid field at a time: each is refused and counted.
 * Fields that only gpuprof knows are overwritten.
 */
#include "unit/ring_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define EVENT_BYTES 256
#define S	    1000000000ULL

union event {
	struct gp_ev_head head;
	struct gp_ev_api api;
	struct gp_ev_kernel kernel;
	struct gp_ev_gpu_memory memory;
	struct gp_ev_sync_event sync;
	struct gp_ev_cuda_event cuda;
	struct gp_ev_clock clock;
	struct gp_ev_device device;
	unsigned char bytes[EVENT_BYTES];
};

/* A field, and a value that it must not have. */
struct spoiled {
	size_t at, bytes;
	uint64_t value;
};

#define FIELD(type, field, value)                                                                  \
	{                                                                                          \
		offsetof(struct type, field), sizeof(((struct type *)0)->field), value             \
	}

static struct ring_writer w;
static struct ring_reader *r;
static union event seen;
static uint64_t refused_nr;

static int begin(void **state)
{
	refused_nr = 0;
	return ring_ends_open(&w, &r, 1 << 16);
}

static int end(void **state)
{
	ring_ends_close(&w, r);
	return 0;
}

static int take(const void *event, size_t bytes, void *arg)
{
	memcpy(&seen, event, bytes);
	return 0;
}

static void good(const union event *ev, size_t bytes)
{
	assert_true(ring_writer__write(&w, ev, bytes));
	assert_int_equal(ring_reader__drain(r, take, NULL), 1);
	assert_int_equal(help_loss(r, GP_LOSS_RECORD), refused_nr);
	assert_int_equal(seen.head.process, HELP_PROCESS);
}

static void bad(const union event *ev, size_t bytes)
{
	assert_true(ring_writer__write(&w, ev, bytes));
	assert_int_equal(ring_reader__drain(r, take, NULL), 0);
	assert_int_equal(help_loss(r, GP_LOSS_RECORD), ++refused_nr);
}

/* The event is valid. With any of the fields spoiled, or with another length, it is not. */
static void try_all(const union event *ev, size_t bytes, const struct spoiled *spoiled, size_t nr)
{
	good(ev, bytes);
	bad(ev, bytes - 8);
	bad(ev, bytes + 8);
	bad(ev, sizeof(ev->head));
	for (size_t i = 0; i < nr; i++) {
		union event other = *ev;

		memcpy(other.bytes + spoiled[i].at, &spoiled[i].value, spoiled[i].bytes);
		bad(&other, bytes);
	}
	good(ev, bytes);
}

#define TRY(ev, type, spoiled)                                                                     \
	try_all(&(ev), sizeof(struct type), spoiled, sizeof(spoiled) / sizeof((spoiled)[0]))

static union event an_event(uint8_t kind)
{
	union event ev;

	/* Every field that the process must not decide is garbage. */
	memset(&ev, 0, sizeof(ev));
	ev.head = (struct gp_ev_head){
		.kind = kind, .flags = 0xff, .process = 1234, .time_ns = clock_now_ns()};
	return ev;
}

static void test_kernel(void **state)
{
	union event ev = an_event(GP_EV_KERNEL);
	const struct spoiled spoiled[] = {
		FIELD(gp_ev_kernel, start_ns, 0),
		FIELD(gp_ev_kernel, start_ns, UINT64_MAX),
		FIELD(gp_ev_kernel, start_ns, ev.head.time_ns + 1),
		FIELD(gp_ev_kernel, start_ns, ev.head.time_ns - 100 * S),
		FIELD(gp_ev_kernel, head.time_ns, 0),
		FIELD(gp_ev_kernel, head.time_ns, UINT64_MAX),
		FIELD(gp_ev_kernel, head.time_ns, ev.head.time_ns + 1000 * S),
		FIELD(gp_ev_kernel, device, 4096),
		FIELD(gp_ev_kernel, registers, 65536),
		FIELD(gp_ev_kernel, grid[0], 0x80000000U),
		FIELD(gp_ev_kernel, grid[2], UINT32_MAX),
		FIELD(gp_ev_kernel, block[0], 1025),
		FIELD(gp_ev_kernel, block[2], UINT32_MAX),
		FIELD(gp_ev_kernel, static_shared_bytes, UINT32_MAX),
		FIELD(gp_ev_kernel, dynamic_shared_bytes, 1U << 30),
	};

	ev.kernel.head.tid = 5;
	ev.kernel.start_ns = ev.head.time_ns - 10;
	ev.kernel.queued_ns = ev.head.time_ns + 10;
	ev.kernel.name_id = 7;
	ev.kernel.grid[0] = ev.kernel.grid[1] = ev.kernel.grid[2] = 0x7fffffff;
	ev.kernel.block[0] = ev.kernel.block[1] = ev.kernel.block[2] = 1024;
	ev.kernel.device = 4095;
	ev.kernel.reserved = 9;
	TRY(ev, gp_ev_kernel, spoiled);
	assert_true(!seen.kernel.name_id && !seen.kernel.queued_ns && !seen.kernel.reserved);
	assert_true(!seen.head.tid && !seen.head.flags);
	assert_true(seen.kernel.start_ns == ev.kernel.start_ns && seen.kernel.device == 4095);
	assert_int_equal(help_loss(r, GP_LOSS_NAMES), 2);
	ev.kernel.queued_ns = ev.kernel.start_ns - 3;
	good(&ev, sizeof(ev.kernel));
	assert_true(seen.kernel.queued_ns == ev.kernel.queued_ns);
	ev.kernel.queued_ns = 1;
	good(&ev, sizeof(ev.kernel));
	assert_true(!seen.kernel.queued_ns);
}

static void test_memory(void **state)
{
	union event ev = an_event(GP_EV_GPU_MEMORY);
	const struct spoiled spoiled[] = {
		FIELD(gp_ev_gpu_memory, start_ns, ev.head.time_ns + 1),
		FIELD(gp_ev_gpu_memory, head.time_ns, UINT64_MAX),
		FIELD(gp_ev_gpu_memory, bytes, UINT64_MAX),
		FIELD(gp_ev_gpu_memory, device, UINT32_MAX),
		FIELD(gp_ev_gpu_memory, is_set, 2),
		FIELD(gp_ev_gpu_memory, peer_device, 4096),
	};

	ev.memory.start_ns = ev.head.time_ns;
	ev.memory.peer_device = UINT32_MAX;
	ev.memory.bytes = 1ULL << 56;
	ev.memory.head.tid = 6;
	TRY(ev, gp_ev_gpu_memory, spoiled);
	assert_true(!seen.head.tid && !seen.head.flags && seen.memory.bytes == 1ULL << 56);
	ev.memory.peer_device = 4095;
	good(&ev, sizeof(ev.memory));
}

static void test_api(void **state)
{
	union event ev = an_event(GP_EV_API);
	const struct spoiled spoiled[] = {
		FIELD(gp_ev_api, start_ns, ev.head.time_ns + 1),
		FIELD(gp_ev_api, start_ns, 1),
		FIELD(gp_ev_api, head.time_ns, UINT64_MAX),
		FIELD(gp_ev_api, cbid, 65536),
	};

	ev.api.start_ns = ev.head.time_ns - 5;
	ev.head.tid = (uint32_t)getpid();
	ev.api.instance = 1;
	ev.api.stack_id = 2;
	ev.api.stream = 3;
	ev.api.bytes = 4;
	ev.api.correlation_id = 5;
	ev.api.result = 6;
	TRY(ev, gp_ev_api, spoiled);
	/* The process must not set ops, stacks and arguments. */
	assert_true(!seen.api.instance && !seen.api.stack_id && !seen.api.stream &&
		    !seen.api.bytes);
	assert_true(seen.api.correlation_id == 5 && seen.api.result == 6);
	assert_int_equal(seen.head.tid, getpid());
	assert_int_equal(seen.head.flags, GP_API_CUPTI | GP_API_DRIVER);
}

static void test_sync_and_clock(void **state)
{
	union event sync = an_event(GP_EV_SYNC);
	union event clock = an_event(GP_EV_CLOCK);
	const struct spoiled spoiled_sync[] = {
		FIELD(gp_ev_sync, start_ns, sync.head.time_ns + 1),
		FIELD(gp_ev_sync, head.time_ns, UINT64_MAX),
		FIELD(gp_ev_sync, what, 256),
	};
	const struct spoiled spoiled_clock[] = {
		FIELD(gp_ev_clock, head.time_ns, 0),
		FIELD(gp_ev_clock, head.time_ns, UINT64_MAX),
		FIELD(gp_ev_clock, gpu_ns, 0),
		FIELD(gp_ev_clock, width_ns, UINT64_MAX),
	};

	sync.sync.sync.start_ns = sync.head.time_ns - 1;
	sync.sync.sync.stream = UINT32_MAX;
	sync.sync.record_id = UINT64_MAX;
	TRY(sync, gp_ev_sync_event, spoiled_sync);
	assert_true(seen.sync.record_id == UINT64_MAX);
	clock.clock.gpu_ns = 1;
	clock.clock.width_ns = 60 * S;
	TRY(clock, gp_ev_clock, spoiled_clock);
	assert_true(seen.clock.gpu_ns == 1 && seen.clock.width_ns == 60 * S);
}

static void test_device(void **state)
{
	union event ev = an_event(GP_EV_DEVICE);
	const struct spoiled spoiled[] = {
		FIELD(gp_ev_device, head.time_ns, UINT64_MAX),
		FIELD(gp_ev_device, memory_bytes, UINT64_MAX),
		FIELD(gp_ev_device, device, 4096),
		FIELD(gp_ev_device, major, UINT32_MAX),
		FIELD(gp_ev_device, blocks_per_sm, 0x80000000U),
		FIELD(gp_ev_device, clock_khz, UINT32_MAX),
		FIELD(gp_ev_device, driver_version, UINT32_MAX),
		FIELD(gp_ev_device, runtime_version, 0x80000000U),
		FIELD(gp_ev_device, cupti_version, UINT32_MAX),
	};

	ev.device.device = 4095;
	ev.device.cupti_version = 0x7fffffff;
	ev.device.reserved = ev.device.reserved2 = 9;
	memset(ev.device.name, 'x', sizeof(ev.device.name));
	TRY(ev, gp_ev_device, spoiled);
	assert_int_equal(strlen(seen.device.name), sizeof(ev.device.name) - 1);
	assert_int_equal(seen.device.cupti_version, 0x7fffffff);
	assert_true(!seen.device.reserved && !seen.device.reserved2 && !seen.head.flags);
}

static void test_cuda_event(void **state)
{
	union event ev = an_event(GP_EV_CUDA_EVENT);
	const struct spoiled spoiled[] = {
		FIELD(gp_ev_cuda_event, head.time_ns, 0),
		FIELD(gp_ev_cuda_event, head.time_ns, UINT64_MAX),
		FIELD(gp_ev_cuda_event, device, 4096),
	};

	ev.cuda.reserved = 7;
	ev.cuda.device = UINT32_MAX;
	ev.cuda.stream = UINT32_MAX;
	TRY(ev, gp_ev_cuda_event, spoiled);
	assert_true(!seen.head.tid && seen.head.flags == GP_CUDA_EVENT_TIMED &&
		    !seen.cuda.reserved);
	ev.cuda.device = 4095;
	good(&ev, sizeof(ev.cuda));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kernel, begin, end),
		cmocka_unit_test_setup_teardown(test_memory, begin, end),
		cmocka_unit_test_setup_teardown(test_api, begin, end),
		cmocka_unit_test_setup_teardown(test_sync_and_clock, begin, end),
		cmocka_unit_test_setup_teardown(test_device, begin, end),
		cmocka_unit_test_setup_teardown(test_cuda_event, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
