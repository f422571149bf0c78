/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table of event kinds against wire.h and FORMAT.md, and the fields that it finds in events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "recording/event_kinds.h"
#include "recording/recording.h"

#define TEXT_BYTES (1U << 20)
#define KINDS	   256U

static char *text_of(const char *path)
{
	char *text = NULL;
	size_t bytes;

	assert_int_equal(file_read(path, TEXT_BYTES, &text, &bytes), 0);
	return text;
}

/* Moves *at behind the next line that holds a kind's name and number in this format of sscanf().
 * False: there is none. */
static int next_kind(const char **at, const char *format, char name[64], unsigned int *ret_kind)
{
	for (const char *line = *at; line && *line;) {
		const char *end = strchr(line, '\n');
		bool number_first = format[0] == '|';
		int found = number_first ? sscanf(line, format, ret_kind, name)
					 : sscanf(line, format, name, ret_kind);

		line = end ? end + 1 : NULL;
		*at = line;
		if (found == 2 && !strncmp(name, "GP_EV_", 6))
			return 1;
	}
	return 0;
}

static void test_every_kind_of_wire_h_has_a_row(void **state)
{
	CLEANUP(cleanup_free) char *text = text_of("bpf/wire.h");
	const char *at = text;
	unsigned int kind, rows_nr = 0, kinds_nr = 0;
	char name[64];

	while (next_kind(&at, " %63[A-Z0-9_] = %u,", name, &kind)) {
		assert_true(kind < KINDS);
		assert_non_null(event_kinds[kind].name);
		assert_string_equal(event_kinds[kind].name, name);
		kinds_nr++;
	}
	for (unsigned int i = 0; i < KINDS; i++) {
		rows_nr += event_kinds[i].name != NULL;
		assert_int_equal(event_kinds[i].name != NULL, event_kinds[i].bytes != 0);
	}
	assert_true(kinds_nr > 30);
	assert_int_equal(rows_nr, kinds_nr);
}

static void test_format_md_lists_what_a_recording_holds(void **state)
{
	CLEANUP(cleanup_free) char *text = text_of("userspace/recording/FORMAT.md");
	const char *at = text;
	bool listed[KINDS] = {false};
	unsigned int kind;
	char name[64];

	while (next_kind(&at, "| %u `%63[A-Z0-9_]` |", name, &kind)) {
		assert_true(kind < KINDS);
		assert_non_null(event_kinds[kind].name);
		assert_string_equal(event_kinds[kind].name, name);
		listed[kind] = true;
	}
	for (unsigned int i = 0; i < KINDS; i++)
		assert_int_equal(listed[i], event_kinds[i].bytes &&
						    !(event_kinds[i].flags & EVENT_KIND_TRANSIENT));
}

static void is_field(const struct event_kind *kind, uint16_t at, size_t field_bytes)
{
	if (!at)
		return;
	assert_true(at >= sizeof(struct gp_ev_head));
	assert_int_equal(at % field_bytes, 0);
	assert_true(at + field_bytes <= kind->bytes);
}

/* Fields that are read without a look at the event's length lie within the least length. */
static void test_fields_lie_within_the_event(void **state)
{
	for (unsigned int i = 0; i < KINDS; i++) {
		const struct event_kind *kind = &event_kinds[i];

		assert_int_equal(kind->bytes % 4, 0);
		assert_true(!kind->bytes || kind->bytes >= sizeof(struct gp_ev_head));
		is_field(kind, kind->start_ns, 8);
		is_field(kind, kind->queued_ns, 8);
		is_field(kind, kind->correlation_id, 4);
		is_field(kind, kind->stack_id, 4);
		is_field(kind, kind->name_ids[0], 4);
		for (int n = 0; n < EVENT_FIELDS_MAX; n++)
			is_field(kind, kind->instances[n], 8);
		assert_true(kind->name_ids[0] || !kind->name_ids[1]);
		assert_true(kind->instances[0] || !kind->instances[1]);
	}
}

static void test_start_and_correlation(void **state)
{
	const struct gp_ev_overhead overhead = {.head = {.kind = GP_EV_OVERHEAD, .time_ns = 9},
						.start_ns = 7};
	const struct gp_ev_module_call call = {.head = {.kind = GP_EV_MODULE_CALL, .time_ns = 9},
					       .start_ns = 6};
	const struct gp_ev_collective nccl = {.head = {.kind = GP_EV_COLLECTIVE}, .start_ns = 5};
	const struct gp_ev_kernel kernel = {
		.head = {.kind = GP_EV_KERNEL, .time_ns = 9}, .start_ns = 4, .correlation_id = 3};
	const struct gp_ev_memory memory = {.head = {.kind = GP_EV_MEMORY, .time_ns = 9},
					    .instance = 1};
	const struct gp_ev_head unknown = {.kind = 255, .time_ns = 9};

	assert_int_equal(event_start_ns(&overhead), 7);
	assert_int_equal(event_start_ns(&call), 6);
	assert_int_equal(event_start_ns(&nccl), 5);
	assert_int_equal(event_start_ns(&kernel), 4);
	assert_int_equal(event_start_ns(&memory), 0);
	assert_int_equal(event_start_ns(&unknown), 0);
	assert_int_equal(event_correlation_id(&kernel), 3);
	assert_int_equal(event_correlation_id(&overhead), 0);
	assert_int_equal(event_correlation_id(&unknown), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_of_wire_h_has_a_row),
		cmocka_unit_test(test_format_md_lists_what_a_recording_holds),
		cmocka_unit_test(test_fields_lie_within_the_event),
		cmocka_unit_test(test_start_and_correlation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
