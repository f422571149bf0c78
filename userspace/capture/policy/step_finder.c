/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Steps found from one op after another: annotations first, a cycle of ops where there are none.
 */
#include "capture/policy/step_finder.h"

#include "base/cycle_detect.h"
#include "base/hash.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MARKS_MAX     64
#define THREADS_MAX   8
#define DECIDE_MARKS  3	 /* occurrences of one annotation */
#define DECIDE_OPS    32 /* ops of a thread before a cycle is looked for; then at each doubling */
#define DECIDE_TURNS  4
#define CONFIRM_TURNS 3
#define MARK_NAME_MAX 200

struct mark {
	char name[MARK_NAME_MAX];
	enum step_marker kind;
	uint32_t tid;
	uint32_t nr;
};

/* An op that no other one called. */
struct top {
	uint32_t symbol;
	uint64_t start_ns, end_ns;
};

struct top_thread {
	uint32_t tid;
	size_t look_at; /* so many ops, and a cycle is looked for */
	VEC(struct top) tops;
};

struct step_finder {
	struct mark marks[MARKS_MAX];
	size_t marks_nr;
	const struct mark *decided;
	struct top_thread threads[THREADS_MAX];
	size_t threads_nr;
	/* the cycle, once decided */
	uint32_t *cycle;
	size_t cycle_nr, cycle_at;
	uint32_t cycle_tid;
	uint32_t turns_nr; /* seen to go on as they did, up to CONFIRM_TURNS */
	bool cycle_lost;   /* until its beginning comes again */
	bool trains;
	bool failed;
};

struct step_finder *step_finder__new(void)
{
	return calloc(1, sizeof(struct step_finder));
}

static void forget_tops(struct step_finder *f)
{
	for (size_t i = 0; i < f->threads_nr; i++)
		vec_done(&f->threads[i].tops);
	f->threads_nr = 0;
}

void step_finder__free(struct step_finder *f)
{
	if (!f)
		return;
	forget_tops(f);
	free(f->cycle);
	free(f);
}

/* ---- annotations ---- */

static struct mark *mark_of(struct step_finder *f, const struct gp_ev_op *op, const char *name,
			    enum step_marker kind)
{
	struct mark *m;

	for (size_t i = 0; i < f->marks_nr; i++) {
		m = &f->marks[i];
		if (m->tid == op->head.tid && m->kind == kind &&
		    (kind == STEP_MARKER_PROFILER || !strncmp(m->name, name, sizeof(m->name) - 1)))
			return m;
	}
	if (f->marks_nr == MARKS_MAX)
		return NULL;
	m = &f->marks[f->marks_nr++];
	m->kind = kind;
	m->tid = op->head.tid;
	for (size_t i = 0; name[i] && i < sizeof(m->name) - 1; i++)
		m->name[i] = name[i];
	return m;
}

/* As timeline/build/steps.c chooses among all of a recording. */
static const struct mark *best_mark(const struct step_finder *f)
{
	const struct mark *best = &f->marks[0];

	for (size_t i = 1; i < f->marks_nr; i++) {
		const struct mark *m = &f->marks[i];
		bool rarer = m->kind == STEP_MARKER_OPTIMIZER ? m->nr < best->nr : m->nr > best->nr;

		if (m->kind < best->kind || (m->kind == best->kind && rarer))
			best = m;
	}
	return best;
}

static bool see_mark(struct step_finder *f, const struct gp_ev_op *op, const char *name,
		     enum step_marker kind, uint64_t *ret_time_ns)
{
	struct mark *m = mark_of(f, op, name, kind);

	if (!m)
		return false;
	m->nr++;
	if (!f->decided && m->nr >= DECIDE_MARKS) {
		f->decided = best_mark(f);
		forget_tops(f);
		free(f->cycle);
		f->cycle = NULL;
	}
	if (f->decided != m)
		return false;
	*ret_time_ns = kind == STEP_MARKER_DATALOADER ? op->start_ns : op->head.time_ns;
	return true;
}

/* ---- a cycle ---- */

static struct top_thread *thread_of(struct step_finder *f, uint32_t tid)
{
	for (size_t i = 0; i < f->threads_nr; i++)
		if (f->threads[i].tid == tid)
			return &f->threads[i];
	if (f->threads_nr == THREADS_MAX)
		return NULL;
	f->threads[f->threads_nr] = (struct top_thread){.tid = tid, .look_at = DECIDE_OPS};
	return &f->threads[f->threads_nr++];
}

/* Where the cycle begins: behind the longest pause, over all turns. */
static size_t begin_of(const struct top *tops, const struct cycle *p)
{
	uint64_t best_ns = 0;
	size_t best = 0;

	for (size_t at = 0; at < p->length; at++) {
		uint64_t pause_ns = 0;

		for (size_t i = p->first + p->length + at; i < p->first + p->run; i += p->length)
			if (tops[i].start_ns > tops[i - 1].end_ns)
				pause_ns += tops[i].start_ns - tops[i - 1].end_ns;
		if (pause_ns > best_ns) {
			best_ns = pause_ns;
			best = at;
		}
	}
	return best;
}

