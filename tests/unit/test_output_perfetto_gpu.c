/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GPUs in Perfetto's trace: rows of streams, CUDA events, annotations, and what the devices are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "perfetto_reading.h"

static void cuda_event(struct events *e, uint32_t event, uint32_t correlation_id, uint64_t time_ns)
{
	const struct gp_ev_cuda_event ev = {
		.head = {.kind = GP_EV_CUDA_EVENT,
			 .flags = GP_CUDA_EVENT_TIMED,
			 .time_ns = time_ns},
		.correlation_id = correlation_id,
		.context = 4,
		.stream = 12,
		.event = event,
		.device = 3,
	};

	events__raw(e, &ev, sizeof(ev));
}

/* Two of them, the one that was recorded later first, and who waits for one. */
static void test_cuda_events(void **state)
{
	const struct gp_ev_sync wait = {.head = {.kind = GP_EV_SYNC, .time_ns = 9000},
					.start_ns = 8000,
					.correlation_id = 7,
					.what = TL_SYNC_EVENT,
					.context = 4,
					.stream = TL_NONE,
					.event = 1};
	struct events *e = events__new();
	struct reading r = {0};
	uint32_t seen = 0;

	cuda_event(e, 1, 5, 6500);
	cuda_event(e, 2, 3, 4500);
	/* By its context it is known of which device the wait is. */
	events__gpu(e,
		    (struct event_gpu){.name = "k", .start_ns = 5000, .end_ns = 5500, .device = 3});
	events__raw(e, &wait, sizeof(wait));
	reading__read(&r, events__timeline(e));
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const Perfetto__TrackEvent *ev = r.trace->packet[i]->track_event;

		if (!ev || ev->type != 3 ||
		    strcmp(reading__name(&r, 1, ev->name_iid), "cudaEvent") != 0)
			continue;
		assert_string_equal(reading__name(&r, 0, ev->category_iids[0]), "cuda_event");
		assert_string_equal(reading__track(&r, ev->track_uuid)->name, "stream 12 (events)");
		assert_string_equal(
			reading__track(&r, reading__track(&r, ev->track_uuid)->parent_uuid)->name,
			"GPU 3");
		assert_int_equal(r.trace->packet[i]->timestamp, seen ? 6500 : 4500);
		assert_int_equal(reading__number_arg(&r, ev, "event"), seen ? 1 : 2);
		assert_int_equal(reading__number_arg(&r, ev, "correlation"), seen ? 5 : 3);
		seen++;
	}
	assert_int_equal(seen, 2);
	assert_int_equal(r.slices.nr, 2);
	assert_int_equal(reading__number_arg(&r, r.slices.items[1].event, "event recorded by"), 5);
	assert_int_equal(reading__number_arg(&r, r.slices.items[1].event, "event of stream"), 12);
	reading__done(&r);
	events__free(e);
}

/* An annotation, and work that was launched in it. */
static void annotate(struct events *e, const char *name, uint32_t id, uint64_t first_ns,
		     uint64_t last_ns)
{
	const uint64_t at = 10 * (uint64_t)id, instance = 1ULL << 32 | id;
	const uint64_t starts[] = {first_ns, last_ns};

	events__op(e, (struct event_op){.name = name,
					.start_ns = at,
					.end_ns = at + 5,
					.instance = instance,
					.scope = GP_SCOPE_USER});
	for (uint32_t i = 0; i < 2; i++) {
		events__api(e, (struct event_api){.name = "cudaLaunchKernel",
						  .start_ns = at + 1 + i,
						  .end_ns = at + 2 + i,
						  .instance = instance,
						  .correlation_id = 2 * id + i,
						  .cupti = true});
		events__gpu(e, (struct event_gpu){.name = "k",
						  .correlation_id = 2 * id + i,
						  .stream = 7,
						  .start_ns = starts[i],
						  .end_ns = starts[i] + 50});
	}
}

