/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Who came last to each collective, as a mark where that rank began its part. An instant event:
 * readers of Kineto's traces pass over those.
 */
#include "output/chrome/chrome.h"

#include "base/banned.h"
#include "timeline/analysis/ranks.h"

static void mark(struct chrome *c, const struct ranks *ranks, const struct rank_collective *one)
{
	const struct rank_call *last = &ranks->calls.items[one->last];
	const struct tl_process *p = &c->t->processes.items[last->process];

	chrome_begin(c);
	buf__printf(&c->out,
		    "{\"ph\":\"i\",\"cat\":\"straggler\",\"s\":\"%s\",\"name\":\"last to %s\"",
		    last->thread == TL_NONE ? "p" : "t", last->kind);
	if (last->thread == TL_NONE) {
		chrome_lit(&c->out, ",\"pid\":");
		buf__i64(&c->out, p->row_pid);
		chrome_lit(&c->out, ",\"tid\":0,\"ts\":");
		buf__us(&c->out, chrome_time(c, last->start_ns));
	} else {
		chrome_where(c, last->thread, last->start_ns);
	}
	buf__printf(&c->out, ",\"args\":{\"rank\":%d,\"behind us\":", p->rank);
	buf__us(&c->out, (int64_t)one->behind_ns);
	chrome_lit(&c->out, ",\"first to last us\":");
	buf__us(&c->out, (int64_t)one->spread_ns);
	chrome_lit(&c->out, "}}");
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
