/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A mark at the rank that came last to each collective, where it began its part. It is an instant
 * event, which readers of Kineto's traces ignore.
 */
#include "output/chrome/chrome.h"

#include "base/banned.h"
#include "timeline/analysis/ranks.h"

static void mark(struct chrome *c, const struct ranks *ranks, const struct rank_collective *one)
{
	const struct rank_call *last = &ranks->calls.items[one->last];
	const struct tl_process *p = &c->t->processes.items[last->process];

	chrome_begin(c);
	json__put_word(&c->json, "ph", "i");
	json__put_word(&c->json, "cat", "straggler");
	json__put_word(&c->json, "s", last->thread == TL_NONE ? "p" : "t");
	json__key(&c->json, "name");
	json__printf(&c->json, "last to %s", last->kind);
	if (last->thread == TL_NONE)
		chrome_where_row(c, p->row_pid, 0, last->start_ns);
	else
		chrome_where(c, last->thread, last->start_ns);
	chrome_begin_args(c);
	json__put_i64(&c->json, "rank", p->rank);
	json__put_us(&c->json, "behind us", (int64_t)one->behind_ns);
	json__put_us(&c->json, "first to last us", (int64_t)one->spread_ns);
	chrome_end_args(c);
}

int chrome_ranks(struct chrome *c)
{
	struct ranks ranks = {.one_clock = false};
	int err = ranks_there(c->t) ? ranks__find(c->t, &ranks) : 0;

	for (size_t i = 0; i < ranks.collectives.nr && !err; i++) {
		const struct rank_collective *one = &ranks.collectives.items[i];

		if (one->last == TL_NONE || !chrome_shows(c, ranks.calls.items[one->last].process))
			continue;
		mark(c, &ranks, one);
		err = chrome_drain(c, false);
	}
	ranks__done(&ranks);
	return err;
}
