/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The memory outputs on timelines made by hand: what the peak is and who held it, which points a
 * thinned line keeps, the JSON to the byte, and that no name gets out of the page's data.
 */
#include "output/format/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/memory/memory_json.h"
#include "output/memory/memory_usage.h"
#include "unit/memory_example.h"

/* 0: conv2d > empty, and the same under an annotation; peak of 700 at 300 us. */
static void fill_example(struct timeline *t)
{
	uint32_t note, conv, empty, cat, a, b;

	example__init(t);
	note = example__op(t, "step", TL_NONE, GP_SCOPE_USER);
	conv = example__op(t, "aten::conv2d", note, GP_SCOPE_FUNCTION);
	empty = example__op(t, "aten::empty", conv, GP_SCOPE_FUNCTION);
	cat = example__op(t, "aten::cat", TL_NONE, GP_SCOPE_FUNCTION);
	a = example__alloc(t, 100, 400, empty);
	b = example__alloc(t, 200, 100, cat);
	(void)example__alloc(t, 300, 200, empty);
	(void)example__free(t, 400, a);
	(void)example__alloc(t, 500, 50, TL_NONE);
	(void)example__free(t, 600, b);
	example__loss(t, "ring_full", 0);
	example__loss(t, recording_loss_name(GP_LOSS_FREE_UNKNOWN), 3);
}

static const struct memory_op *op_named(const struct memory_device *d, const char *op)
{
	for (size_t i = 0; i < d->ops.nr; i++) {
		const char *name = d->ops.items[i].op;

		if (name == op || (name && op && !strcmp(name, op)))
			return &d->ops.items[i];
	}
	fail_msg("no op %s", op ? op : "(none)");
	return NULL;
}

static void peak_is_the_first_highest_total(void **state)
{
	struct timeline t;
	struct memory_usage u;
	const struct memory_device *d;

	fill_example(&t);
	(void)example__alloc(&t, 700, 450, TL_NONE); /* 700 again: not a new peak */
	assert_int_equal(memory_usage__init(&u, &t), 0);
	assert_int_equal(u.devices.nr, 1);
	d = &u.devices.items[0];
	assert_int_equal(d->peak_bytes, 700);
	assert_int_equal(d->peak, 2);
	assert_int_equal(d->end_bytes, 700);
	memory_usage__done(&u);
	example__done(&t);
}

static void ops_hold_what_was_alive_at_the_peak(void **state)
{
	struct timeline t;
	struct memory_usage u;
	const struct memory_op *empty, *cat, *none;

	fill_example(&t);
	assert_int_equal(memory_usage__init(&u, &t), 0);
	empty = op_named(&u.devices.items[0], "aten::empty");
	assert_string_equal(empty->outermost, "aten::conv2d");
	assert_int_equal(empty->allocations, 2);
	assert_int_equal(empty->allocated_bytes, 600);
	assert_int_equal(empty->largest_bytes, 400);
	assert_int_equal(empty->peak_bytes, 600);
	assert_int_equal(empty->end_bytes, 200);
	cat = op_named(&u.devices.items[0], "aten::cat");
	assert_int_equal(cat->peak_bytes, 100);
	assert_int_equal(cat->end_bytes, 0);
	none = op_named(&u.devices.items[0], NULL);
	assert_null(none->outermost);
	assert_int_equal(none->peak_bytes, 0);
	assert_int_equal(none->end_bytes, 50);
	memory_usage__done(&u);
	example__done(&t);
}