/* Slices of one row do not overlap: the second of these is on another one, the third is not. */
static void test_annotations(void **state)
{
	static const struct {
		const char *name;
		uint64_t start_ns, end_ns;
	} wanted[] = {{"a", 100, 350}, {"b", 200, 450}, {"c", 500, 650}};
	const struct perfetto_slice *found[3];
	struct events *e = events__new();
	struct reading r = {0};
	size_t nr = 0;

	annotate(e, "a", 1, 100, 300);
	annotate(e, "b", 2, 200, 400);
	annotate(e, "c", 3, 500, 600);
	reading__read(&r, events__timeline(e));
	for (size_t i = 0; i < r.slices.nr; i++) {
		const struct perfetto_slice *s = &r.slices.items[i];

		if (strcmp(s->category, "gpu_user_annotation") != 0)
			continue;
		assert_true(nr < 3);
		assert_string_equal(s->name, wanted[nr].name);
		assert_int_equal(s->start_ns, wanted[nr].start_ns);
		assert_int_equal(s->end_ns, wanted[nr].end_ns);
		assert_string_equal(reading__track(&r, s->track)->name, "stream 7 (annotations)");
		found[nr++] = s;
	}
	assert_int_equal(nr, 3);
	assert_int_not_equal(found[0]->track, found[1]->track);
	assert_int_equal(found[0]->track, found[2]->track);
	reading__done(&r);
	events__free(e);
}

/* What no row is left for is there, too. */
static void test_many_annotations(void **state)
{
	struct events *e = events__new();
	struct reading r = {0};
	uint32_t slices = 0, marks = 0;

	for (uint32_t i = 1; i <= 40; i++)
		annotate(e, "a", i, 1000 + 100 * i, 10000 + 100 * i);
	reading__read(&r, events__timeline(e));
	for (size_t i = 0; i < r.slices.nr; i++)
		slices += !strcmp(r.slices.items[i].category, "gpu_user_annotation");
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const Perfetto__TrackEvent *ev = r.trace->packet[i]->track_event;

		if (!ev || ev->type != 3 || strcmp(reading__name(&r, 1, ev->name_iid), "a") != 0)
			continue;
		assert_int_equal(reading__number_arg(&r, ev, "duration ns"), 9050);
		marks++;
	}
	assert_int_equal(slices, 32);
	assert_int_equal(slices + marks, 40);
	reading__done(&r);
	events__free(e);
}

/* One that did nothing has no row to say it on. */
static void test_devices(void **state)
{
	struct gp_ev_device device = {.head.kind = GP_EV_DEVICE,
				      .memory_bytes = 1ULL << 40,
				      .sms = 108,
				      .name = "Big GPU",
				      .driver_version = 13000};
	struct events *e = events__new();
	struct reading r = {0};
	uint32_t nr = 0;

	for (device.device = 0; device.device < 2; device.device++)
		events__raw(e, &device, sizeof(device));
	annotate(e, "a", 1, 100, 300);
	reading__read(&r, events__timeline(e));
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const Perfetto__TrackEvent *ev = r.trace->packet[i]->track_event;

		if (!ev || ev->type != 3 ||
		    strcmp(reading__name(&r, 1, ev->name_iid), "Big GPU") != 0)
			continue;
		assert_string_equal(reading__track(&r, ev->track_uuid)->name, "GPU 0");
		assert_int_equal(reading__number_arg(&r, ev, "totalGlobalMem"), 1ULL << 40);
		assert_int_equal(reading__number_arg(&r, ev, "numSms"), 108);
		assert_int_equal(reading__number_arg(&r, ev, "cuda_driver_version"), 13000);
		nr++;
	}
	assert_int_equal(nr, 1);
	reading__done(&r);
	events__free(e);
}

/* By one number two processes may mean two streams of two GPUs, and the numbers may be each
 * other's.
 */
static void test_rows_of_processes(void **state)
{
	struct events *e = events__new();
	struct reading r = {0};
	struct hash tracks = {0};

	for (uint16_t i = 1; i < 16; i++)
		events__process(e, i, 5000 + i, "rank");
	for (uint16_t i = 0; i < 16; i++)
		for (uint32_t stream = 0; stream < 16; stream++)
			events__gpu(e, (struct event_gpu){.name = "k",
							  .process = i,
							  .stream = stream,
							  .start_ns = 100,
							  .end_ns = 200});
	reading__read(&r, events__timeline(e));
	assert_int_equal(r.slices.nr, 16 * 16);
	for (size_t i = 0; i < r.slices.nr; i++) {
		assert_null(hash__find(&tracks, r.slices.items[i].track));
		assert_int_equal(hash__set(&tracks, r.slices.items[i].track, 1), 0);
	}
	hash__done(&tracks);
	reading__done(&r);
	events__free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuda_events),	  cmocka_unit_test(test_annotations),
		cmocka_unit_test(test_many_annotations),  cmocka_unit_test(test_devices),
		cmocka_unit_test(test_rows_of_processes),
	};

	return cmocka_run_group_tests_name("output_perfetto_gpu", tests, NULL, NULL);
}