static void take_cycle(struct step_finder *f, const struct top_thread *t, const uint32_t *symbols,
		       const struct cycle *p)
{
	size_t begin = p->first + begin_of(t->tops.items, p);

	free(f->cycle);
	f->cycle = malloc(p->length * sizeof(*f->cycle));
	f->failed |= !f->cycle;
	if (!f->cycle)
		return;
	memcpy(f->cycle, symbols + begin, p->length * sizeof(*f->cycle));
	f->cycle_nr = p->length;
	f->cycle_tid = t->tid;
	f->cycle_at = (p->first + p->run - begin) % p->length;
	f->cycle_lost = false;
}

/* The cycle must go on to the end of what has been seen. */
static void look_for_cycle(struct step_finder *f, struct top_thread *t)
{
	uint32_t *symbols = malloc(t->tops.nr * sizeof(*symbols));
	struct cycle p;

	f->failed |= !symbols;
	if (!symbols)
		return;
	for (size_t i = 0; i < t->tops.nr; i++)
		symbols[i] = t->tops.items[i].symbol;
	if (!cycle_detect(symbols, t->tops.nr, &p) && p.first + p.run == t->tops.nr &&
	    p.run >= DECIDE_TURNS * p.length)
		take_cycle(f, t, symbols, &p);
	free(symbols);
}

/* A step that does not go as the others ends the knowledge until the next beginning. */
static bool follow_cycle(struct step_finder *f, const struct top *top, uint64_t *ret_time_ns)
{
	bool begins;

	if (f->cycle_lost && top->symbol != f->cycle[0])
		return false;
	if (f->cycle_lost)
		f->cycle_at = 0;
	f->cycle_lost = top->symbol != f->cycle[f->cycle_at];
	begins = !f->cycle_lost && !f->cycle_at;
	f->cycle_at = (f->cycle_at + 1) % f->cycle_nr;
	*ret_time_ns = top->start_ns;
	if (f->cycle_lost && f->turns_nr < CONFIRM_TURNS)
		f->turns_nr = 0;
	f->turns_nr += begins && f->turns_nr < CONFIRM_TURNS;
	return begins && f->turns_nr == CONFIRM_TURNS;
}

static bool see_top(struct step_finder *f, const struct gp_ev_op *op, const char *name,
		    uint64_t *ret_time_ns)
{
	uint64_t hash = hash_bytes(name, strlen(name));
	struct top top = {(uint32_t)(hash ^ hash >> 32), op->start_ns, op->head.time_ns};
	struct top_thread *t;

	if (f->cycle && f->turns_nr < CONFIRM_TURNS && step_name_trains(name)) {
		free(f->cycle);
		f->cycle = NULL;
		f->trains = true;
	}
	if (f->cycle)
		return op->head.tid == f->cycle_tid && follow_cycle(f, &top, ret_time_ns);
	/* PyTorch's own annotations will tell. */
	f->trains |= op->scope == GP_SCOPE_BACKWARD || step_name_trains(name);
	if (f->marks_nr || f->trains)
		return false;
	t = thread_of(f, op->head.tid);
	if (!t)
		return false;
	if (t->tops.nr == PERIOD_SYMBOLS_MAX) {
		t->tops.nr = 0;
		t->look_at = DECIDE_OPS;
	}
	f->failed |= vec_push(&t->tops, top) != 0;
	if (t->tops.nr == t->look_at) {
		t->look_at *= 2;
		look_for_cycle(f, t);
	}
	if (f->cycle)
		forget_tops(f);
	return false;
}

bool step_finder__op(struct step_finder *f, const struct gp_ev_op *op, const char *name,
		     uint64_t *ret_time_ns)
{
	enum step_marker kind = STEP_MARKER_NONE;

	if (op->head.flags & GP_OP_ASYNC)
		return false;
	if (op->scope == GP_SCOPE_USER)
		kind = step_marker_of(name);
	if (kind != STEP_MARKER_NONE && f->turns_nr < CONFIRM_TURNS)
		return see_mark(f, op, name, kind, ret_time_ns);
	return !f->decided && !op->parent && see_top(f, op, name, ret_time_ns);
}

bool step_finder__failed(const struct step_finder *f)
{
	return f->failed;
}

bool step_finder__by_annotations(const struct step_finder *f)
{
	return f->decided != NULL;
}

const char *step_finder__marker(const struct step_finder *f)
{
	if (f->decided)
		return f->decided->name;
	return f->cycle && f->turns_nr == CONFIRM_TURNS ? "" : NULL;
}

uint32_t step_finder__cycle(const struct step_finder *f)
{
	return f->decided ? 0 : (uint32_t)f->cycle_nr;
}
