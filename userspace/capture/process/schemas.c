/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads the schemas of a process's operators from its own PyTorch.
 */
#include "capture/process/schemas.h"

#include "base/cleanup.h"
#include "common/clock.h"
#include "probe/plan/schemas.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* Of the lines in one event. */
#define LINES_BYTES 32768

/* So many of the bytes that the last line is whole. */
static size_t whole_lines(const char *text, size_t bytes)
{
	const char *last;

	if (bytes <= LINES_BYTES)
		return bytes;
	last = memrchr(text, '\n', LINES_BYTES);
	return last ? (size_t)(last - text) + 1 : 0;
}

static int add_lines(struct traced_process *m, const char *text, size_t bytes)
{
	struct {
		struct gp_ev_schemas ev;
		char text[LINES_BYTES];
	} out = {.ev.head = {.kind = GP_EV_SCHEMAS, .process = m->index}};
	uint64_t event_bytes = sizeof(out.ev) + ((bytes + 7) & ~(size_t)7);

	out.ev.head.time_ns = clock_now_ns();
	out.ev.bytes = (uint32_t)bytes;
	memcpy(out.text, text, bytes);
	buf__add(&m->schemas, &event_bytes, sizeof(event_bytes));
	buf__add(&m->schemas, &out, event_bytes);
	return buf__error(&m->schemas);
}

int traced_process__read_schemas(struct traced_process *m, struct reason *why)
{
	const struct target_library *torch = target_process__library(m->process, "libtorch_cpu.so");
	CLEANUP(buf__done) struct buf lines = {0};
	size_t at = 0, nr;
	int err;

	if (!torch) {
		(void)reason_set(why, -ENOENT, "PyTorch is not loaded");
		return 0;
	}
	if (schemas_read(torch->open_path, why, &lines))
		return 0;
	if (!lines.nr)
		(void)reason_set(why, -ENOENT, "'%s' does not describe its operators", torch->path);
	for (err = 0; at < lines.nr && !err; at += nr) {
		nr = whole_lines(lines.bytes + at, lines.nr - at);
		if (!nr)
			break;
		err = add_lines(m, lines.bytes + at, nr);
	}
	return err;
}
