/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Samples where other outputs have operators: in live views, in Perfetto's trace, in profiles. What
 * they say is the same, and nothing that was measured is in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "output/flame/stack_samples.h"
#include "output/format/output.h"
#include "output/summary/live_totals.h"

#include "perfetto.pb-c.h"
#include "profile.pb-c.h"

#define PERIOD 10000000ULL
#define TORCH  "/usr/lib/libtorch_cpu.so"

enum { LINE = 1, LINEAR = 2, ADDMM = 3, GEMM = 4 };
enum { IN_GEMM = 1, IN_LINEAR = 2, IN_PYTHON = 3 };

static void add_sample(struct events *e, uint64_t start_ns, uint32_t stack, bool runs, uint32_t nr)
{
	events__sample(e, (struct event_sample){
				  .start_ns = start_ns,
				  .end_ns = start_ns + (nr - 1) * PERIOD,
				  .weight_ns = nr * PERIOD,
				  .nr = nr,
				  .tid = 100,
				  .stack_id = stack,
				  .syscall = runs ? GP_SAMPLE_NO_SYSCALL : 202,
				  .flags = runs ? GP_SAMPLE_RUNNING : 0,
			  });
}

/* 3 in the product, 1 in Python, a wait of 5 in linear. */
static struct events *example(void)
{
	const uint32_t gemm[] = {GEMM, ADDMM, LINEAR, LINE};
	struct events *e = events__new();

	events__meta(e, "mode", "sample");
	events__meta(e, "sample_hz", "100");
	events__meta(e, "machine", "x86_64");
	events__meta(e, "stacks", "both");
	events__frame(e, LINE, "/a.py", "forward", 7);
	events__native_frame(e, LINEAR, TORCH, "at::_ops::linear::call", "aten::linear", 0);
	events__native_frame(e, ADDMM, TORCH, "at::_ops::addmm::call", "aten::addmm", 0);
	events__native_frame(e, GEMM, "/usr/lib/libblas.so", "sgemm_kernel", NULL, 0);
	events__stack(e, IN_GEMM, gemm, 4);
	events__stack(e, IN_LINEAR, gemm + 2, 2);
	events__stack(e, IN_PYTHON, gemm + 3, 1);
	events__thread(e, 100, "main");
	for (uint64_t i = 0; i < 3; i++)
		add_sample(e, 1000 + i * PERIOD, IN_GEMM, true, 1);
	add_sample(e, 1000 + 3 * PERIOD, IN_PYTHON, true, 1);
	add_sample(e, 1000 + 4 * PERIOD, IN_LINEAR, false, 5);
	return e;
}

/* ---- live views ---- */

static void assert_value(const struct live_totals *y, enum totals_view view, const char *name,
			 enum totals_value value, uint64_t want)
{
	for (size_t i = 0; i < y->rows[view].nr; i++)
		if (!strcmp(y->rows[view].items[i].name, name)) {
			assert_int_equal(y->rows[view].items[i].values[TOTALS_LAST][value], want);
			return;
		}
	fail_msg("no row '%s'", name);
}

static void test_live(void **state)
{
	struct live_totals *y = live_totals__new();
	struct events *e = example();

	assert_int_equal(live_totals__add(y, events__timeline(e)), 0);
	assert_true(y->sampled);
	assert_int_equal(y->samples_nr[TOTALS_LAST], 4);
	assert_value(y, TOTALS_OPS, "aten::addmm", TOTALS_SELF_CPU_NS, 3 * PERIOD);
	assert_value(y, TOTALS_OPS, "aten::addmm", TOTALS_SAMPLES, 3);
	assert_value(y, TOTALS_OPS, "aten::linear", TOTALS_SELF_CPU_NS, 0);
	assert_value(y, TOTALS_OPS, "aten::linear", TOTALS_CPU_NS, 3 * PERIOD);
	assert_value(y, TOTALS_OPS, "aten::linear", TOTALS_OFF_NS, 5 * PERIOD);
	assert_value(y, TOTALS_OPS, "[no operator]", TOTALS_SELF_CPU_NS, PERIOD);
	assert_value(y, TOTALS_LINES, "/a.py:7 forward", TOTALS_SELF_CPU_NS, 4 * PERIOD);
	assert_value(y, TOTALS_LINES, "/a.py:7 forward", TOTALS_SAMPLES, 4);
	assert_value(y, TOTALS_LINES, "/a.py:7 forward", TOTALS_OFF_NS, 5 * PERIOD);
	assert_value(y, TOTALS_THREADS, "main", TOTALS_CPU_NS, 3 * PERIOD);
	assert_value(y, TOTALS_THREADS, "main", TOTALS_SAMPLES, 4);
	/* No calls: they are not known. */
	for (size_t i = 0; i < y->rows[TOTALS_OPS].nr; i++)
		assert_int_equal(y->rows[TOTALS_OPS].items[i].values[TOTALS_LAST][TOTALS_CALLS], 0);
	events__free(e);
	e = example();
	assert_int_equal(live_totals__add(y, events__timeline(e)), 0);
	assert_int_equal(y->samples_nr[TOTALS_SUM], 8);
	events__free(e);
	live_totals__free(y);
}

/* ---- Perfetto ---- */

