/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Joins the two records of a call of the CUDA API: a uprobe knows the op and the arguments, CUPTI
 * the correlation id. Both are of one thread and one function. CUPTI's record lies within the
 * uprobe's but for the error of its clock, so its middle does. Calls of one function on a thread
 * follow each other, so records are compared per thread and function: nothing else that a call does
 * (the first call of a runtime makes hundreds of driver calls) gets in between.
 */
#include "timeline/model/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

/* The most of CUPTI's records that are compared with one call: bounds the work whatever they
 * hold. */
#define SEARCH_NR 64

/* When each of the two saw calls of one function. */
struct capture_loop {
	uint64_t first_ns[2], last_ns[2];
};

/* A record of CUPTI's, in its chain. */
struct link {
	uint32_t index; /* in build.gpu.apis */
	uint32_t next;	/* TL_NONE: the last */
};

/* CUPTI's records of one thread and one function, by start. */
struct chain {
	uint32_t first, last; /* links */
};

struct probed {
	uint32_t index;	   /* in build.gpu.apis */
	uint64_t limit_ns; /* CUPTI's record of it begins before this */
};

struct join {
	struct build *b;
	VEC(struct probed) probed; /* by thread, then start */
	VEC(struct link) links;
	VEC(struct chain) chains;
	struct hash chain_of; /* thread and function -> index into chains */
	struct hash watch_of; /* process and function -> index into watches */
	VEC(struct capture_loop) watches;
};

static void join__done(struct join *j)
{
	vec_done(&j->probed);
	vec_done(&j->links);
	vec_done(&j->chains);
	hash__done(&j->chain_of);
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

static uint64_t chain_key_of(const struct raw_api *raw)
{
	return hash_mix((uint64_t)raw->api.thread + 1) ^ (uintptr_t)raw->base;
}

static uint64_t middle_of(const struct raw_api *raw)
{
	return raw->api.start_ns + (raw->api.end_ns - raw->api.start_ns) / 2;
}

/* Copies what CUPTI knows to the uprobe's record. */
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

/* Enters a record of CUPTI's into its chain. */
static int add_link(struct join *j, uint32_t index)
{
	uint64_t key = chain_key_of(&j->b->gpu.apis.items[index]);
	const uint64_t *known = hash__find(&j->chain_of, key);
	uint32_t link = (uint32_t)j->links.nr;
	struct chain *chain;

	if (vec_push(&j->links, ((struct link){index, TL_NONE})))
		return -ENOMEM;
	if (!known) {
		int err = hash__set(&j->chain_of, key, j->chains.nr);

		return err ? err : vec_push(&j->chains, ((struct chain){link, link}));
	}
	chain = &j->chains.items[*known];
	j->links.items[chain->last].next = link;
	chain->last = link;
	return 0;
}

/* A call whose end was not seen ends where the thread's next one begins. */
static int add_probed(struct join *j, uint32_t index)
{
	const struct raw_api *items = j->b->gpu.apis.items, *raw = &items[index];
	struct probed *last = j->probed.nr ? &j->probed.items[j->probed.nr - 1] : NULL;

	if (last && !items[last->index].has_end && items[last->index].api.thread == raw->api.thread)
		last->limit_ns = raw->api.start_ns;
	return vec_push(&j->probed,
			((struct probed){index, raw->has_end ? raw->api.end_ns : UINT64_MAX}));
}

static void find_partner(struct join *j, const struct probed *p)
{
	struct raw_api *items = j->b->gpu.apis.items, *raw = &items[p->index];
	const struct link *links = j->links.items;
	const uint64_t *known = hash__find(&j->chain_of, chain_key_of(raw));
	struct chain *chain;
	uint32_t at;

	if (!known)
		return;
	chain = &j->chains.items[*known];
	while (chain->first != TL_NONE &&
	       (items[links[chain->first].index].gone ||
		items[links[chain->first].index].api.end_ns < raw->api.start_ns))
		chain->first = links[chain->first].next;
	at = chain->first;
	for (int nr = 0; at != TL_NONE && nr < SEARCH_NR; nr++, at = links[at].next) {
		struct raw_api *c = &items[links[at].index];
		uint64_t middle_ns = middle_of(c);

		if (c->api.start_ns > p->limit_ns)
			return;
		if (c->gone || middle_ns < raw->api.start_ns ||
		    (raw->has_end && middle_ns > p->limit_ns))
			continue;
		merge(raw, c);
		return;
	}
}

static int note_seen(struct join *j, const struct raw_api *raw)
{
	const uint64_t *known = hash__find(&j->watch_of, key_of(j, raw));
	struct capture_loop new = {{UINT64_MAX, UINT64_MAX}, {0, 0}}, *w;
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

/* Counts a call that one of the two missed while both watched its function: one may start later
 * than the other, and stop earlier. */
static void count_unjoined(struct join *j)
{
	for (size_t i = 0; i < j->b->gpu.apis.nr; i++) {
		const struct raw_api *raw = &j->b->gpu.apis.items[i];
		const struct capture_loop *w;
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
	int err = 0;

	for (size_t i = 0; i < b->gpu.apis.nr && !err; i++) {
		uint32_t index = order[i].index;
		const struct raw_api *raw = &b->gpu.apis.items[index];

		err = note_seen(&j, raw);
		if (!err)
			err = is_cupti(raw) ? add_link(&j, index) : add_probed(&j, index);
	}
	if (err)
		return err;
	for (size_t i = 0; i < j.probed.nr; i++)
		find_partner(&j, &j.probed.items[i]);
	count_unjoined(&j);
	return 0;
}
