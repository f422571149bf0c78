/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "capture/recordings/late_records.h"

#include "recording/event_kinds.h"

#include <string.h>

#define HELD_MAX  (64 << 20) /* bytes */
#define CALLS_MAX (1 << 20)

static uint64_t key_of(const void *event)
{
	const struct gp_ev_head *head = event;

	return (uint64_t)head->process << 32 | event_correlation_id(event);
}

/* Whether it began after the end. Work of a GPU may: its call decides. */
static bool began_later(const void *event, uint64_t end_ns)
{
	bool is_work = event_kind_of(event)->correlation_id &&
		       ((const struct gp_ev_head *)event)->kind != GP_EV_API;

	return !is_work && event_start_ns(event) > end_ns;
}

/* CUPTI reports calls with one id in any order, and one may be within the other:
 * the outermost counts. */
static int note_call(struct late_records *t, const void *event, bool later)
{
	uint64_t key = key_of(event);

	if (!event_correlation_id(event) ||
	    (later && (hash__find(&t->calls, key) || t->calls.nr >= CALLS_MAX)))
		return 0;
	return hash__set(&t->calls, key, later);
}

static bool was_launched_later(const struct late_records *t, const void *event)
{
	const uint64_t *later =
		event_correlation_id(event) ? hash__find(&t->calls, key_of(event)) : NULL;

	return later && *later;
}

bool late_records__keep(struct late_records *t, const void *event, size_t bytes, uint64_t end_ns)
{
	bool later = began_later(event, end_ns);
	uint64_t nr = bytes;

	if (((const struct gp_ev_head *)event)->kind == GP_EV_API && note_call(t, event, later))
		return false;
	if (later)
		return true;
	if (t->held.nr > HELD_MAX)
		return false;
	buf__add(&t->held, &nr, sizeof(nr));
	buf__add(&t->held, event, bytes);
	buf__add(&t->held, (const char[8]){0}, -bytes & 7);
	return true;
}

int late_records__each(const struct late_records *t, tail_fn fn, void *arg)
{
	int err = buf__error(&t->held);

	for (size_t at = 0; at < t->held.nr && !err;) {
		uint64_t bytes;

		memcpy(&bytes, t->held.bytes + at, sizeof(bytes));
		at += sizeof(bytes);
		if (!was_launched_later(t, t->held.bytes + at))
			err = fn(t->held.bytes + at, bytes, arg);
		at += (bytes + 7) & ~7ULL;
	}
	return err;
}

void late_records__done(struct late_records *t)
{
	buf__done(&t->held);
	hash__done(&t->calls);
}
