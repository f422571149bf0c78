/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * CUPTI's records, made by hand, through the ring and out at the other end: fields, names, records
 * of every length, what is refused and how it is counted.
 */
#include "collector/cupti/cupti_api_filter.h"
#include "collector/cupti/cupti_records.h"
#include "unit/ring_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BUFFER	 8192
#define BASE	 1700000000000000000ULL /* CUPTI's clock minus ours */
#define S	 1000000000ULL
#define FIRST_ID 32768

static struct {
	struct ring_writer w;
	struct ring_reader *r;
	struct names *names;
	struct cupti_records records;
	struct cupti_clock clock;
	uint64_t begin_ns; /* the clock's first time */
	uint8_t buffer[BUFFER] __attribute__((aligned(8)));
	size_t used, sizes[64];
	size_t nr, broken_after; /* records; 0: GetNextRecord never fails */
	/* what came out */
	struct gp_ev_kernel kernel;
	struct gp_ev_gpu_memory memory;
	struct gp_ev_api api;
	struct gp_ev_sync_event sync;
	struct gp_ev_cuda_event event;
	unsigned events_nr;
	char names_of[4][NAMES_TEXT_BYTES + 1];
	uint32_t ids[4];
	unsigned names_nr;
	unsigned asked_nr; /* how often CUPTI was asked for a function's name */
} t;

static int get_next(uint8_t *buffer, size_t valid_bytes, void **record)
{
	uint8_t *at = *record;
	size_t offset = 0;

	if (!at) {
		*record = buffer;
		return valid_bytes ? CUPTI_OK : CUPTI_LIMIT_REACHED;
	}
	for (size_t i = 0; i < t.nr; i++) {
		if (at == buffer + offset && t.broken_after && i + 1 >= t.broken_after)
			return CUPTI_PARAMETER;
		if (at == buffer + offset && i + 1 < t.nr) {
			*record = at + t.sizes[i];
			return CUPTI_OK;
		}
		offset += t.sizes[i];
	}
	return CUPTI_LIMIT_REACHED;
}

static int get_name(uint32_t domain, uint32_t cbid, const char **ret_name)
{
	static const char *const names[][3] = {
		{NULL, "cuLaunchKernel", "cudaLaunchKernel_v7000"},
		{NULL, "cuMemcpyHtoDAsync_v2", "cudaMemcpyAsync_ptsz_v7000"},
		{NULL, "cu_v1", "_v3020"},
		{NULL, "cuMemPoolGetAttribute", "cudaMemPoolGetAttribute_v11020"},
	};

	if (cbid >= sizeof(names) / sizeof(names[0]))
		return CUPTI_PARAMETER;
	t.asked_nr++;
	*ret_name = names[cbid][domain];
	return CUPTI_OK;
}

static int take(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	const struct gp_ev_name *name = event;

	switch (head->kind) {
	case GP_EV_NAME:
		assert_true(t.names_nr < 4);
		t.ids[t.names_nr] = name->name_id;
		memcpy(t.names_of[t.names_nr++], name + 1, name->text_bytes + 1);
		return 0;
	case GP_EV_KERNEL:
		t.kernel = *(const struct gp_ev_kernel *)event;
		break;
	case GP_EV_GPU_MEMORY:
		t.memory = *(const struct gp_ev_gpu_memory *)event;
		break;
	case GP_EV_API:
		t.api = *(const struct gp_ev_api *)event;
		break;
	case GP_EV_SYNC:
		t.sync = *(const struct gp_ev_sync_event *)event;
		break;
	case GP_EV_OVERHEAD:
		break;
	case GP_EV_CUDA_EVENT:
		t.event = *(const struct gp_ev_cuda_event *)event;
		break;
	default:
		fail();
	}
	t.events_nr++;
	return 0;
}

static int begin(void **state)
{
	static const struct cupti_library library = {
		.version = CUPTI_VERSION_13_0,
		.call = {.cuptiActivityGetNextRecord = get_next, .cuptiGetCallbackName = get_name},
	};
	struct clock_reading reading;

	memset(&t, 0, sizeof(t));
	t.begin_ns = clock_now_ns();
	if (ring_ends_open(&t.w, &t.r, 1 << 16))
		return -1;
	t.names = names__new(FIRST_ID);
	cupti_clock__init(&t.clock);
	/* Two readings; all times of records lie between them, none later than now. */
	reading = (struct clock_reading){t.begin_ns, t.begin_ns + BASE, 100};
	(void)cupti_clock__add(&t.clock, &reading);
	reading = (struct clock_reading){t.begin_ns + S, t.begin_ns + S + BASE, 100};
	(void)cupti_clock__add(&t.clock, &reading);
	cupti_records__init(&t.records, &t.w, t.names, &library, &t.clock);
	return t.names ? 0 : -1;
}

