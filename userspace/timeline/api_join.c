/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One call of the CUDA API, seen twice: a uprobe knows the op and the arguments, CUPTI the
 * correlation id. Both are of one thread and one function; CUPTI's window lies within the uprobe's
 * but for the error of its clock, so its middle does. Calls of one function follow each other.
 */
#include "timeline/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

/* CUPTI records looked at for one call: those of the calls it makes are among them. */
#define SEARCH_NR 64

/* From when to when each of the two saw calls of one function. */
struct watch {
	uint64_t first_ns[2], last_ns[2];
};

struct join {
	struct build *b;
	VEC(uint32_t) probed; /* of one thread, by start */
	VEC(uint32_t) by_cupti;
	struct hash watch_of; /* process and function -> index into watches */
	VEC(struct watch) watches;
};

static void join__done(struct join *j)
{
	vec_done(&j->probed);
	vec_done(&j->by_cupti);
	hash__done(&j->watch_of);
	vec_done(&j->watches);
}

static bool is_cupti(const struct raw_api *raw)
{
	return raw->api.flags & GP_API_CUPTI;
}

static uint64_t key_of(const struct join *j, const struct raw_api *raw)
{
	uint64_t process = j->b->t->threads.items[raw->api.thread].process;

	return hash_mix(process + 1) ^ (uintptr_t)raw->base;
}

static uint64_t middle_of(const struct raw_api *raw)
{
	return raw->api.start_ns + (raw->api.end_ns - raw->api.start_ns) / 2;
}

/* The uprobe's record takes what CUPTI's has. */
static void merge(struct raw_api *probed, struct raw_api *cupti)
{
	if (!probed->has_end) {
		probed->api.start_ns = cupti->api.start_ns;
		probed->api.end_ns = cupti->api.end_ns;
		probed->has_end = true;
	}
	probed->api.cbid = cupti->api.cbid;
	probed->api.correlation_id = cupti->api.correlation_id;
	probed->api.flags |= cupti->api.flags;
	probed->joined = cupti->gone = true;
}

/* Until when CUPTI's record of this call can begin. */
static uint64_t limit_of(const struct join *j, size_t i)
{
	const struct raw_api *items = j->b->apis.items, *raw = &items[j->probed.items[i]];

	if (raw->has_end)
		return raw->api.end_ns;
	return i + 1 < j->probed.nr ? items[j->probed.items[i + 1]].api.start_ns : UINT64_MAX;
}

static void find_partner(struct join *j, size_t i, size_t from)
{
	struct raw_api *items = j->b->apis.items, *raw = &items[j->probed.items[i]];
	uint64_t limit_ns = limit_of(j, i);

	for (size_t at = from; at < j->by_cupti.nr && at - from < SEARCH_NR; at++) {
		struct raw_api *c = &items[j->by_cupti.items[at]];
		uint64_t middle_ns = middle_of(c);

		if (c->api.start_ns > limit_ns)
			return;
		if (c->gone || c->base != raw->base || middle_ns < raw->api.start_ns ||
		    (raw->has_end && middle_ns > limit_ns))
			continue;
		merge(raw, c);
		return;
	}
}

static void join_thread(struct join *j)
{
	const struct raw_api *items = j->b->apis.items;
	size_t from = 0;

	for (size_t i = 0; i < j->probed.nr; i++) {
		const struct raw_api *raw = &items[j->probed.items[i]];

		while (from < j->by_cupti.nr &&
		       (items[j->by_cupti.items[from]].gone ||
			items[j->by_cupti.items[from]].api.end_ns < raw->api.start_ns))
			from++;
		find_partner(j, i, from);
	}
	j->probed.nr = j->by_cupti.nr = 0;
}

static int note_seen(struct join *j, const struct raw_api *raw)
{
	const uint64_t *known = hash__find(&j->watch_of, key_of(j, raw));
	struct watch new = {{UINT64_MAX, UINT64_MAX}, {0, 0}}, *w;
	bool which = is_cupti(raw);

	if (!known) {
		int err = hash__set(&j->watch_of, key_of(j, raw), j->watches.nr);

		if (err || vec_push(&j->watches, new))
			return -ENOMEM;
	}
	w = &j->watches.items[known ? *known : j->watches.nr - 1];
	if (raw->api.start_ns < w->first_ns[which])
		w->first_ns[which] = raw->api.start_ns;
	if (raw->api.start_ns > w->last_ns[which])
		w->last_ns[which] = raw->api.start_ns;
	return 0;
}

/* While both watch a function, a call that one of them missed is worth a count. One of the two may
 * come later than the other, and leave earlier. */
static void count_unjoined(struct join *j)
{
	for (size_t i = 0; i < j->b->apis.nr; i++) {
		const struct raw_api *raw = &j->b->apis.items[i];
		const struct watch *w;
		bool other;

		if (raw->gone || raw->joined)
			continue;
		w = &j->watches.items[*hash__find(&j->watch_of, key_of(j, raw))];
		other = !is_cupti(raw);
		if (raw->api.start_ns > w->first_ns[other] && raw->api.start_ns < w->last_ns[other])
			j->b->counts[TL_API_UNJOINED]++;
	}
}

int build_api_join(struct build *b, const struct sort_item *order)
{
	CLEANUP(join__done) struct join j = {.b = b};
	uint32_t thread = TL_NONE;
	int err = 0;

	for (size_t i = 0; i < b->apis.nr && !err; i++) {
		uint32_t index = order[i].index;
		const struct raw_api *raw = &b->apis.items[index];

		if (raw->api.thread != thread)
			join_thread(&j);
		thread = raw->api.thread;
		err = note_seen(&j, raw);
		if (!err && is_cupti(raw))
			err = vec_push(&j.by_cupti, index);
		else if (!err)
			err = vec_push(&j.probed, index);
	}
	if (err)
		return err;
	join_thread(&j);
	count_unjoined(&j);
	return 0;
}
