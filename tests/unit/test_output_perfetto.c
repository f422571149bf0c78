/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Perfetto's trace: what a reader does with it, packet by packet. Slices nest, names are known
 * before they are used, arrows have two ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/vec.h"
#include "golden.h"
#include "output/output.h"
#include "perfetto.pb-c.h"
#include "sample.h"
#include "stack_example.h"
#include "timeline/gpu_ranges.h"

struct slice {
	const char *name, *category;
	uint64_t track, start_ns, end_ns;
	size_t depth;
	const Perfetto__TrackEvent *event;
};

/* All of a trace, its slices in the order of their begins within each track. */
struct reading {
	Perfetto__Trace *trace;
	struct hash names[4]; /* iid -> index of its packet, by kind of interned text */
	struct hash tracks;   /* uuid -> packet of its descriptor */
	struct hash last_of;  /* uuid -> time of its last packet */
	VEC(struct slice) slices;
	VEC(size_t) open;
	uint64_t flows_nr;
};

static void read_interned(struct reading *r, const Perfetto__InternedData *d)
{
	for (size_t i = 0; i < d->n_event_categories; i++)
		assert_int_equal(hash__set(&r->names[0], d->event_categories[i]->iid,
					   (uintptr_t)d->event_categories[i]->name),
				 0);
	for (size_t i = 0; i < d->n_event_names; i++)
		assert_int_equal(hash__set(&r->names[1], d->event_names[i]->iid,
					   (uintptr_t)d->event_names[i]->name),
				 0);
	for (size_t i = 0; i < d->n_debug_annotation_names; i++)
		assert_int_equal(hash__set(&r->names[2], d->debug_annotation_names[i]->iid,
					   (uintptr_t)d->debug_annotation_names[i]->name),
				 0);
	for (size_t i = 0; i < d->n_debug_annotation_string_values; i++)
		assert_int_equal(hash__set(&r->names[3], d->debug_annotation_string_values[i]->iid,
					   (uintptr_t)d->debug_annotation_string_values[i]),
				 0);
}

static const char *name_of(const struct reading *r, int kind, uint64_t iid)
{
	const uint64_t *name = hash__find(&r->names[kind], iid);

	assert_non_null(name);
	return (const char *)(uintptr_t)*name;
}

static void begin(struct reading *r, uint64_t time_ns, const Perfetto__TrackEvent *e)
{
	const struct slice s = {
		.name = name_of(r, 1, e->name_iid),
		.category = name_of(r, 0, e->category_iids[0]),
		.track = e->track_uuid,
		.start_ns = time_ns,
		.end_ns = UINT64_MAX,
		.depth = r->open.nr,
		.event = e,
	};

	/* The last that is open is of this track: packets come track by track. */
	if (r->open.nr)
		assert_int_equal(r->slices.items[r->open.items[r->open.nr - 1]].track, s.track);
	assert_int_equal(vec_push(&r->open, r->slices.nr), 0);
	assert_int_equal(vec_push(&r->slices, s), 0);
}

static void end(struct reading *r, uint64_t time_ns, const Perfetto__TrackEvent *e)
{
	struct slice *s;

	assert_true(r->open.nr > 0);
	s = &r->slices.items[r->open.items[--r->open.nr]];
	assert_int_equal(s->track, e->track_uuid);
	assert_true(s->start_ns <= time_ns);
	s->end_ns = time_ns;
}

static void read_event(struct reading *r, const Perfetto__TracePacket *p)
{
	const Perfetto__TrackEvent *e = p->track_event;
	const uint64_t *last;

	assert_true(p->has_timestamp);
	assert_non_null(hash__find(&r->tracks, e->track_uuid));
	/* As they stand, packets of one track never go back in time: a reader that sorts them keeps
	 * their order. */
	last = hash__find(&r->last_of, e->track_uuid);
	assert_true(!last || *last <= p->timestamp);
	assert_int_equal(hash__set(&r->last_of, e->track_uuid, p->timestamp), 0);
	for (size_t i = 0; i < e->n_debug_annotations; i++) {
		(void)name_of(r, 2, e->debug_annotations[i]->name_iid);
		if (e->debug_annotations[i]->has_string_value_iid)
			(void)name_of(r, 3, e->debug_annotations[i]->string_value_iid);
	}
	r->flows_nr += e->n_flow_ids;
	if (e->type == 1)
		begin(r, p->timestamp, e);
	else if (e->type == 2)
		end(r, p->timestamp, e);
}

