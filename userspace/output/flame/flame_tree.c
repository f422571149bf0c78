/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Builds the tree of frames, and prunes it to a size that a page can show.
 */
#include "output/flame/flame_tree.h"

#include "output/format/stack_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "common/saturating.h"

/* More than any honest recording needs; a forged one may claim any number of different stacks. */
#define NODES_MAX (4U << 20)

/* Of one function. */
#define LINES_SHOWN 8

void flame_tree__done(struct flame_tree *f)
{
	vec_done(&f->frames);
	vec_done(&f->nodes);
	intern__free(f->texts);
	buf__done(&f->scratch);
	hash__done(&f->frame_of);
	hash__done(&f->known_of);
	hash__done(&f->lines);
	hash__done(&f->child_of);
}

/* ---- frames ---- */

static uint64_t frame_key(const char *text, enum flame_kind kind)
{
	return (uint64_t)(uintptr_t)text << 3 | kind;
}

/* The frame of the text in `scratch`. 0 or -ENOMEM. */
static int frame_of(struct flame_tree *f, enum flame_kind kind, uint32_t *ret_frame)
{
	const char *text =
		intern__get(f->texts, f->scratch.bytes ? f->scratch.bytes : "", f->scratch.nr);
	const uint64_t *known;
	int err = text ? buf__error(&f->scratch) : -ENOMEM;

	if (err)
		return err;
	known = hash__find(&f->frame_of, frame_key(text, kind));
	if (known) {
		*ret_frame = (uint32_t)*known;
		return 0;
	}
	*ret_frame = (uint32_t)f->frames.nr;
	err = hash__set(&f->frame_of, frame_key(text, kind), *ret_frame);
	return err ? err : vec_push(&f->frames, ((struct flame_frame){.text = text, .kind = kind}));
}

static int named_frame(struct flame_tree *f, const char *text, enum flame_kind kind,
		       uint32_t *ret_frame)
{
	buf__clear(&f->scratch);
	buf__str(&f->scratch, text);
	return frame_of(f, kind, ret_frame);
}

/* A function of native code is one frame, which tells on which lines it was. */
static int note_line(struct flame_tree *f, uint32_t frame, const struct recording_frame *r)
{
	struct flame_frame *to = &f->frames.items[frame];
	uint64_t key = (uint64_t)frame << 32 | r->line;

	if (r->kind != RECORDING_FRAME_NATIVE || !*r->file || to->lines_nr > LINES_SHOWN ||
	    hash__find(&f->lines, key))
		return 0;
	buf__clear(&f->scratch);
	if (!to->lines_nr)
		buf__printf(&f->scratch, "%s:%u", r->file, r->line);
	else if (to->lines_nr < LINES_SHOWN)
		buf__printf(&f->scratch, "%s, %u", to->where, r->line);
	else
		buf__printf(&f->scratch, "%s, ...", to->where);
	to->lines_nr++;
	to->where = buf__error(&f->scratch) ? NULL : intern__str(f->texts, f->scratch.bytes);
	return to->where ? hash__set(&f->lines, key, 1) : -ENOMEM;
}

static int recorded_frame(struct flame_tree *f, uint32_t id, uint32_t *ret_frame)
{
	static const enum flame_kind kinds[] = {
		[RECORDING_FRAME_PYTHON] = FLAME_PYTHON,
		[RECORDING_FRAME_NATIVE] = FLAME_NATIVE,
		[RECORDING_FRAME_KERNEL] = FLAME_KERNEL,
	};
	const uint64_t *known = hash__find(&f->known_of, id);
	struct recording_frame r;
	int err;

	if (known) {
		*ret_frame = (uint32_t)*known;
		return 0;
	}
	r = recording__frame(f->t->recording, id);
	buf__clear(&f->scratch);
	stack_text_by_function(&f->scratch, f->t->recording, id);
	err = frame_of(f, kinds[r.kind], ret_frame);
	err = err ? err : note_line(f, *ret_frame, &r);
	return err ? err : hash__set(&f->known_of, id, *ret_frame);
}

/* ---- nodes ---- */

/* The way of one sample from the root on. */
struct way {
	struct flame_tree *f;
	uint32_t node;
	bool ended; /* there was no room for the next step */
	int err;
};

