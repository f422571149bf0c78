/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the steps of a program: from annotations that PyTorch itself makes, or else from the cycle
 * of operators. Incomplete steps are dropped; without any such mark there are no steps.
 */
#include "common/step_annotations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "base/cycle_detect.h"
#include "timeline/model/build.h"

/* Annotations of one name on one thread. */
struct marks {
	const char *name;
	uint32_t thread;
	enum step_marker kind;
	uint32_t first, nr;
};

/* One place at which a step ends or begins. */
struct step_edge {
	uint64_t time_ns;
	uint32_t parent;
	uint32_t op; /* the mark */
};

struct process_discovery {
	struct build *b;
	struct timeline *t;
	VEC(struct marks) marks;
	struct hash marks_of;	    /* name and thread -> its marks */
	VEC(struct step_edge) ends; /* where the steps of one process meet */
	uint64_t first_number;	    /* of the first step of a recording by steps */
	uint64_t whole_nr;	    /* whole steps until the recording's end; 0: it was cut */
	const char *marker;	    /* what marked the steps during the capture, or NULL */
	bool by_steps;		    /* the recording begins where a step does */
};

static void process_discovery__done(struct process_discovery *f)
{
	vec_done(&f->marks);
	hash__done(&f->marks_of);
	vec_done(&f->ends);
}

/* ---- annotations ---- */

static int add_mark(struct process_discovery *f, uint32_t index, enum step_marker kind)
{
	const struct tl_op *op = &f->t->ops.items[index];
	const char *name = kind == STEP_MARKER_PROFILER ? "" : op->name;
	uint64_t key = hash_mix((uintptr_t)name ^ (uint64_t)op->thread << 48 ^ (uint64_t)kind);
	const uint64_t *known = hash__find(&f->marks_of, key);

	if (known) {
		f->marks.items[*known].nr++;
		return 0;
	}
	if (hash__set(&f->marks_of, key, f->marks.nr))
		return -ENOMEM;
	return vec_push(&f->marks, ((struct marks){op->name, op->thread, kind, index, 1}));
}

static int find_marks(struct process_discovery *f)
{
	int err = 0;

	for (uint32_t i = 0; i < f->t->ops.nr && !err; i++) {
		const struct tl_op *op = &f->t->ops.items[i];
		enum step_marker kind;

		if (op->scope != GP_SCOPE_USER || (op->flags & GP_OP_ASYNC))
			continue;
		kind = step_marker_of(op->name);
		if (kind != STEP_MARKER_NONE)
			err = add_mark(f, i, kind);
	}
	return err;
}

/* Of two optimizers the one that runs less often ends the step: the other is part of it. */
static bool reports_more(const struct process_discovery *f, const struct marks *a,
			 const struct marks *b)
{
	uint32_t enough = f->by_steps ? 1 : 2;
	bool known = f->marker && !strcmp(a->name, f->marker);

	if (known || (b && f->marker && !strcmp(b->name, f->marker)))
		return known;
	if (a->kind != STEP_MARKER_PROFILER && a->nr < enough)
		return false;
	if (!b || a->kind != b->kind)
		return !b || a->kind < b->kind;
	if (a->nr != b->nr)
		return a->kind == STEP_MARKER_OPTIMIZER ? a->nr < b->nr : a->nr > b->nr;
	return f->t->ops.items[a->first].start_ns < f->t->ops.items[b->first].start_ns;
}

static const struct marks *choose(const struct process_discovery *f, uint32_t process)
{
	const struct marks *best = NULL;

	for (size_t i = 0; i < f->marks.nr; i++) {
		const struct marks *m = &f->marks.items[i];

		if (f->t->threads.items[m->thread].process == process && reports_more(f, m, best))
			best = m;
	}
	return best;
}

static bool is_mark(const struct marks *m, const struct tl_op *op)
{
	return op->thread == m->thread && op->scope == GP_SCOPE_USER &&
	       !(op->flags & GP_OP_ASYNC) &&
	       (m->kind == STEP_MARKER_PROFILER ? step_marker_of(op->name) == m->kind
						: op->name == m->name);
}

static int collect(struct process_discovery *f, const struct marks *m)
{
	f->ends.nr = 0;
	for (uint32_t i = m->first; i < f->t->ops.nr && f->t->ops.items[i].thread == m->thread; i++)
		if (is_mark(m, &f->t->ops.items[i]) &&
		    vec_push(&f->ends, ((struct step_edge){.op = i})))
			return -ENOMEM;
	return 0;
}