static void read_trace(struct reading *r, const struct timeline *t)
{
	struct sink *s = NULL;
	const char *bytes;
	size_t nr;

	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_perfetto(s, t), 0);
	assert_int_equal(sink__finish(s), 0);
	bytes = sink__bytes(s, &nr);
	r->trace = perfetto__trace__unpack(NULL, nr, (const uint8_t *)bytes);
	assert_non_null(r->trace);
	for (size_t i = 0; i < r->trace->n_packet; i++) {
		const Perfetto__TracePacket *p = r->trace->packet[i];

		if (p->interned_data)
			read_interned(r, p->interned_data);
		if (p->track_descriptor)
			assert_int_equal(hash__set(&r->tracks, p->track_descriptor->uuid,
						   (uintptr_t)p->track_descriptor),
					 0);
		if (p->track_event)
			read_event(r, p);
	}
	assert_int_equal(r->open.nr, 0);
	sink__free(s);
}

static void reading__done(struct reading *r)
{
	perfetto__trace__free_unpacked(r->trace, NULL);
	for (int i = 0; i < 4; i++)
		hash__done(&r->names[i]);
	hash__done(&r->tracks);
	hash__done(&r->last_of);
	vec_done(&r->slices);
	vec_done(&r->open);
}

static const struct slice *slice_named(const struct reading *r, const char *name, unsigned int nth)
{
	for (size_t i = 0; i < r->slices.nr; i++)
		if (!strcmp(r->slices.items[i].name, name) && !nth--)
			return &r->slices.items[i];
	fail_msg("no slice is called %s", name);
	return NULL;
}

static const Perfetto__TrackDescriptor *track_of(const struct reading *r, uint64_t uuid)
{
	const uint64_t *track = hash__find(&r->tracks, uuid);

	assert_non_null(track);
	return (const Perfetto__TrackDescriptor *)(uintptr_t)*track;
}

/* The text of an argument, "" if the slice has none of this name. */
static const char *text_arg(const struct reading *r, const struct slice *s, const char *name)
{
	static char text[1024];

	for (size_t i = 0; i < s->event->n_debug_annotations; i++) {
		const Perfetto__DebugAnnotation *a = s->event->debug_annotations[i];
		const Perfetto__InternedText *value;

		if (strcmp(name_of(r, 2, a->name_iid), name) != 0)
			continue;
		value = (const void *)name_of(r, 3, a->string_value_iid);
		assert_true(value->str.len < sizeof(text));
		memcpy(text, value->str.data, value->str.len);
		text[value->str.len] = '\0';
		return text;
	}
	return "";
}