static void step(struct way *w, uint32_t frame)
{
	struct flame_tree *f = w->f;
	uint64_t key = (uint64_t)w->node << 32 | frame;
	const uint64_t *known = w->err || w->ended ? NULL : hash__find(&f->child_of, key);

	if (known)
		w->node = (uint32_t)*known;
	if (known || w->err || w->ended)
		return;
	if (f->nodes.nr >= NODES_MAX) {
		w->ended = true;
		return;
	}
	w->err = hash__set(&f->child_of, key, f->nodes.nr);
	if (!w->err)
		w->err = vec_push(&f->nodes,
				  ((struct flame_node){.parent = w->node, .frame = frame}));
	if (!w->err)
		w->node = (uint32_t)f->nodes.nr - 1;
}

static void step_named(struct way *w, const char *text, enum flame_kind kind)
{
	uint32_t frame = 0;

	if (!w->err)
		w->err = named_frame(w->f, text, kind, &frame);
	step(w, frame);
}

static void step_process(struct way *w, const struct stack_sample *s)
{
	const struct timeline *t = w->f->t;
	const struct tl_process *p = s->process == TL_NONE ? NULL : &t->processes.items[s->process];
	char text[128] = "process not known";

	if (p && p->rank >= 0)
		(void)snprintf(text, sizeof(text), "%.80s (pid %d, rank %d)", p->comm, p->pid,
			       p->rank);
	else if (p)
		(void)snprintf(text, sizeof(text), "%.80s (pid %d)", p->comm, p->pid);
	step_named(w, text, FLAME_MARK);
}

static void step_device(struct way *w, const struct stack_sample *s)
{
	char text[64];

	stack_sample_device(s, text, sizeof(text));
	step_named(w, text, FLAME_MARK);
}

/* Outermost first. */
static void walk(struct way *w, const struct stack_sample *s)
{
	const char *mark = s->stack.nr ? stack_text_mark(s->stack.flags) : "[no stack]";

	if (w->f->by_process)
		step_process(w, s);
	if (w->f->by_device && s->device_type >= 0 && !s->is_gpu)
		step_device(w, s);
	if (mark)
		step_named(w, mark, FLAME_MARK);
	for (size_t i = s->stack.nr; i-- > 0;) {
		uint32_t frame = 0;

		if (!w->err)
			w->err = recorded_frame(w->f, s->stack.frames[i], &frame);
		step(w, frame);
	}
	if (s->stack.is_forward)
		step_named(w, STACK_TEXT_BACKWARD, FLAME_MARK);
	if (s->op)
		step_named(w, s->op, FLAME_OP);
	if (s->leaf)
		step_named(w, s->leaf, s->is_gpu ? FLAME_GPU : FLAME_CALL);
}

static void add_up(uint64_t *sums, const uint64_t *more)
{
	for (int i = 0; i < STACK_METRIC_NR; i++)
		sums[i] = add_saturating(sums[i], more[i]);
}

static int add_sample(const struct stack_sample *s, void *arg)
{
	struct way w = {.f = arg};

	walk(&w, s);
	if (w.err)
		return w.err;
	w.f->shortened_nr += w.ended;
	add_up(w.f->nodes.items[w.node].own, s->values);
	return 0;
}

static void set_totals(struct flame_tree *f)
{
	for (size_t i = 0; i < f->nodes.nr; i++)
		memcpy(f->nodes.items[i].total, f->nodes.items[i].own,
		       sizeof(f->nodes.items[i].own));
	for (size_t i = f->nodes.nr; i-- > 1;)
		add_up(f->nodes.items[f->nodes.items[i].parent].total, f->nodes.items[i].total);
}

/* Whether allocations are of more than one kind of device or device number. */
static bool several_devices(const struct timeline *t)
{
	for (size_t i = 1; i < t->memory.nr; i++)
		if (t->memory.items[i].device_type != t->memory.items[0].device_type ||
		    t->memory.items[i].device_index != t->memory.items[0].device_index)
			return true;
	return false;
}