static int end(void **state)
{
	names__free(t.names);
	ring_ends_close(&t.w, t.r);
	return 0;
}

/* Puts a record of `bytes` bytes into the buffer. Bytes without a known value are filled with
 * RUBBISH. */
static void add(const void *record, size_t known_bytes, size_t bytes)
{
	assert_true(t.used + bytes <= BUFFER && t.nr < 64);
	memset(t.buffer + t.used, 0xa5, bytes);
	memcpy(t.buffer + t.used, record, known_bytes < bytes ? known_bytes : bytes);
	t.sizes[t.nr++] = bytes;
	t.used += bytes;
}

static unsigned convert(void)
{
	t.events_nr = 0;
	cupti_records__convert(&t.records, t.buffer, t.used);
	t.used = t.nr = 0;
	assert_true(ring_reader__drain(t.r, take, NULL) >= 0);
	return t.events_nr;
}

static struct cupti_kernel a_kernel(void)
{
	return (struct cupti_kernel){
		.kind = CUPTI_KERNEL,
		.registers_per_thread = 77,
		.start = t.begin_ns + BASE + 1000,
		.end = t.begin_ns + BASE + 3000,
		.device = 2,
		.context = 3,
		.stream = 4,
		.grid = {5, 6, 7},
		.block = {8, 9, 10},
		.static_shared_bytes = 11,
		.dynamic_shared_bytes = 12,
		.correlation_id = 0xfffffff0,
		.name = "_Z3addPf",
		.queued = t.begin_ns + BASE + 500,
		.graph_node = 1ULL << 40,
		.graph = 15,
	};
}

static void test_kernel(void **state)
{
	struct cupti_kernel k = a_kernel();

	add(&k, sizeof(k), 216);
	assert_int_equal(convert(), 1);
	assert_string_equal(t.names_of[0], "_Z3addPf");
	assert_in_range(t.ids[0], FIRST_ID, 65535);
	assert_true(t.kernel.start_ns == t.begin_ns + 1000);
	assert_true(t.kernel.head.time_ns == t.begin_ns + 3000);
	assert_true(t.kernel.queued_ns == t.begin_ns + 500);
	assert_int_equal(t.kernel.head.process, HELP_PROCESS);
	assert_int_equal(t.kernel.head.tid, 0);
	assert_int_equal(t.kernel.name_id, t.ids[0]);
	assert_int_equal(t.kernel.correlation_id, 0xfffffff0);
	assert_int_equal(t.kernel.device, 2);
	assert_int_equal(t.kernel.context, 3);
	assert_int_equal(t.kernel.stream, 4);
	assert_int_equal(t.kernel.registers, 77);
	assert_true(t.kernel.grid[0] == 5 && t.kernel.grid[1] == 6 && t.kernel.grid[2] == 7);
	assert_true(t.kernel.block[0] == 8 && t.kernel.block[1] == 9 && t.kernel.block[2] == 10);
	assert_int_equal(t.kernel.static_shared_bytes, 11);
	assert_int_equal(t.kernel.dynamic_shared_bytes, 12);
	assert_true(t.kernel.graph_node == 1ULL << 40 && t.kernel.graph == 15);
	/* The name is written once: names are compared by content, not by address. */
	k.name = strdup("_Z3addPf");
	add(&k, sizeof(k), 160);
	assert_int_equal(convert(), 1);
	assert_int_equal(t.names_nr, 1);
	assert_int_equal(t.kernel.name_id, t.ids[0]);
	free((char *)k.name);
}