/* The step ends with the outermost op that holds this mark and no other: an annotation around
 * optimizer.step(), say, but not one around an epoch. */
static uint32_t outermost(const struct process_discovery *f, size_t at)
{
	const struct tl_op *ops = f->t->ops.items;
	uint32_t op = f->ends.items[at].op;
	uint64_t after_ns = at ? ops[f->ends.items[at - 1].op].end_ns : 0;
	uint64_t before_ns =
		at + 1 < f->ends.nr ? ops[f->ends.items[at + 1].op].start_ns : TL_TIME_END_NS;

	while (ops[op].parent != TL_NONE && ops[ops[op].parent].start_ns >= after_ns &&
	       ops[ops[op].parent].end_ns <= before_ns)
		op = ops[op].parent;
	return op;
}

static void set_ends(struct process_discovery *f, const struct marks *m)
{
	const struct tl_op *ops = f->t->ops.items;

	for (size_t i = 0; i < f->ends.nr; i++) {
		struct step_edge *e = &f->ends.items[i];
		uint32_t op = m->kind == STEP_MARKER_PROFILER ? e->op : outermost(f, i);

		e->time_ns = m->kind == STEP_MARKER_DATALOADER ? ops[op].start_ns : ops[op].end_ns;
		e->parent = ops[op].parent;
	}
}

/* ---- the steps of one process ---- */

/* Whether nothing was collected for some of that time, so that its content is not known. */
static bool was_paused(const struct timeline *t, uint64_t start_ns, uint64_t end_ns)
{
	if (t->windows.nr)
		return !timeline__in_windows(t, start_ns, end_ns);
	for (size_t i = 0; i < t->pauses.nr; i++)
		if (t->pauses.items[i].cpu && t->pauses.items[i].start_ns < end_ns &&
		    t->pauses.items[i].end_ns > start_ns)
			return true;
	return false;
}

static int add_step(struct process_discovery *f, struct tl_step_series *series, uint64_t start_ns,
		    uint64_t end_ns, uint32_t parent, const struct tl_op *like)
{
	struct tl_step step = {start_ns, end_ns, f->first_number + series->nr, TL_NONE};
	struct step_place place = {.start_ns = start_ns,
				   .end_ns = end_ns,
				   .thread = series->thread,
				   .parent = parent,
				   .step = (uint32_t)f->t->steps.nr,
				   .flags = like->flags & GP_OP_CALLBACK};

	if (end_ns < start_ns || was_paused(f->t, start_ns, end_ns))
		return 0;
	series->nr++;
	if (vec_push(&f->t->steps, step) || vec_push(&f->b->steps.places, place))
		return -ENOMEM;
	return 0;
}

/* Adds the program's own steps, which have ops. */
static int own_steps(struct process_discovery *f, struct tl_step_series *series)
{
	for (size_t i = 0; i < f->ends.nr; i++) {
		uint32_t index = f->ends.items[i].op;
		const struct tl_op *op = &f->t->ops.items[index];
		struct tl_step step = {op->start_ns, op->end_ns, step_marker_number(op->name),
				       index};

		if (vec_push(&f->t->steps, step))
			return -ENOMEM;
		series->nr++;
	}
	return 0;
}

/* Counts the ops within the op of this index. */
static uint32_t ops_within(const struct process_discovery *f, uint32_t op)
{
	const struct tl_op *ops = f->t->ops.items;
	uint32_t i = op + 1;

	while (i < f->t->ops.nr && ops[i].thread == ops[op].thread &&
	       ops[i].start_ns < ops[op].end_ns)
		i++;
	return i - op - 1;
}

/*
 * The least ops within a __next__ that delivers something. One that only reports the end of the
 * epoch does next to nothing and makes no step. With worker processes every __next__ does next to
 * nothing here, and the last cannot be told apart.
 */
static uint32_t least_of_next(const struct process_discovery *f)
{
	uint32_t most = 0;

	for (size_t i = 0; i < f->ends.nr; i++) {
		uint32_t nr = ops_within(f, f->ends.items[i].op);

		most = nr > most ? nr : most;
	}
	return (most + 3) / 4;
}

