/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The pieces that every event of a Chrome trace has. All parts of the trace build on it; it calls
 * none of them.
 */
#include "output/chrome/chrome.h"

#include "base/banned.h"

/* Bytes gathered before they go to the sink. */
#define BLOCK_BYTES (1 << 20)

int64_t chrome_time(const struct chrome *c, uint64_t time_ns)
{
	int64_t at = (int64_t)time_ns + c->shift_ns;

	return at > 0 ? at : 0;
}

void chrome_begin(struct chrome *c)
{
	json__object(&c->json, &json_tight);
}

void chrome_begin_event(struct chrome *c, const char *phase, const char *category, const char *name)
{
	chrome_begin(c);
	json__put_word(&c->json, "ph", phase);
	json__put_word(&c->json, "cat", category);
	json__put_text(&c->json, "name", name);
}

void chrome_where_row(struct chrome *c, int64_t pid, int64_t tid, uint64_t time_ns)
{
	json__put_i64(&c->json, "pid", pid);
	json__put_i64(&c->json, "tid", tid);
	json__put_us(&c->json, "ts", chrome_time(c, time_ns));
}

void chrome_where(struct chrome *c, uint32_t thread, uint64_t time_ns)
{
	const struct tl_thread *th = &c->t->threads.items[thread];

	chrome_where_row(c, c->t->processes.items[th->process].row_pid, th->tid, time_ns);
}

void chrome_duration(struct chrome *c, uint64_t start_ns, uint64_t end_ns)
{
	json__put_us(&c->json, "dur", chrome_time(c, end_ns) - chrome_time(c, start_ns));
}

void chrome_begin_args(struct chrome *c)
{
	json__put_object(&c->json, "args", &json_tight);
}

void chrome_end_args(struct chrome *c)
{
	json__end(&c->json);
	json__end(&c->json);
}

void chrome_begin_arrow(struct chrome *c, const char *phase, uint64_t id)
{
	chrome_begin(c);
	json__put_word(&c->json, "ph", phase);
	json__put_u64(&c->json, "id", id);
}

static void begin_meta(struct chrome *c, const char *what, int64_t pid, int64_t tid)
{
	chrome_begin(c);
	json__put_word(&c->json, "name", what);
	json__put_word(&c->json, "ph", "M");
	json__put_us(&c->json, "ts", 0);
	json__put_i64(&c->json, "pid", pid);
	json__put_i64(&c->json, "tid", tid);
	chrome_begin_args(c);
}

void chrome_meta_text(struct chrome *c, const char *what, int64_t pid, int64_t tid,
		      const char *text)
{
	begin_meta(c, what, pid, tid);
	json__put_text(&c->json, !strcmp(what, "process_labels") ? "labels" : "name", text);
	chrome_end_args(c);
}

void chrome_meta_number(struct chrome *c, const char *what, int64_t pid, int64_t tid, int64_t n)
{
	begin_meta(c, what, pid, tid);
	json__put_i64(&c->json, "sort_index", n);
	chrome_end_args(c);
}

int chrome_drain(struct chrome *c, bool all)
{
	return sink__drain(c->sink, &c->out, all ? 0 : BLOCK_BYTES);
}