static void one_op_under_two_others_is_two_rows(void **state)
{
	struct timeline t;
	struct memory_usage u;
	uint32_t outer;

	example__init(&t);
	for (int i = 0; i < 4; i++) {
		outer = example__op(&t, i % 2 ? "aten::linear" : "aten::conv2d", TL_NONE, 0);
		(void)example__alloc(&t, 1 + (uint64_t)i, 10,
				     example__op(&t, "aten::empty", outer, 0));
	}
	assert_int_equal(memory_usage__init(&u, &t), 0);
	assert_int_equal(u.devices.items[0].ops.nr, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(u.devices.items[0].ops.items[i].allocations, 2);
	memory_usage__done(&u);
	example__done(&t);
}

static void devices_and_processes_are_apart(void **state)
{
	struct timeline t;
	struct memory_usage u;
	uint32_t other;

	example__init(&t);
	other = example__thread(&t, example__process(&t, 4243, "python3"));
	(void)example__alloc_on(&t, 1, 10, TL_NONE, 0, GP_DEVICE_CPU, -1);
	(void)example__alloc_on(&t, 2, 20, TL_NONE, 0, GP_DEVICE_CUDA, 0);
	(void)example__alloc_on(&t, 3, 30, TL_NONE, 0, GP_DEVICE_CUDA, 1);
	(void)example__alloc_on(&t, 4, 40, TL_NONE, other, GP_DEVICE_CPU, -1);
	(void)example__alloc_on(&t, 5, 50, TL_NONE, TL_NONE, GP_DEVICE_CPU, -1);
	assert_int_equal(memory_usage__init(&u, &t), 0);
	assert_int_equal(u.devices.nr, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(u.devices.items[i].peak_bytes, 10 * (i + 1));
	assert_int_equal(u.devices.items[3].process, 1);
	assert_int_equal(u.devices.items[4].process, TL_NONE);
	memory_usage__done(&u);
	example__done(&t);
}

/* Two allocations at one address without a free between them: the free was lost. */
static void a_lost_free_ends_where_the_address_is_given_out_again(void **state)
{
	struct timeline t;
	struct memory_usage u;
	uint32_t a = 0, b = 1;

	example__init(&t);
	(void)example__op(&t, "first", TL_NONE, 0);
	(void)example__op(&t, "second", TL_NONE, 0);
	(void)example__alloc(&t, 1, 100, a);
	(void)example__alloc(&t, 2, 300, b);
	t.memory.items[1].address = t.memory.items[0].address;
	t.memory.items[1].total_bytes = 300; /* as timeline/ counts it */
	(void)example__alloc(&t, 3, 50, a);
	assert_int_equal(memory_usage__init(&u, &t), 0);
	assert_int_equal(u.devices.items[0].peak_bytes, 350);
	assert_int_equal(op_named(&u.devices.items[0], "first")->peak_bytes, 50);
	assert_int_equal(op_named(&u.devices.items[0], "first")->end_bytes, 50);
	assert_int_equal(op_named(&u.devices.items[0], "first")->allocated_bytes, 150);
	assert_int_equal(op_named(&u.devices.items[0], "second")->peak_bytes, 300);
	memory_usage__done(&u);
	example__done(&t);
}

static void believes_no_index_and_no_size(void **state)
{
	struct timeline t;
	struct memory_usage u;

	example__init(&t);
	(void)example__op(&t, "a", 1, 0);
	(void)example__op(&t, "b", 0, 0);
	(void)example__alloc(&t, 1, INT64_MAX, 0);
	(void)example__alloc(&t, 2, INT64_MAX, 1);
	(void)example__alloc(&t, 3, INT64_MAX, 1);
	(void)example__alloc(&t, 4, 1, 77);
	(void)example__alloc(&t, 5, 0, 0);
	assert_int_equal(memory_usage__init(&u, &t), 0);
	assert_int_equal(op_named(&u.devices.items[0], "b")->allocated_bytes, INT64_MAX);
	assert_int_equal(op_named(&u.devices.items[0], NULL)->allocated_bytes, 1);
	memory_usage__done(&u);
	example__done(&t);
}

/* A saw of `nr` events with one spike and one dip in it. */
static void fill_saw(struct timeline *t, size_t nr)
{
	example__init(t);
	for (size_t i = 0; i < nr; i++) {
		(void)example__alloc(t, i * 7, 1000 + (int64_t)(i % 13), TL_NONE);
		t->memory.items[i].total_bytes = (int64_t)(1000 + i % 13);
	}
	t->memory.items[nr / 3].total_bytes = 1000000;
	t->memory.items[nr / 2].total_bytes = 1;
}

static bool has_event(const struct memory_points *p, size_t event)
{
	for (size_t i = 0; i < p->events.nr; i++) {
		if (p->events.items[i] == event)
			return true;
	}
	return false;
}

static void thinning_keeps_extremes_and_ends(void **state)
{
	const size_t nr = 100000;
	struct timeline t;
	struct memory_usage u;
	struct memory_points p;

	fill_saw(&t, nr);
	assert_int_equal(memory_usage__init(&u, &t), 0);
	assert_int_equal(u.devices.items[0].peak, nr / 3);
	assert_int_equal(memory_device__points(&u.devices.items[0], &t, 2000, &p), 0);
	assert_in_range(p.events.nr, 1000, 2000);
	assert_true(p.bucket_ns > 0);
	for (size_t i = 1; i < p.events.nr; i++)
		assert_true(p.events.items[i] > p.events.items[i - 1]);
	assert_true(has_event(&p, 0));
	assert_true(has_event(&p, nr / 3));
	assert_true(has_event(&p, nr / 2));
	assert_true(has_event(&p, nr - 1));
	vec_done(&p.events);
	memory_usage__done(&u);
	example__done(&t);
}

static void few_points_are_all_kept(void **state)
{
	struct timeline t;
	struct memory_usage u;
	struct memory_points p;
	const size_t limits[] = {0, 500, 501};

	fill_saw(&t, 500);
	assert_int_equal(memory_usage__init(&u, &t), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(memory_device__points(&u.devices.items[0], &t, limits[i], &p), 0);
		assert_int_equal(p.events.nr, 500);
		assert_int_equal(p.bucket_ns, 0);
		vec_done(&p.events);
	}
	memory_usage__done(&u);
	example__done(&t);
}

static void events_of_one_moment_are_thinned_to_four(void **state)
{
	struct timeline t;
	struct memory_usage u;
	struct memory_points p;

	fill_saw(&t, 300);
	for (size_t i = 0; i < 300; i++)
		t.memory.items[i].time_ns = t.start_ns;
	assert_int_equal(memory_usage__init(&u, &t), 0);
	assert_int_equal(memory_device__points(&u.devices.items[0], &t, 100, &p), 0);
	assert_int_equal(p.events.nr, 4);
	vec_done(&p.events);
	memory_usage__done(&u);
	example__done(&t);
}

static const char example_json[] =
	"{\"schema\": \"gpuprof-memory-1\",\n"
	"\"start_unix_us\": 1700000005000000, \"duration_us\": 1000000.000,\n"
	"\"processes\": [\n"
	"{\"pid\": 4242, \"rank\": null, \"comm\": \"python3\", \"cmdline\": \"python3\"}],\n"
	"\"devices\": [\n"
	"{\"device\": \"cpu\", \"process\": 0, \"events\": 6, \"thinned_us\": null,\n"
	"\"times_us\": [100.000,200.000,300.000,400.000,500.000,600.000],\n"
	"\"bytes\": [400,500,700,300,350,250],\n"
	"\"peak\": {\"time_us\": 300.000, \"bytes\": 700, \"held_by\": [\n"
	"{\"op\": \"aten::empty\", \"outermost\": \"aten::conv2d\", \"allocations\": 2, "
	"\"bytes\": 600},\n"
	"{\"op\": \"aten::cat\", \"outermost\": \"aten::cat\", \"allocations\": 1, "
	"\"bytes\": 100}], \"held_by_nr\": 2},\n"
	"\"ops\": [\n"
	"{\"op\": \"aten::empty\", \"outermost\": \"aten::conv2d\", \"allocations\": 2, "
	"\"bytes\": 600, \"largest_bytes\": 400, \"peak_bytes\": 600, \"end_allocations\": 1, "
	"\"end_bytes\": 200},\n"
	"{\"op\": \"aten::cat\", \"outermost\": \"aten::cat\", \"allocations\": 1, "
	"\"bytes\": 100, \"largest_bytes\": 100, \"peak_bytes\": 100, \"end_allocations\": 0, "
	"\"end_bytes\": 0},\n"
	"{\"op\": null, \"outermost\": null, \"allocations\": 1, \"bytes\": 50, "
	"\"largest_bytes\": 50, \"peak_bytes\": 0, \"end_allocations\": 1, \"end_bytes\": 50}], "
	"\"ops_nr\": 3, \"end_bytes\": 250}],\n"
	"\"frees_of_unknown_size\": 3,\n"
	"\"losses\": {\"ring_full\": 0, \"free_unknown\": 3},\n"
	"\"capture\": {}}\n";

static void json_is_as_described(void **state)
{
	struct timeline t;
	struct sink *s = NULL;

	fill_example(&t);
	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_memory_json(s, &t), 0);
	assert_string_equal(sink__bytes(s, NULL), example_json);
	sink__free(s);
	example__done(&t);
}

static void json_lists_are_cut_where_asked(void **state)
{
	const struct memory_json_options options = {.max_ops = 1};
	struct timeline t;
	struct sink *s = NULL;

	fill_example(&t);
	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(memory_json_write(s, &t, &options), 0);
	assert_non_null(strstr(sink__bytes(s, NULL), "\"held_by_nr\": 2"));
	assert_non_null(strstr(sink__bytes(s, NULL), "\"ops_nr\": 3"));
	assert_null(strstr(sink__bytes(s, NULL), "aten::cat"));
	sink__free(s);
	example__done(&t);
}

static void json_reports_the_allocators_totals(void **state)
{
	struct timeline t;
	struct sink *s = NULL;

	example__init(&t);
	(void)example__alloc_on(&t, 1, 10, TL_NONE, 0, GP_DEVICE_CUDA, 0);
	(void)example__alloc_on(&t, 2, 10, TL_NONE, 0, GP_DEVICE_CUDA, 0);
	t.memory.items[1].allocated_bytes = 512;
	t.memory.items[1].reserved_bytes = 2048;
	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_memory_json(s, &t), 0);
	assert_non_null(strstr(sink__bytes(s, NULL), "\"allocator_bytes\": [null,512]"));
	assert_non_null(strstr(sink__bytes(s, NULL), "\"reserved_bytes\": [null,2048]"));
	sink__free(s);
	example__done(&t);
}