static void test_slices(void **state)
{
	struct stack_example e;
	struct reading r = {0};
	const struct slice *s;

	stack_example__open(&e, sample_path("perfetto.gpuprof"), false);
	read_trace(&r, e.timeline);
	/* Ops, a call, two kernels: the one that the table leaves out is here. */
	assert_int_equal(r.slices.nr, 9 + 1 + 2);
	s = slice_named(&r, "aten::addmm", 0);
	assert_int_equal(s->start_ns, 1200000);
	assert_int_equal(s->end_ns, 2800000);
	assert_int_equal(s->depth, 1);
	assert_string_equal(s->category, "cpu_op");
	assert_string_equal(track_of(&r, s->track)->thread->thread_name, "python");
	assert_int_equal(track_of(&r, s->track)->thread->tid, 100);
	assert_string_equal(text_arg(&r, s, "Call stack"),
			    "train.py(10): <module>;train.py(41): step;model.py(12): Net.forward;"
			    "Operators_2.cpp(33): at::_ops::addmm::call;"
			    "libtorch_cpu.so: at::native::add(at::Tensor const&)");
	s = slice_named(&r, "cudaLaunchKernel", 0);
	assert_int_equal(s->depth, 2);
	assert_string_equal(s->category, "cuda_runtime");
	s = slice_named(&r, "aten::mm", 0);
	assert_int_equal(s->depth, 1);
	assert_true(strlen(text_arg(&r, s, "Forward call stack")) > 100);
	assert_string_equal(text_arg(&r, s, "Call stack"), "");
	s = slice_named(&r, "sgemm_128x64", 0);
	assert_string_equal(s->category, "kernel");
	assert_string_equal(track_of(&r, s->track)->name, "stream 7");
	assert_string_equal(track_of(&r, track_of(&r, s->track)->parent_uuid)->name, "GPU 0");
	assert_string_equal(text_arg(&r, s, "op"), "aten::addmm");
	reading__done(&r);
	stack_example__close(&e);
}

/* From the launch to its kernel, from the forward op to the first backward op that ends. */
static void test_flows(void **state)
{
	struct stack_example e;
	struct reading r = {0};
	uint64_t launch, kernel;

	stack_example__open(&e, sample_path("perfetto.gpuprof"), false);
	read_trace(&r, e.timeline);
	assert_int_equal(r.flows_nr, 4);
	launch = slice_named(&r, "cudaLaunchKernel", 0)->event->flow_ids[0];
	kernel = slice_named(&r, "sgemm_128x64", 0)->event->flow_ids[0];
	assert_int_equal(launch, kernel);
	assert_int_equal(slice_named(&r, "sgemm_128x64", 1)->event->n_flow_ids, 0);
	assert_int_equal(slice_named(&r, "aten::addmm", 0)->event->flow_ids[0],
			 slice_named(&r, "autograd::engine::evaluate_function: AddmmBackward0", 0)
				 ->event->flow_ids[0]);
	reading__done(&r);
	stack_example__close(&e);
}

static void test_counters_and_losses(void **state)
{
	static const int64_t cpu[] = {2048, 6144, 4096, 4352}, cuda[] = {20480, 0};
	size_t cpu_nr = 0, cuda_nr = 0, losses = 0;
	struct stack_example e;
	struct reading r = {0};

	stack_example__open(&e, sample_path("perfetto.gpuprof"), false);
	read_trace(&r, e.timeline);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const Perfetto__TrackEvent *ev = r.trace->packet[i]->track_event;

		if (ev && ev->type == 3)
			losses += ev->n_debug_annotations;
		if (!ev || ev->type != 4)
			continue;
		assert_int_equal(track_of(&r, ev->track_uuid)->counter->unit, 3);
		if (!strncmp(track_of(&r, ev->track_uuid)->name, "cpu ", 4))
			assert_int_equal(ev->counter_value, cpu[cpu_nr++]);
		else
			assert_int_equal(ev->counter_value, cuda[cuda_nr++]);
	}
	assert_int_equal(cpu_nr, 4);
	assert_int_equal(cuda_nr, 2);
	assert_int_equal(losses, e.timeline->losses.nr);
	reading__done(&r);
	stack_example__close(&e);
}

/* Real nesting of the golden events, with async and empty ops among them. */
static void test_golden_events(void **state)
{
	static const char *const lists[] = {"table_events.tsv", "table_gpu_events.tsv"};

	for (size_t k = 0; k < 2; k++) {
		struct events *e = events__new();
		struct reading r = {0};
		const struct timeline *t;
		struct gpu_ranges ranges;
		size_t drawn = 0;

		golden_events(e, lists[k]);
		t = events__timeline(e);
		read_trace(&r, t);
		for (size_t i = 0; i < t->gpu.work.nr; i++)
			drawn += t->gpu.work.items[i].lane != TL_NONE;
		assert_int_equal(gpu_ranges__find(t, true, &ranges), 0);
		assert_int_equal(r.slices.nr, t->ops.nr + t->gpu.api.nr + drawn + ranges.items.nr);
		gpu_ranges__done(&ranges);
		for (size_t i = 0; i < r.slices.nr; i++)
			assert_int_not_equal(r.slices.items[i].end_ns, UINT64_MAX);
		reading__done(&r);
		events__free(e);
	}
}