struct perfetto_reported {
	size_t moments_nr, waits_nr;
	char functions[8][64];
	uint64_t function_of[8]; /* by frame */
	size_t callstacks_nr;
	uint64_t gemm[8]; /* frames of the deepest stack, root first */
	size_t gemm_nr;
};

static void read_interned(struct perfetto_reported *reported, const Perfetto__InternedData *d)
{
	for (size_t i = 0; i < d->n_function_names; i++) {
		assert_in_range(d->function_names[i]->iid, 1, 7);
		(void)snprintf(reported->functions[d->function_names[i]->iid], 64, "%.*s",
			       (int)d->function_names[i]->str.len,
			       (const char *)d->function_names[i]->str.data);
	}
	for (size_t i = 0; i < d->n_frames; i++) {
		assert_in_range(d->frames[i]->iid, 1, 7);
		assert_true(d->frames[i]->mapping_id > 0);
		reported->function_of[d->frames[i]->iid] = d->frames[i]->function_name_id;
	}
	for (size_t i = 0; i < d->n_callstacks; i++) {
		const Perfetto__Callstack *c = d->callstacks[i];

		reported->callstacks_nr++;
		if (c->n_frame_ids < 4)
			continue;
		reported->gemm_nr = c->n_frame_ids;
		memcpy(reported->gemm, c->frame_ids, c->n_frame_ids * sizeof(uint64_t));
	}
}

static void test_perfetto(void **state)
{
	static const char *const frames[] = {"forward (/a.py:7)", "at::_ops::linear::call",
					     "at::_ops::addmm::call", "sgemm_kernel"};
	struct perfetto_reported reported = {0};
	struct events *e = example();
	Perfetto__Trace *trace;
	const char *bytes;
	struct sink *s;
	size_t nr;

	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_perfetto(s, events__timeline(e)), 0);
	assert_int_equal(sink__finish(s), 0);
	bytes = sink__bytes(s, &nr);
	trace = perfetto__trace__unpack(NULL, nr, (const uint8_t *)bytes);
	assert_non_null(trace);
	assert_int_equal(
		trace->packet[0]->trace_packet_defaults->perf_sample_defaults->timebase->frequency,
		100);
	for (size_t i = 0; i < trace->n_packet; i++) {
		const Perfetto__TracePacket *p = trace->packet[i];

		if (p->interned_data)
			read_interned(&reported, p->interned_data);
		if (p->perf_sample) {
			assert_int_equal(p->timestamp, 1000 + reported.moments_nr++ * PERIOD);
			assert_int_equal(p->perf_sample->pid, 4242);
			assert_int_equal(p->perf_sample->tid, 100);
			assert_int_equal(p->perf_sample->cpu_mode, 2);
			assert_false(p->perf_sample->has_unwind_error);
		}
		reported.waits_nr += p->track_event && p->track_event->type == 1;
	}
	assert_int_equal(reported.moments_nr, 4);
	assert_int_equal(reported.waits_nr, 1);
	assert_int_equal(reported.callstacks_nr, 2);
	assert_int_equal(reported.gemm_nr, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(reported.functions[reported.function_of[reported.gemm[i]]],
				    frames[i]);
	perfetto__trace__free_unpacked(trace, NULL);
	sink__free(s);
	events__free(e);
}

/* ---- pprof ---- */

static const char *text_at(const Pprof__Profile *p, int64_t i)
{
	assert_in_range(i, 0, p->n_string_table - 1);
	return p->string_table[i];
}

/* As Go's runtime makes them. */
static void test_pprof(void **state)
{
	int64_t samples = 0, ns = 0;
	struct events *e = example();
	Pprof__Profile *p;
	const char *bytes;
	struct pprof *out;
	struct sink *s;
	size_t nr;

	assert_int_equal(sink__new_memory(&s), 0);
	out = pprof__new(s, 1U << STACK_CPU | 1U << STACK_SAMPLES);
	assert_non_null(out);
	assert_int_equal(pprof__add(out, events__timeline(e), 0), 0);
	assert_int_equal(pprof__finish(out, "self_cpu_time_total"), 0);
	pprof__free(out);
	assert_int_equal(sink__finish(s), 0);
	bytes = sink__bytes(s, &nr);
	p = pprof__profile__unpack(NULL, nr, (const uint8_t *)bytes);
	assert_non_null(p);
	assert_int_equal(p->n_sample_type, 2);
	assert_string_equal(text_at(p, p->sample_type[0]->type), "samples");
	assert_string_equal(text_at(p, p->sample_type[0]->unit), "count");
	assert_string_equal(text_at(p, p->sample_type[1]->type), "cpu");
	assert_string_equal(text_at(p, p->sample_type[1]->unit), "nanoseconds");
	assert_string_equal(text_at(p, p->period_type->type), "cpu");
	assert_int_equal(p->period, PERIOD);
	for (size_t i = 0; i < p->n_sample; i++) {
		samples += p->sample[i]->value[0];
		ns += p->sample[i]->value[1];
	}
	assert_int_equal(samples, 4);
	assert_int_equal(ns, 4 * PERIOD);
	pprof__profile__free_unpacked(p, NULL);
	sink__free(s);
	events__free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_perfetto),
		cmocka_unit_test(test_pprof),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