static size_t count_of(const char *text, const char *what)
{
	size_t nr = 0;

	for (const char *p = text; (p = strcasestr(p, what)); p++)
		nr++;
	return nr;
}

/* The page of `t`, or of an empty timeline; the caller frees. */
static char *page_of(const struct timeline *t)
{
	struct sink *s = NULL;
	char *text;

	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_memory_html(s, t), 0);
	text = strdup(sink__bytes(s, NULL));
	assert_non_null(text);
	sink__free(s);
	return text;
}

static void names_stay_inside_the_data(void **state)
{
	static const char *const hostile[] = {"</script><script>alert(1)</script>", "<!--<script>",
					      "</SCRIPT\t>", "a\"b\\c\n\x01\xff</x>"};
	struct timeline t;
	char *plain, *page;

	example__init(&t);
	plain = page_of(&t);
	for (size_t i = 0; i < 4; i++) {
		(void)example__alloc(&t, i, 10, example__op(&t, hostile[i], TL_NONE, 0));
		example__loss(&t, hostile[i], 1);
	}
	t.processes.items[0].comm = hostile[0];
	t.processes.items[0].cmdline = hostile[1];
	page = page_of(&t);
	assert_true(count_of(page, "alert(1)") > 0);
	assert_int_equal(count_of(page, "<"), count_of(plain, "<"));
	assert_int_equal(count_of(page, "</script"), 2);
	free(page);
	free(plain);
	example__done(&t);
}