/* Fields that an old record ends before are not read. */
static void test_lengths(void **state)
{
	struct cupti_kernel k = a_kernel();
	struct cupti_copy c = {
		.kind = CUPTI_MEMCPY,
		.copy_kind = 1,
		.src_kind = 2,
		.dst_kind = 3,
		.bytes = 4096,
		.start = k.start,
		.end = k.end,
		.device = 1,
		.context = 5,
		.stream = 6,
		.correlation_id = 99,
		.graph_node = 7,
		.graph = 8,
	};

	add(&k, sizeof(k), 144);
	assert_int_equal(convert(), 1);
	assert_true(!t.kernel.graph && !t.kernel.graph_node);
	for (size_t bytes = 72; bytes <= 96; bytes += 8) {
		add(&c, sizeof(c), bytes);
		add(&c, sizeof(c), bytes);
		assert_int_equal(convert(), 2);
		assert_true(t.memory.graph_node == 7);
		assert_int_equal(t.memory.graph, bytes >= 80 ? 8 : 0);
	}
	assert_int_equal(t.memory.is_set, 0);
	assert_true(t.memory.bytes == 4096 && t.memory.peer_device == UINT32_MAX);
	assert_true(t.memory.copy_kind == 1 && t.memory.src_kind == 2 && t.memory.dst_kind == 3);
	assert_int_equal(t.memory.correlation_id, 99);
	assert_int_equal(help_loss(t.r, GP_LOSS_RECORD), 0);
	add(&c, sizeof(c), 40);
	add(&k, sizeof(k), 128);
	assert_int_equal(convert(), 0);
	assert_int_equal(help_loss(t.r, GP_LOSS_RECORD), 2);
}

static void test_others(void **state)
{
	struct cupti_set s = {
		.kind = CUPTI_MEMSET,
		.bytes = 100,
		.start = t.begin_ns + BASE + 10,
		.end = t.begin_ns + BASE + 10,
		.memory_kind = 3,
		.stream = 9,
		.correlation_id = 5,
	};
	struct cupti_peer_copy p = {
		.kind = CUPTI_PEER_COPY,
		.copy_kind = 10,
		.bytes = 200,
		.start = s.start,
		.end = s.end,
		.device = 1,
		.dst_device = 3,
		.correlation_id = 6,
	};
	struct cupti_sync y = {
		.kind = CUPTI_SYNC,
		.type = 3,
		.start = s.start,
		.end = s.end,
		.correlation_id = 7,
		.stream = UINT32_MAX,
		.event = 4,
	};
	const uint32_t other[10] = {51};

	add(&s, sizeof(s), 88);
	assert_int_equal(convert(), 1);
	assert_true(t.memory.is_set == 1 && t.memory.bytes == 100 && t.memory.src_kind == 3);
	assert_true(t.memory.start_ns == t.begin_ns + 10 && t.memory.stream == 9);
	add(&p, sizeof(p), 104);
	add(other, sizeof(other), sizeof(other));
	add(&y, sizeof(y), 48);
	assert_int_equal(convert(), 2);
	assert_true(!t.memory.is_set && t.memory.peer_device == 3 && t.memory.correlation_id == 6);
	assert_true(t.sync.sync.what == 3 && t.sync.sync.stream == UINT32_MAX &&
		    t.sync.sync.event == 4 && !t.sync.record_id);
	assert_int_equal(help_loss(t.r, GP_LOSS_RECORD), 0);
}

/* By the record's length: before CUDA 12.8 there is no id of the record of an event. */
static void test_cuda_events(void **state)
{
	struct cupti_sync y = {
		.kind = CUPTI_SYNC,
		.type = 1,
		.start = t.begin_ns + BASE + 10,
		.end = t.begin_ns + BASE + 20,
		.event = 4,
		.record_id = 77,
	};
	struct cupti_event e = {
		.kind = CUPTI_EVENT,
		.correlation_id = 7,
		.context = 1,
		.stream = 13,
		.event = 4,
		.device = 2,
		.record_id = 77,
	};

	add(&y, 40, 40);
	add(&e, 24, 24);
	assert_int_equal(convert(), 2);
	assert_true(t.sync.sync.event == 4 && !t.sync.record_id);
	assert_true(t.event.device == UINT32_MAX && !t.event.record_id && t.event.event == 4);
	assert_true(t.event.stream == 13 && t.event.correlation_id == 7 && t.event.context == 1);
	/* Its time is that of the last reading. */
	assert_true(!t.event.head.flags && t.event.head.time_ns == t.begin_ns + S);
	add(&y, sizeof(y), 56);
	add(&e, sizeof(e), 64);
	assert_int_equal(convert(), 2);
	assert_true(t.sync.record_id == 77 && t.event.record_id == 77 && t.event.device == 2);
	y.event = CUPTI_NO_VALUE;
	y.record_id = UINT64_MAX;
	e.device_time = y.end;
	add(&y, sizeof(y), 56);
	add(&e, sizeof(e), 64);
	assert_int_equal(convert(), 2);
	assert_true(!t.sync.sync.event && !t.sync.record_id);
	assert_int_equal(t.event.head.flags, GP_CUDA_EVENT_TIMED);
	assert_true(t.event.head.time_ns == t.begin_ns + 20);
	/* A time that cannot be converted is counted; the event is written, because waits refer to
	 * it. */
	e.device_time = 2 * S + BASE + t.begin_ns;
	add(&e, sizeof(e), 64);
	assert_int_equal(convert(), 1);
	assert_true(!t.event.head.flags && t.event.head.time_ns == t.begin_ns + S);
	assert_true(t.event.record_id == 77);
	assert_int_equal(help_loss(t.r, GP_LOSS_GPU_CLOCK), 1);
	assert_int_equal(help_loss(t.r, GP_LOSS_RECORD), 0);
}

