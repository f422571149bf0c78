/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Operators by the lines of Python that called them. They are added up by stack first, because
 * there are few stacks, then by frame. A line that a stack has more than once counts once.
 */
#include "output/summary/live_totals_parts.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "output/flame/stack_samples.h"

#define NO_LINE "[no line of Python]"

struct stack_sum {
	const uint32_t *frames; /* the recording's */
	size_t nr;
	uint64_t values[STACK_METRIC_NR];
};

struct lines {
	struct live_totals *totals;
	const struct timeline *t;
	struct hash of_stack; /* stack id -> index into sums */
	VEC(struct stack_sum) sums;
	struct hash of_frame; /* frame id -> row */
	struct hash counted;  /* row -> 1 + the last sum that it was counted for */
};

static void lines_done(struct lines *l)
{
	hash__done(&l->of_stack);
	vec_done(&l->sums);
	hash__done(&l->of_frame);
	hash__done(&l->counted);
}

static int add_sample(const struct stack_sample *s, void *arg)
{
	struct lines *l = arg;
	/* Of an annotation it may be shorter than another one of the same id. */
	uint64_t key = (uint64_t)s->stack.nr << 32 | s->stack.id;
	uint64_t *at = hash__find(&l->of_stack, key);
	struct stack_sum sum = {.frames = s->stack.frames, .nr = s->stack.nr}, *to;

	if (!at) {
		if (vec_push(&l->sums, sum) || hash__set(&l->of_stack, key, l->sums.nr - 1))
			return -ENOMEM;
		to = &l->sums.items[l->sums.nr - 1];
	} else {
		to = &l->sums.items[*at];
	}
	for (int i = 0; i < STACK_METRIC_NR; i++)
		to->values[i] += s->values[i];
	return 0;
}

/* "train.py:41 step". A row or -ENOMEM. */
static int64_t row_of_frame(struct lines *l, uint32_t id, const struct recording_frame *f)
{
	CLEANUP(buf__done) struct buf name = {0};
	uint64_t *at = hash__find(&l->of_frame, id);
	int64_t row;

	if (at)
		return (int64_t)*at;
	buf__printf(&name, "%s:%u %s", *f->file ? f->file : "?", f->line, f->function);
	row = buf__error(&name) ? -ENOMEM : totals_row_of(l->totals, TOTALS_LINES, name.bytes);
	if (row >= 0 && hash__set(&l->of_frame, id, (uint64_t)row))
		return -ENOMEM;
	return row;
}

static void add_self(struct lines *l, int64_t row, const struct stack_sum *sum)
{
	totals_add(l->totals, TOTALS_LINES, row, TOTALS_CALLS, sum->values[STACK_CALLS]);
	totals_add(l->totals, TOTALS_LINES, row, TOTALS_SELF_CPU_NS, sum->values[STACK_CPU]);
	totals_add(l->totals, TOTALS_LINES, row, TOTALS_SELF_CUDA_NS, sum->values[STACK_CUDA]);
}

/* Once for each line. 0 or -ENOMEM. */
static int add_total(struct lines *l, int64_t row, size_t nth)
{
	const struct stack_sum *sum = &l->sums.items[nth];
	uint64_t *last = hash__find(&l->counted, (uint64_t)row);

	if (last && *last == nth + 1)
		return 0;
	totals_add(l->totals, TOTALS_LINES, row, TOTALS_CPU_NS, sum->values[STACK_CPU]);
	totals_add(l->totals, TOTALS_LINES, row, TOTALS_SAMPLES, sum->values[STACK_SAMPLES]);
	totals_add(l->totals, TOTALS_LINES, row, TOTALS_OFF_NS, sum->values[STACK_OFF]);
	totals_add(l->totals, TOTALS_LINES, row, TOTALS_CUDA_NS, sum->values[STACK_CUDA]);
	return hash__set(&l->counted, (uint64_t)row, nth + 1);
}

static int add_sum(struct lines *l, size_t nth)
{
	const struct stack_sum *sum = &l->sums.items[nth];
	bool inner = true;
	int err = 0;

	for (size_t i = 0; i < sum->nr && !err; i++) {
		struct recording_frame f = recording__frame(l->t->recording, sum->frames[i]);
		int64_t row;

		if (f.kind != RECORDING_FRAME_PYTHON)
			continue;
		row = row_of_frame(l, sum->frames[i], &f);
		if (row < 0)
			return (int)row;
		if (inner)
			add_self(l, row, sum);
		inner = false;
		err = add_total(l, row, nth);
	}
	if (!err && inner) {
		int64_t row = totals_row_of(l->totals, TOTALS_LINES, NO_LINE);

		if (row < 0)
			return (int)row;
		add_self(l, row, sum);
		err = add_total(l, row, nth);
	}
	return err;
}

int totals_add_lines(struct live_totals *y, const struct timeline *t)
{
	CLEANUP(lines_done) struct lines l = {.totals = y, .t = t};
	int err;

	if (!recording__meta(t->recording, "stacks"))
		return 0;
	err = stack_samples_each(t, false, add_sample, &l);
	for (size_t i = 0; i < l.sums.nr && !err; i++)
		err = add_sum(&l, i);
	return err;
}
