/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table of output formats: every entry is whole, and names of files lead to the right ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "output/format/output.h"
#include "output/format/output_format.h"

static void test_entries(void **state)
{
	assert_true(output_formats_nr > 0);
	for (size_t i = 0; i < output_formats_nr; i++) {
		const struct output_format *f = &output_formats[i];
		char sentence[16];

		assert_string_equal(output_format_names[i], f->name);
		assert_ptr_equal(output_format_find(f->name), f);
		assert_non_null(f->write);
		assert_true(f->contents && *f->contents);
		assert_true(*f->help && f->help[strlen(f->help) - 1] != '.');
		(void)snprintf(sentence, sizeof(sentence), "'%.10s", f->name);
		assert_non_null(strstr(OUTPUT_FORMATS_HELP, sentence));
		assert_non_null(strstr(OUTPUT_FORMATS_HELP, f->help));
		/* A choice of forms needs names to choose by. */
		assert_true(!f->extension_decides || f->extensions[1]);
	}
	assert_null(output_format_names[output_formats_nr]);
	assert_null(output_format_find("json"));
	assert_null(output_format_find(""));
}

static void test_extensions(void **state)
{
	const struct output_format *memory = output_format_find("memory");

	assert_true(output_format_has_extension(memory, ".html"));
	assert_true(output_format_has_extension(memory, ".json"));
	assert_false(output_format_has_extension(memory, ".pb"));
	assert_false(output_format_has_extension(output_format_find("stacks"), ".json"));
	assert_string_equal(output_known_extension("a.json"), ".json");
	assert_string_equal(output_known_extension("dir.pb/a.pftrace.gz"), ".pftrace");
	assert_null(output_known_extension("a.txt"));
	assert_null(output_known_extension("json"));
	assert_null(output_known_extension(".json"));
	assert_null(output_known_extension("-"));
	assert_null(output_known_extension(""));
	assert_true(output_path_ends("x.raw.json.gz", ".raw.json"));
	assert_false(output_path_ends("x.json.gz.gz", ".json"));
	assert_false(output_path_ends(".json.gz", ".json"));
	assert_false(output_path_ends("x.json", ".html"));
}

/* What a name's extension or the request chooses. */
static void test_requests(void **state)
{
	static const struct {
		const char *format, *path, *begins;
	} cases[] = {
		{"memory", "m.html", "<!"},
		{"memory", "m.json.gz", "{\"schema\": \"gpuprof-memory-1\""},
		{"memory", "-", "{\"schema\": \"gpuprof-memory-1\""},
		{"memory-timeline", "m.json", "[["},
		{"memory-timeline", "m.raw.json", "[]"},
		{"chrome", "t.json", "{\n  \"schemaVersion\": 1,"},
		{"speedscope", "s.json", "{\"$schema\":"},
		{"flamegraph", "f.html", "<!"},
	};
	struct events *e = *state;
	const struct timeline *t;

	events__process(e, 0, 100, "python");
	events__window(e, 1000, 9000, 0);
	events__thread(e, 100, "python");
	t = events__timeline(e);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct output_request request = {.path = cases[i].path, .process = TL_NONE};
		struct sink *s;
		const char *bytes;
		size_t nr;

		assert_int_equal(sink__new_memory(&s), 0);
		assert_int_equal(output_format_find(cases[i].format)->write(s, t, &request), 0);
		assert_int_equal(sink__finish(s), 0);
		bytes = sink__bytes(s, &nr);
		assert_true(nr >= strlen(cases[i].begins));
		assert_memory_equal(bytes, cases[i].begins, strlen(cases[i].begins));
		sink__free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_extensions),
		cmocka_unit_test_setup_teardown(test_requests, events_setup, events_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