static struct cupti_api_call a_call(uint32_t kind, uint32_t cbid)
{
	return (struct cupti_api_call){
		.kind = kind,
		.cbid = cbid,
		.start = t.begin_ns + BASE + 20,
		.end = t.begin_ns + BASE + 30,
		.thread = (uint32_t)getpid(),
		.correlation_id = 8,
		.result = 2,
	};
}

static void test_calls(void **state)
{
	static const struct {
		uint32_t kind, cbid;
		const char *name;
	} cases[] = {
		{CUPTI_RUNTIME, 0, "cudaLaunchKernel"},
		{CUPTI_DRIVER, 0, "cuLaunchKernel"},
		{CUPTI_RUNTIME, 1, "cudaMemcpyAsync_ptsz"},
		{CUPTI_DRIVER, 1, "cuMemcpyHtoDAsync_v2"},
	};
	struct cupti_api_call call;

	for (unsigned i = 0; i < 4; i++) {
		call = a_call(cases[i].kind, cases[i].cbid);
		add(&call, sizeof(call), sizeof(call));
		add(&call, sizeof(call), sizeof(call));
		assert_int_equal(convert(), 2);
		assert_int_equal(t.names_nr, i + 1);
		assert_string_equal(t.names_of[i], cases[i].name);
		assert_int_equal(t.api.name_id, t.ids[i]);
		assert_int_equal(t.api.head.tid, getpid());
		assert_int_equal(t.api.head.flags,
				 GP_API_CUPTI |
					 (cases[i].kind == CUPTI_DRIVER ? GP_API_DRIVER : 0));
		assert_true(t.api.correlation_id == 8 && t.api.result == 2);
		assert_true(t.api.start_ns == t.begin_ns + 20);
	}
	/* The calls that are left out by number. */
	for (unsigned i = 0; i < sizeof(cupti_filtered_runtime) / sizeof(uint16_t); i++) {
		call = a_call(CUPTI_RUNTIME, cupti_filtered_runtime[i]);
		add(&call, sizeof(call), sizeof(call));
	}
	for (unsigned i = 0; i < sizeof(cupti_filtered_driver) / sizeof(uint16_t); i++) {
		call = a_call(CUPTI_DRIVER, cupti_filtered_driver[i]);
		add(&call, sizeof(call), sizeof(call));
	}
	assert_int_equal(convert(), 0);
	/* A call without a name is recorded. */
	call = a_call(CUPTI_RUNTIME, 500);
	add(&call, sizeof(call), sizeof(call));
	assert_int_equal(convert(), 1);
	assert_int_equal(t.api.name_id, 0);
	assert_int_equal(help_loss(t.r, GP_LOSS_NAMES), 1);
}

/* A query is recognized by its name, which is looked up once. It does not count as lost. */
static void test_questions(void **state)
{
	struct cupti_api_call call = a_call(CUPTI_DRIVER, 3);

	add(&call, sizeof(call), sizeof(call));
	add(&call, sizeof(call), sizeof(call));
	call.start = 0;
	add(&call, sizeof(call), sizeof(call));
	assert_int_equal(convert(), 0);
	assert_int_equal(t.asked_nr, 1);
	assert_int_equal(t.names_nr, 0);
	assert_int_equal(help_loss(t.r, GP_LOSS_GPU_TIME), 0);
	/* Queries of the runtime are the program's own calls. */
	call = a_call(CUPTI_RUNTIME, 3);
	add(&call, sizeof(call), sizeof(call));
	assert_int_equal(convert(), 1);
	assert_string_equal(t.names_of[0], "cudaMemPoolGetAttribute");
}