static void page_needs_nothing_else(void **state)
{
	struct timeline t;
	char *page;

	fill_example(&t);
	page = page_of(&t);
	assert_int_equal(strncmp(page, "<!doctype html>", 15), 0);
	assert_non_null(strstr(page, "default-src 'none'"));
	assert_non_null(strstr(page, "Permission is hereby granted"));
	assert_int_equal(count_of(page, "@DATA@"), 0);
	assert_int_equal(count_of(page, " src="), 0);
	free(page);
	example__done(&t);
}

static void write_errors_come_back(void **state)
{
	struct timeline t;
	struct sink *s = NULL;

	fill_saw(&t, 50000);
	for (int html = 0; html < 2; html++) {
		assert_int_equal(sink__new_path("/dev/full", &s), 0);
		assert_int_equal(html ? output_memory_html(s, &t) : output_memory_json(s, &t),
				 -ENOSPC);
		assert_int_equal(sink__finish(s), -ENOSPC);
		sink__free(s);
	}
	example__done(&t);
}

static void assert_losses_text(const struct timeline *t, bool zeros, const char *text)
{
	struct sink *s = NULL;

	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_losses_text(s, t->losses.items, t->losses.nr, zeros), 0);
	assert_string_equal(sink__bytes(s, NULL), text);
	sink__free(s);
}