static uint64_t number_arg(const struct reading *r, const Perfetto__TrackEvent *e, const char *name)
{
	for (size_t i = 0; i < e->n_debug_annotations; i++)
		if (!strcmp(name_of(r, 2, e->debug_annotations[i]->name_iid), name))
			return e->debug_annotations[i]->uint_value;
	fail_msg("no argument is called %s", name);
	return 0;
}

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
	read_trace(&r, events__timeline(e));
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const Perfetto__TrackEvent *ev = r.trace->packet[i]->track_event;

		if (!ev || ev->type != 3 || strcmp(name_of(&r, 1, ev->name_iid), "cudaEvent") != 0)
			continue;
		assert_string_equal(name_of(&r, 0, ev->category_iids[0]), "cuda_event");
		assert_string_equal(track_of(&r, ev->track_uuid)->name, "stream 12 (events)");
		assert_string_equal(track_of(&r, track_of(&r, ev->track_uuid)->parent_uuid)->name,
				    "GPU 3");
		assert_int_equal(r.trace->packet[i]->timestamp, seen ? 6500 : 4500);
		assert_int_equal(number_arg(&r, ev, "event"), seen ? 1 : 2);
		assert_int_equal(number_arg(&r, ev, "correlation"), seen ? 5 : 3);
		seen++;
	}
	assert_int_equal(seen, 2);
	assert_int_equal(r.slices.nr, 2);
	assert_int_equal(number_arg(&r, r.slices.items[1].event, "event recorded by"), 5);
	assert_int_equal(number_arg(&r, r.slices.items[1].event, "event of stream"), 12);
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
	const struct slice *found[3];
	struct events *e = events__new();
	struct reading r = {0};
	size_t nr = 0;

	annotate(e, "a", 1, 100, 300);
	annotate(e, "b", 2, 200, 400);
	annotate(e, "c", 3, 500, 600);
	read_trace(&r, events__timeline(e));
	for (size_t i = 0; i < r.slices.nr; i++) {
		const struct slice *s = &r.slices.items[i];

		if (strcmp(s->category, "gpu_user_annotation") != 0)
			continue;
		assert_true(nr < 3);
		assert_string_equal(s->name, wanted[nr].name);
		assert_int_equal(s->start_ns, wanted[nr].start_ns);
		assert_int_equal(s->end_ns, wanted[nr].end_ns);
		assert_string_equal(track_of(&r, s->track)->name, "stream 7 (annotations)");
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
	read_trace(&r, events__timeline(e));
	for (size_t i = 0; i < r.slices.nr; i++)
		slices += !strcmp(r.slices.items[i].category, "gpu_user_annotation");
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const Perfetto__TrackEvent *ev = r.trace->packet[i]->track_event;

		if (!ev || ev->type != 3 || strcmp(name_of(&r, 1, ev->name_iid), "a") != 0)
			continue;
		assert_int_equal(number_arg(&r, ev, "duration ns"), 9050);
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
	read_trace(&r, events__timeline(e));
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const Perfetto__TrackEvent *ev = r.trace->packet[i]->track_event;

		if (!ev || ev->type != 3 || strcmp(name_of(&r, 1, ev->name_iid), "Big GPU") != 0)
			continue;
		assert_string_equal(track_of(&r, ev->track_uuid)->name, "GPU 0");
		assert_int_equal(number_arg(&r, ev, "totalGlobalMem"), 1ULL << 40);
		assert_int_equal(number_arg(&r, ev, "numSms"), 108);
		assert_int_equal(number_arg(&r, ev, "cuda_driver_version"), 13000);
		nr++;
	}
	assert_int_equal(nr, 1);
	reading__done(&r);
	events__free(e);
}