/* CUDA calls of the collector's own thread are left out. */
static void test_own_calls(void **state)
{
	struct cupti_api_call call = a_call(CUPTI_DRIVER, 0);
	struct cupti_overhead cost = {
		.kind = CUPTI_OVERHEAD,
		.object_kind = CUPTI_OBJECT_THREAD,
		.thread = call.thread,
		.start = call.start,
		.end = call.end,
	};

	cupti_records__set_own_thread(&t.records, call.thread);
	add(&call, sizeof(call), sizeof(call));
	call.kind = CUPTI_RUNTIME;
	add(&call, sizeof(call), sizeof(call));
	add(&cost, sizeof(cost), sizeof(cost));
	/* They do not count as lost. */
	call.start = 0;
	add(&call, sizeof(call), sizeof(call));
	assert_int_equal(convert(), 0);
	assert_int_equal(t.names_nr, 0);
	assert_int_equal(help_loss(t.r, GP_LOSS_GPU_TIME), 0);
	call = a_call(CUPTI_DRIVER, 0);
	call.thread = ++cost.thread;
	add(&call, sizeof(call), sizeof(call));
	add(&cost, sizeof(cost), sizeof(cost));
	assert_int_equal(convert(), 2);
	/* Only objects that are threads have a thread id. */
	cost.thread--;
	cost.object_kind = 0;
	add(&cost, sizeof(cost), sizeof(cost));
	assert_int_equal(convert(), 1);
	cupti_records__set_own_thread(&t.records, 0);
	call.thread--;
	add(&call, sizeof(call), sizeof(call));
	assert_int_equal(convert(), 1);
}

static void test_times(void **state)
{
	struct {
		uint64_t start, end;
		enum gp_loss what;
	} cases[] = {
		{0, t.begin_ns + BASE + 5, GP_LOSS_GPU_TIME},
		{t.begin_ns + BASE + 5, 0, GP_LOSS_GPU_TIME},
		{0, 0, GP_LOSS_GPU_TIME},
		{t.begin_ns + BASE + 5, t.begin_ns + BASE + 4, GP_LOSS_GPU_TIME},
		{t.begin_ns + BASE - 5, t.begin_ns + BASE + 4, GP_LOSS_OPEN_AT_START},
		{t.begin_ns + BASE - 9, t.begin_ns + BASE - 4, GP_LOSS_OPEN_AT_START},
		{t.begin_ns + BASE + 5, t.begin_ns + BASE + 9 * S, GP_LOSS_GPU_CLOCK},
		{t.begin_ns + BASE + 5, UINT64_MAX, GP_LOSS_GPU_CLOCK},
		{1, UINT64_MAX, GP_LOSS_GPU_CLOCK},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cupti_kernel k = a_kernel();
		uint64_t before = help_loss(t.r, cases[i].what);

		k.start = cases[i].start;
		k.end = cases[i].end;
		add(&k, sizeof(k), 160);
		assert_int_equal(convert(), 0);
		assert_int_equal(help_loss(t.r, cases[i].what), before + 1);
	}
	assert_int_equal(help_loss(t.r, GP_LOSS_GPU_TIME), 4);
	assert_int_equal(help_loss(t.r, GP_LOSS_OPEN_AT_START), 2);
	assert_int_equal(help_loss(t.r, GP_LOSS_GPU_CLOCK), 3);
	assert_int_equal(help_loss(t.r, GP_LOSS_RECORD), 0);
}

/* CUPTI cannot read the buffer to its end: the records before are converted, and the rest is
 * counted. */
static void test_broken_buffer(void **state)
{
	struct cupti_kernel k = a_kernel();

	for (int i = 0; i < 5; i++)
		add(&k, sizeof(k), 160);
	t.broken_after = 3;
	assert_int_equal(convert(), 3);
	assert_int_equal(help_loss(t.r, GP_LOSS_RECORD), 1);
}

static void test_long_names(void **state)
{
	static char text[5000];
	struct cupti_kernel k = a_kernel();

	memset(text, 'k', sizeof(text) - 1);
	k.name = text;
	add(&k, sizeof(k), 160);
	k.name = NULL;
	add(&k, sizeof(k), 160);
	assert_int_equal(convert(), 2);
	assert_int_equal(t.names_nr, 1);
	assert_int_equal(strlen(t.names_of[0]), NAMES_TEXT_BYTES);
	assert_int_equal(t.kernel.name_id, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kernel, begin, end),
		cmocka_unit_test_setup_teardown(test_lengths, begin, end),
		cmocka_unit_test_setup_teardown(test_others, begin, end),
		cmocka_unit_test_setup_teardown(test_cuda_events, begin, end),
		cmocka_unit_test_setup_teardown(test_calls, begin, end),
		cmocka_unit_test_setup_teardown(test_questions, begin, end),
		cmocka_unit_test_setup_teardown(test_own_calls, begin, end),
		cmocka_unit_test_setup_teardown(test_times, begin, end),
		cmocka_unit_test_setup_teardown(test_broken_buffer, begin, end),
		cmocka_unit_test_setup_teardown(test_long_names, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