/* Adds the steps from one place to the next, within the op that holds the step. */
static int between(struct process_discovery *f, struct tl_step_series *series,
		   const struct step_edge *from, const struct step_edge *to, bool begins)
{
	const struct tl_op *ops = f->t->ops.items;
	uint32_t parent = begins ? from->parent : to->parent;
	uint64_t start_ns = from->time_ns, end_ns = to->time_ns;

	if (parent != TL_NONE && start_ns < ops[parent].start_ns)
		start_ns = ops[parent].start_ns;
	if (parent != TL_NONE && end_ns > ops[parent].end_ns)
		end_ns = ops[parent].end_ns;
	return add_step(f, series, start_ns, end_ns, parent, &ops[begins ? from->op : to->op]);
}

static int steps_between(struct process_discovery *f, struct tl_step_series *series)
{
	bool begins = series->by != TL_STEPS_OPTIMIZER;
	uint32_t least = series->by == TL_STEPS_DATALOADER ? least_of_next(f) : 0;
	struct step_edge edge = {.time_ns = f->t->start_ns, .parent = TL_NONE};
	int err = 0;

	if (f->by_steps && !begins)
		err = between(f, series, &edge, &f->ends.items[0], false);
	for (size_t i = 1; i < f->ends.nr && !err; i++) {
		const struct step_edge *from = &f->ends.items[i - 1], *to = &f->ends.items[i];

		if (ops_within(f, from->op) >= least)
			err = between(f, series, from, to, begins);
	}
	if (err || !begins || series->nr >= f->whole_nr)
		return err;
	edge.time_ns = f->t->end_ns;
	return between(f, series, &f->ends.items[f->ends.nr - 1], &edge, true);
}

/* ---- a cycle of operators ---- */

/* Finds the thread of the process with the most top-level ops. TL_NONE: none. */
static uint32_t busiest(const struct process_discovery *f, uint32_t process, const uint32_t *tops)
{
	uint32_t best = TL_NONE;

	for (uint32_t i = 0; i < f->t->threads.nr; i++)
		if (f->t->threads.items[i].process == process && tops[i] &&
		    (best == TL_NONE || tops[i] > tops[best]))
			best = i;
	return best;
}

/* With an optimizer, or backward ops, a cycle of operators is a layer, not a step. */
static bool trains(struct process_discovery *f, uint32_t process)
{
	const struct timeline *t = f->t;
	const char *last = NULL;

	for (size_t i = 0; i < f->marks.nr; i++)
		if (t->threads.items[f->marks.items[i].thread].process == process)
			return true;
	for (size_t i = 0; i < t->ops.nr; i++) {
		const struct tl_op *op = &t->ops.items[i];

		if (t->threads.items[op->thread].process != process || op->name == last)
			continue;
		last = op->name;
		if (op->scope == GP_SCOPE_BACKWARD || step_name_trains(op->name))
			return true;
	}
	return false;
}

static int collect_tops(struct process_discovery *f, uint32_t thread, uint32_t *symbols)
{
	const struct tl_op *ops = f->t->ops.items;

	f->ends.nr = 0;
	for (uint32_t i = 0; i < f->t->ops.nr; i++) {
		uint64_t name = hash_mix((uintptr_t)ops[i].name);

		if (ops[i].thread != thread || ops[i].parent != TL_NONE ||
		    (ops[i].flags & GP_OP_ASYNC))
			continue;
		symbols[f->ends.nr] = (uint32_t)(name ^ name >> 32);
		if (vec_push(&f->ends, ((struct step_edge){ops[i].start_ns, TL_NONE, i})))
			return -ENOMEM;
	}
	return 0;
}

/* Finds where the cycle begins: behind the longest pause, summed over all turns. */
static size_t longest_pause(const struct process_discovery *f, const struct cycle *p)
{
	const struct tl_op *ops = f->t->ops.items;
	size_t best = 0;
	uint64_t best_ns = 0;

	for (size_t at = 0; at < p->length; at++) {
		uint64_t pause_ns = 0;

		for (size_t i = p->first + p->length + at; i < p->first + p->run; i += p->length)
			if (ops[f->ends.items[i].op].start_ns > ops[f->ends.items[i - 1].op].end_ns)
				pause_ns += ops[f->ends.items[i].op].start_ns -
					    ops[f->ends.items[i - 1].op].end_ns;
		if (pause_ns > best_ns) {
			best_ns = pause_ns;
			best = at;
		}
	}
	return best;
}

/* Keeps the places where a turn begins, and the end of the last turn. */
static int keep_turns(struct process_discovery *f, const uint32_t *symbols, struct cycle *p)
{
	size_t kept = 0, at, end = p->first + p->run;

	while (end < f->ends.nr && symbols[end] == symbols[end - p->length])
		end++;
	p->run = end - p->first;
	for (at = p->first + longest_pause(f, p); at < end; at += p->length)
		f->ends.items[kept++] = f->ends.items[at];
	if (at == end && end < f->ends.nr)
		f->ends.items[kept++] = f->ends.items[end];
	f->ends.nr = kept;
	return 0;
}