static void losses_are_all_reported(void **state)
{
	struct timeline t;

	example__init(&t);
	assert_losses_text(&t, false,
			   "completeness: unknown, this recording has no counters of losses\n");
	example__loss(&t, "ring_full", 0);
	example__loss(&t, "names", 0);
	assert_losses_text(&t, true, "complete: no event is missing\n  zero: ring_full, names.\n");
	assert_losses_text(&t, false, "complete: no event is missing\n");
	t.losses.items[1].count = UINT64_MAX;
	assert_losses_text(&t, true,
			   "complete: no event is missing. Less exact: names: "
			   "18446744073709551615. (see gpuprof-losses(7))\n"
			   "  zero: ring_full.\n");
	t.losses.items[0].count = 7;
	assert_losses_text(&t, true,
			   "incomplete: EVENTS ARE MISSING: ring_full: 7. Less exact: names: "
			   "18446744073709551615.\n"
			   "  (see gpuprof-losses(7))\n");
	t.losses.items[1].count = 0;
	assert_losses_text(
		&t, false,
		"incomplete: EVENTS ARE MISSING: ring_full: 7. (see gpuprof-losses(7))\n");
	t.losses.items[1] = (struct tl_loss){.name = "depth", .count = 4};
	assert_losses_text(&t, false,
			   "incomplete: EVENTS ARE MISSING: ring_full: 7, depth: 4. (see "
			   "gpuprof-losses(7))\n");
	t.losses.items[1] = (struct tl_loss){.name = "a\x1b[2J\n\xc2\x9b", .count = 3};
	assert_losses_text(&t, false,
			   "incomplete: EVENTS ARE MISSING: ring_full: 7. Less exact: a?[2J??: 3. "
			   "(see gpuprof-losses(7))\n");
	example__done(&t);
}

/* Every capture has operators at its edges: they say nothing about it. */
static void edges_are_named_where_every_counter_is(void **state)
{
	struct timeline t;

	example__init(&t);
	example__loss(&t, "open_at_start", 3);
	example__loss(&t, "names", 0);
	example__loss(&t, "open_at_end", 4);
	assert_losses_text(&t, false, "complete: no event is missing\n");
	assert_losses_text(&t, true,
			   "complete: no event is missing\n"
			   "  at the edges: open_at_start: 3, open_at_end: 4.\n"
			   "  zero: names.\n");
	t.losses.items[1].count = 5;
	assert_losses_text(
		&t, false,
		"complete: no event is missing. Less exact: names: 5. (see gpuprof-losses(7))\n");
	example__done(&t);
}

static void losses_fit_in_lines(void **state)
{
	struct timeline t;
	struct sink *s = NULL;
	const char *line, *end;
	size_t lines = 0;

	example__init(&t);
	for (int i = 0; i < GP_LOSS_NR; i++)
		example__loss(&t, recording_loss_name((enum gp_loss)i), (uint64_t)i * 1000000007);
	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_losses_text(s, t.losses.items, t.losses.nr, true), 0);
	for (line = sink__bytes(s, NULL); *line; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		assert_true(end - line <= 100);
		lines++;
	}
	assert_in_range(lines, 3, 12);
	sink__free(s);
	example__done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peak_is_the_first_highest_total),
		cmocka_unit_test(ops_hold_what_was_alive_at_the_peak),
		cmocka_unit_test(one_op_under_two_others_is_two_rows),
		cmocka_unit_test(devices_and_processes_are_apart),
		cmocka_unit_test(a_lost_free_ends_where_the_address_is_given_out_again),
		cmocka_unit_test(believes_no_index_and_no_size),
		cmocka_unit_test(thinning_keeps_extremes_and_ends),
		cmocka_unit_test(few_points_are_all_kept),
		cmocka_unit_test(events_of_one_moment_are_thinned_to_four),
		cmocka_unit_test(json_is_as_described),
		cmocka_unit_test(json_lists_are_cut_where_asked),
		cmocka_unit_test(json_reports_the_allocators_totals),
		cmocka_unit_test(names_stay_inside_the_data),
		cmocka_unit_test(page_needs_nothing_else),
		cmocka_unit_test(write_errors_come_back),
		cmocka_unit_test(losses_are_all_reported),
		cmocka_unit_test(edges_are_named_where_every_counter_is),
		cmocka_unit_test(losses_fit_in_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
