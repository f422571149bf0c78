/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reading, comparing and renewing golden files. Tests run in the repository's root.
 */
#include "golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"

#define GOLDEN_BYTES_MAX (16 << 20)

static bool updating;

void golden_init(int argc, char **argv)
{
	updating = argc > 1 && !strcmp(argv[1], "--update");
}

static void path_of(const char *name, char path[256])
{
	(void)snprintf(path, 256, "tests/golden/%s", name);
}

char *golden_read(const char *name)
{
	char path[256], *text = NULL;
	size_t bytes;

	path_of(name, path);
	if (file_read(path, GOLDEN_BYTES_MAX, &text, &bytes))
		fail_msg("cannot read %s (tests run in the repository's root)", path);
	return text;
}

static void update(const char *name, const char *text, size_t bytes)
{
	char path[256];
	FILE *f;

	path_of(name, path);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, bytes, f), bytes);
	assert_int_equal(fclose(f), 0);
}

/* The line in which two texts first differ. */
static void show_difference(const char *name, const char *want, const char *got)
{
	int line = 1;

	while (*want && *want == *got) {
		line += *want == '\n';
		want++;
		got++;
	}
	fail_msg("%s differs in line %d: want '%.60s', got '%.60s'", name, line, want, got);
}

void golden_check(const char *name, const char *text, size_t bytes)
{
	char *want, *got;

	if (updating) {
		update(name, text, bytes);
		return;
	}
	want = golden_read(name);
	got = strndup(text, bytes);
	assert_non_null(got);
	if (strlen(want) != bytes || memcmp(want, text, bytes) != 0)
		show_difference(name, want, got);
	free(want);
	free(got);
}

void golden_check_sink(const char *name, struct sink *s)
{
	size_t bytes;
	char *text = sink_text(s, &bytes);

	golden_check(name, text, bytes);
	free(text);
}

/* ---- events ---- */

/* The next tab separated field of *at, which moves on. */
static char *field(char **at)
{
	char *text = *at ? strsep(at, "\t") : NULL;

	if (!text)
		fail_msg("a field is missing in the event list");
	return text;
}

static uint64_t number(char **at)
{
	return strtoull(field(at), NULL, 10);
}

/* What the lines of ops begin with. */
static struct event_op op_fields(char **at)
{
	struct event_op op = {0};

	op.instance = number(at);
	op.parent = number(at);
	op.tid = (uint32_t)number(at);
	op.start_ns = number(at);
	op.end_ns = number(at);
	op.scope = (uint32_t)number(at);
	return op;
}

static void one_op(struct events *e, char *at)
{
	struct event_op op = op_fields(&at);

	op.flags = (uint8_t)number(&at);
	op.sequence_nr = (int64_t)number(&at) + 1;
	op.name = field(&at);
	op.overload = field(&at);
	if (op.scope == GP_SCOPE_BACKWARD) {
		op.forward_thread = 1;
		op.thread_number = 2;
	}
	events__op(e, op);
}

static void one_memory(struct events *e, char *at)
{
	struct event_memory m = {0};

	m.time_ns = number(&at);
	m.instance = number(&at);
	m.tid = (uint32_t)number(&at);
	m.address = number(&at);
	m.bytes = (int64_t)number(&at);
	m.flags = (uint8_t)number(&at);
	events__memory(e, m);
}

static void one_api(struct events *e, char *at)
{
	struct event_api a = {0};
	uint64_t flags;

	a.instance = number(&at);
	a.tid = (uint32_t)number(&at);
	a.start_ns = number(&at);
	a.end_ns = number(&at);
	a.correlation_id = (uint32_t)number(&at);
	a.cbid = (uint32_t)number(&at);
	flags = number(&at);
	a.cupti = flags & GP_API_CUPTI;
	a.driver = flags & GP_API_DRIVER;
	a.name = field(&at);
	events__api(e, a);
}

static void one_gpu(struct events *e, char *at)
{
	struct event_gpu g = {0};

	g.kind = (enum tl_gpu_kind)number(&at);
	g.correlation_id = (uint32_t)number(&at);
	g.device = (uint32_t)number(&at);
	g.stream = (uint32_t)number(&at);
	g.start_ns = number(&at);
	g.end_ns = number(&at);
	g.bytes = number(&at);
	g.copy_kind = (uint8_t)number(&at);
	g.src_kind = (uint8_t)number(&at);
	g.dst_kind = (uint8_t)number(&at);
	g.name = field(&at);
	events__gpu(e, g);
}

static void one_frame(struct events *e, char *at)
{
	uint32_t id = (uint32_t)number(&at), line = (uint32_t)number(&at);
	const char *file = field(&at);

	events__frame(e, id, file, field(&at), line);
}

static void one_stack(struct events *e, char *at)
{
	uint32_t id = (uint32_t)number(&at), frames[64];
	char *list = field(&at), *one;
	size_t nr = 0;

	while ((one = strsep(&list, ","))) {
		assert_true(nr < sizeof(frames) / sizeof(*frames));
		frames[nr++] = (uint32_t)strtoul(one, NULL, 10);
	}
	events__stack(e, id, frames, nr);
}

static void one_stacked_op(struct events *e, char *at)
{
	struct event_op op = op_fields(&at);

	op.sequence_nr = (int64_t)number(&at) + 1;
	op.forward_thread = number(&at);
	op.thread_number = (uint32_t)number(&at);
	op.stack_id = (uint32_t)number(&at);
	op.name = field(&at);
	op.overload = field(&at);
	events__op(e, op);
}

static void one_event(struct events *e, char *line)
{
	static const struct {
		const char *kind;
		void (*add)(struct events *e, char *at);
	} kinds[] = {{"op", one_op},	     {"mem", one_memory},  {"api", one_api},
		     {"gpu", one_gpu},	     {"frame", one_frame}, {"stack", one_stack},
		     {"sop", one_stacked_op}};
	const char *kind = field(&line);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(kind, kinds[i].kind) != 0)
			continue;
		kinds[i].add(e, line);
		return;
	}
	fail_msg("unknown kind of event '%s'", kind);
}

void golden_events(struct events *e, const char *name)
{
	char *text = golden_read(name), *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			one_event(e, line);
	free(text);
}