static void module_call(struct events *e, const char *type, uint32_t depth, uint64_t first,
			uint64_t last, uint64_t start_ns, uint64_t end_ns)
{
	events__module_call(e, type,
			    &(struct gp_ev_module_call){.head.time_ns = end_ns,
							.start_ns = start_ns,
							.object = first + depth,
							.depth = depth,
							.first = 1ULL << 32 | first,
							.last = 1ULL << 32 | last});
}

/* A range around a module, one in it, and calls of CUDA before, in and after its operators. */
static void test_modules(void **state)
{
	static const struct {
		const char *name;
		uint64_t start_ns, end_ns;
		size_t depth;
	} wanted[] = {
		{"range", 10, 90, 0},
		{"nn.Module: Net_0", 20, 60, 1},
		{"nn.Module: Linear_0", 20, 40, 2},
		{"range in it", 20, 40, 3},
		{"op", 25, 35, 4},
		{"cudaMalloc", 45, 46, 2},
		{"op", 50, 60, 2},
		{"cudaFree", 70, 71, 1},
		{"op", 80, 85, 1},
	};
	const uint64_t t = 1ULL << 32;
	const struct event_op ops[] = {
		{.name = "range",
		 .start_ns = 10,
		 .end_ns = 90,
		 .instance = t + 1,
		 .scope = GP_SCOPE_USER},
		{.name = "range in it",
		 .start_ns = 20,
		 .end_ns = 40,
		 .instance = t + 2,
		 .parent = t + 1,
		 .scope = GP_SCOPE_USER},
		{.name = "op", .start_ns = 25, .end_ns = 35, .instance = t + 3, .parent = t + 2},
		{.name = "op", .start_ns = 50, .end_ns = 60, .instance = t + 4, .parent = t + 1},
		{.name = "op", .start_ns = 80, .end_ns = 85, .instance = t + 5, .parent = t + 1},
	};
	struct events *e = events__new();
	struct reading r = {0};

	for (size_t i = 0; i < 5; i++)
		events__op(e, ops[i]);
	events__api(e, (struct event_api){.name = "cudaMalloc", .start_ns = 45, .end_ns = 46});
	events__api(e, (struct event_api){.name = "cudaFree", .start_ns = 70, .end_ns = 71});
	module_call(e, "Linear", 1, 2, 3, 20, 40);
	module_call(e, "Net", 0, 2, 4, 20, 60);
	read_trace(&r, events__timeline(e));
	assert_int_equal(r.slices.nr, 9);
	for (size_t i = 0; i < r.slices.nr; i++) {
		assert_string_equal(r.slices.items[i].name, wanted[i].name);
		assert_int_equal(r.slices.items[i].start_ns, wanted[i].start_ns);
		assert_int_equal(r.slices.items[i].end_ns, wanted[i].end_ns);
		assert_int_equal(r.slices.items[i].depth, wanted[i].depth);
	}
	reading__done(&r);
	events__free(e);
}

static void test_hostile(void **state)
{
	struct stack_example e;
	struct reading r = {0};

	stack_example__open(&e, sample_path("perfetto.gpuprof"), true);
	read_trace(&r, e.timeline);
	assert_int_equal(r.slices.nr, 12);
	for (size_t i = 0; i < r.slices.nr; i++)
		assert_null(strpbrk(r.slices.items[i].name, "\n\t\x01\xff"));
	reading__done(&r);
	stack_example__close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_flows),
		cmocka_unit_test(test_counters_and_losses),
		cmocka_unit_test(test_golden_events),
		cmocka_unit_test(test_cuda_events),
		cmocka_unit_test(test_annotations),
		cmocka_unit_test(test_many_annotations),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