int flame_tree__init(struct flame_tree *f, const struct timeline *t)
{
	uint32_t all;
	int err;

	f->t = t;
	f->by_process = t->processes.nr > 1;
	f->by_device = several_devices(t);
	f->texts = intern__new();
	err = f->texts ? named_frame(f, "all", FLAME_MARK, &all) : -ENOMEM;
	err = err ? err : vec_push(&f->nodes, ((struct flame_node){0}));
	err = err ? err : stack_samples_each(t, true, add_sample, f);
	if (!err)
		set_totals(f);
	return err;
}

/* ---- pruning ---- */

struct ranked {
	double share; /* of the total, in the metric where it is the most */
	uint32_t node;
};

static double share_of(const struct flame_tree *f, const struct flame_node *n)
{
	double most = 0;

	for (int i = 0; i < STACK_METRIC_NR; i++) {
		double whole = (double)f->nodes.items[0].total[i];
		double share = whole > 0 ? (double)n->total[i] / whole : 0;

		most = share > most ? share : most;
	}
	return most;
}

/* The largest first. A node is no larger than its parent, which so stands before it. */
static int by_share(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->share != y->share)
		return x->share < y->share ? 1 : -1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Sets keep[i] of the max_nr largest nodes. */
static int choose(struct flame_tree *f, size_t max_nr, bool *keep)
{
	CLEANUP(cleanup_free)
	struct ranked *ranks = malloc((f->nodes.nr + 1) * sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < f->nodes.nr; i++)
		ranks[i] = (struct ranked){share_of(f, &f->nodes.items[i]), (uint32_t)i};
	/* The root, whatever it holds. */
	ranks[0].share = 2;
	qsort(ranks, f->nodes.nr, sizeof(*ranks), by_share);
	for (size_t i = 0; i < max_nr; i++)
		keep[ranks[i].node] = true;
	f->left_out_share = ranks[max_nr].share;
	return 0;
}

struct joining {
	struct flame_tree *f;
	const bool *keep;
	uint32_t *new_of;    /* of each node, TL_NONE: left out */
	uint32_t frame;	     /* of what is joined */
	struct hash rest_of; /* kept parent -> the node of its children that are left out */
	VEC(struct flame_node) kept;
};

/* Into the node that stands for all its siblings that are left out. */
static int join(struct joining *j, struct flame_node n)
{
	const uint64_t *rest = hash__find(&j->rest_of, n.parent);
	int err;

	if (rest) {
		add_up(j->kept.items[*rest].own, n.total);
		add_up(j->kept.items[*rest].total, n.total);
		return 0;
	}
	n.frame = j->frame;
	memcpy(n.own, n.total, sizeof(n.own));
	err = hash__set(&j->rest_of, n.parent, j->kept.nr);
	return err ? err : vec_push(&j->kept, n);
}

/* With a node its descendants go; they are in its total. */
static int join_one(struct joining *j, uint32_t i)
{
	struct flame_node n = j->f->nodes.items[i];

	n.parent = i ? j->new_of[n.parent] : 0;
	if (j->keep[i]) {
		j->new_of[i] = (uint32_t)j->kept.nr;
		return vec_push(&j->kept, n);
	}
	j->new_of[i] = TL_NONE;
	j->f->left_out_nr++;
	return n.parent == TL_NONE ? 0 : join(j, n);
}

static int join_all(struct joining *j)
{
	int err = named_frame(j->f, "[smaller ones]", FLAME_MARK, &j->frame);

	for (uint32_t i = 0; i < j->f->nodes.nr && !err; i++)
		err = join_one(j, i);
	hash__done(&j->rest_of);
	vec_done(&j->f->nodes);
	memcpy(&j->f->nodes, &j->kept, sizeof(j->f->nodes));
	return err;
}

int flame_tree__prune(struct flame_tree *f, size_t max_nr)
{
	CLEANUP(cleanup_free) uint32_t *new_of = malloc((f->nodes.nr + 1) * sizeof(*new_of));
	CLEANUP(cleanup_free) bool *keep = calloc(f->nodes.nr + 1, sizeof(*keep));
	struct joining j = {.f = f, .keep = keep, .new_of = new_of};
	int err = new_of && keep ? 0 : -ENOMEM;

	if (err || f->nodes.nr <= max_nr)
		return err;
	err = choose(f, max_nr, keep);
	return err ? err : join_all(&j);
}