/* Takes the steps that were found during the capture, between ops of the first one's thread. */
static int reported_steps(struct process_discovery *f, struct tl_step_series *series)
{
	const struct step_begin *begins = f->b->steps.begins.items;
	size_t nr = f->b->steps.begins.nr;
	int err = 0;

	if (nr < 2 || f->t->threads.items[begins[0].thread].process != series->process)
		return 0;
	series->by = TL_STEPS_SEQUENCE;
	series->thread = begins[0].thread;
	series->cycle_nr = begins[0].cycle_nr;
	for (size_t i = 1; i < nr && !err; i++) {
		static const struct tl_op any = {.flags = GP_OP_CALLBACK};

		err = add_step(f, series, begins[i - 1].time_ns, begins[i].time_ns, TL_NONE, &any);
	}
	return err;
}

static int find_cycle(struct process_discovery *f, struct tl_step_series *series,
		      const uint32_t *tops, bool *ret_found)
{
	CLEANUP(cleanup_free) uint32_t *symbols = NULL;
	struct cycle p;
	int err;

	if (trains(f, series->process))
		return 0;
	series->thread = busiest(f, series->process, tops);
	if (series->thread == TL_NONE)
		return 0;
	symbols = malloc(tops[series->thread] * sizeof(*symbols));
	err = symbols ? collect_tops(f, series->thread, symbols) : -ENOMEM;
	if (!err)
		err = cycle_detect(symbols, f->ends.nr, &p);
	if (err)
		return err == -ENOENT ? 0 : err;
	series->by = TL_STEPS_SEQUENCE;
	series->cycle_nr = (uint32_t)p.length;
	*ret_found = true;
	return keep_turns(f, symbols, &p);
}

/* ---- all of it ---- */

static int find_of_process(struct process_discovery *f, uint32_t process, const uint32_t *tops)
{
	static const enum tl_steps_by by[] = {
		[STEP_MARKER_PROFILER] = TL_STEPS_PROFILER,
		[STEP_MARKER_OPTIMIZER] = TL_STEPS_OPTIMIZER,
		[STEP_MARKER_DATALOADER] = TL_STEPS_DATALOADER,
	};
	struct tl_step_series series = {.process = process, .first = (uint32_t)f->t->steps.nr};
	const struct marks *m = choose(f, process);
	bool found = m != NULL;
	int err;

	if (f->b->steps.begins.nr) {
		found = false;
		err = reported_steps(f, &series);
	} else if (m) {
		series.thread = m->thread;
		series.by = by[m->kind];
		series.marker = m->kind == STEP_MARKER_PROFILER ? STEP_PROFILER_ANY : m->name;
		err = collect(f, m);
		set_ends(f, m);
	} else {
		err = find_cycle(f, &series, tops, &found);
	}
	if (!err && found)
		err = series.by == TL_STEPS_PROFILER ? own_steps(f, &series)
						     : steps_between(f, &series);
	return err || !series.nr ? err : vec_push(&f->t->step_series, series);
}

static uint64_t meta_number(const struct timeline *t, const char *key)
{
	const char *text = recording__meta(t->recording, key);

	return text ? strtoull(text, NULL, 10) : 0;
}

int build_steps(struct build *b)
{
	struct timeline *t = b->t;
	CLEANUP(process_discovery__done)
	struct process_discovery f = {
		.b = b,
		.t = t,
		.by_steps = recording__meta(t->recording, "steps") != NULL,
		.marker = recording__meta(t->recording, "steps_marker"),
		.first_number = meta_number(t, "steps"),
		.whole_nr = meta_number(t, "steps_nr"),
	};
	CLEANUP(cleanup_free) uint32_t *tops = calloc(t->threads.nr + 1, sizeof(*tops));
	int err = tops ? find_marks(&f) : -ENOMEM;

	for (size_t i = 0; i < t->ops.nr && !err; i++)
		tops[t->ops.items[i].thread] +=
			t->ops.items[i].parent == TL_NONE && !(t->ops.items[i].flags & GP_OP_ASYNC);
	for (uint32_t i = 0; i < t->processes.nr && !err; i++)
		err = find_of_process(&f, i, tops);
	if (!err && b->steps.show && b->steps.places.nr)
		err = build_show_steps(b);
	return err;
}
