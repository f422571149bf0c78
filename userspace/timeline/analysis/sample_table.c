/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Adds samples up. The share of a row is estimated from its share of all samples, so its standard
 * error is binomial, for samples of different weights. One more sample is assumed on either side,
 * so that the error is not zero where all samples agree. Samples of one wait are not independent:
 * the error of waits comes from when each was noticed to begin and to end.
 */
#include "timeline/analysis/sample_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "common/saturating.h"

#define NO_OPERATOR "[no operator]"
#define NO_PYTHON   "[no Python]"
#define NOT_KNOWN   "[not known]"

struct summing {
	const struct timeline *t;
	const struct sample_table_options *options;
	struct sample_table *table;
	struct hash row_of; /* interned name -> row */
	struct buf text;
	uint64_t turn; /* the current sample, from 1 */
};

static void summing__done(struct summing *s)
{
	hash__done(&s->row_of);
	buf__done(&s->text);
}

void sample_table__free(struct sample_table *table)
{
	if (!table)
		return;
	vec_done(&table->rows);
	intern__free(table->texts);
	free(table);
}

/* ---- rows ---- */

static double square(double x)
{
	return x * x;
}

static void add_to(struct sample_sum *sum, const struct tl_sample *s)
{
	sum->nr = add_saturating(sum->nr, s->nr);
	sum->ns = add_saturating(sum->ns, s->weight_ns);
	sum->squares += square((double)s->weight_ns) / s->nr;
}

/* Adds the sample to the row of this name, once. `stack` may be NULL. */
static int add_named(struct summing *m, const struct tl_sample *s, const char *text, bool self,
		     const uint32_t *stack, size_t stack_nr)
{
	const char *name = intern__str(m->table->texts, text);
	const uint64_t *known = name ? hash__find(&m->row_of, (uintptr_t)name) : NULL;
	struct sample_row *row, fresh = {.name = name, .stack = stack, .stack_nr = stack_nr};

	if (!name)
		return -ENOMEM;
	if (!known && (hash__set(&m->row_of, (uintptr_t)name, m->table->rows.nr) ||
		       vec_push(&m->table->rows, fresh)))
		return -ENOMEM;
	row = &m->table->rows.items[known ? *known : m->table->rows.nr - 1];
	if (self && (s->flags & GP_SAMPLE_RUNNING))
		add_to(&row->self, s);
	if (row->last == m->turn)
		return 0;
	row->last = m->turn;
	add_to(s->flags & GP_SAMPLE_RUNNING ? &row->total : &row->off, s);
	if (s->flags & GP_SAMPLE_RUNNING)
		return 0;
	row->waits_nr++;
	row->looks_squares += square((double)s->weight_ns / s->nr);
	return 0;
}

static int add(struct summing *m, const struct tl_sample *s, const char *text, bool self)
{
	return add_named(m, s, text, self, NULL, 0);
}

/* ---- what a sample is in ---- */

/* Names the row of samples that show nothing of the requested kind. */
static const char *without(const struct tl_sampled_stack *stack, const char *none)
{
	return stack->nr && !tl_stack_is_cut(stack->flags) ? none : NOT_KNOWN;
}

static int add_ops(struct summing *m, const struct tl_sample *s,
		   const struct tl_sampled_stack *stack)
{
	int err = 0;

	if (!stack->ops_nr)
		return add(m, s, without(stack, NO_OPERATOR), true);
	for (uint32_t i = 0; i < stack->ops_nr && !err; i++)
		err = add(m, s, m->t->stack_ops.items[stack->ops_at + i].name, !i);
	return err;
}

/* "FILE(LINE): FUNCTION" of Python, "FUNCTION (MODULE)" of native code. */
static void frame_text(struct buf *out, const struct recording_frame *f, bool line)
{
	if (f->kind == RECORDING_FRAME_PYTHON) {
		buf__str(out, f->file);
		if (line)
			buf__printf(out, "(%u)", f->line);
		buf__printf(out, ": %s", f->function);
		return;
	}
	if (*f->function)
		buf__str(out, f->function);
	else
		buf__printf(out, "0x%llx", (unsigned long long)f->address);
	if (f->inlined)
		buf__str(out, " (inlined)");
	buf__printf(out, " (%s)", *f->module ? file_base_name(f->module) : "?");
}

/* The row of one frame. */
static int add_frame(struct summing *m, const struct tl_sample *s, uint32_t id, bool line,
		     bool self)
{
	struct recording_frame f = recording__frame(m->t->recording, id);

	buf__clear(&m->text);
	frame_text(&m->text, &f, line);
	if (buf__error(&m->text))
		return -ENOMEM;
	return add(m, s, m->text.bytes, self);
}

/* Frames of Python only, or all. */
static int add_frames(struct summing *m, const struct tl_sample *s,
		      const struct tl_sampled_stack *stack, bool python)
{
	bool first = true;
	int err = 0;

	for (uint32_t i = 0; i < stack->nr && !err; i++) {
		struct recording_frame f = recording__frame(m->t->recording, stack->frames[i]);

		if (python && f.kind != RECORDING_FRAME_PYTHON)
			continue;
		err = add_frame(m, s, stack->frames[i], python, first);
		first = false;
	}
	if (err || !first)
		return err;
	return add(m, s, without(stack, NO_PYTHON), true);
}

static const struct tl_process *process_of(const struct timeline *t, const struct tl_sample *s)
{
	return &t->processes.items[t->threads.items[s->thread].process];
}

static int add_thread(struct summing *m, const struct tl_sample *s)
{
	const struct tl_thread *thread = &m->t->threads.items[s->thread];

	buf__clear(&m->text);
	buf__printf(&m->text, "%s (%u)", thread->comm, thread->tid);
	return buf__error(&m->text) ? -ENOMEM : add(m, s, m->text.bytes, true);
}

static int add_process(struct summing *m, const struct tl_sample *s)
{
	const struct tl_process *p = process_of(m->t, s);

	buf__clear(&m->text);
	buf__printf(&m->text, "%s (%lld)", p->comm, (long long)p->row_pid);
	return buf__error(&m->text) ? -ENOMEM : add(m, s, m->text.bytes, true);
}

/* Finds the row of a stack: named by its operator, told apart by its frames. */
static int add_stack(struct summing *m, const struct tl_sample *s,
		     const struct tl_sampled_stack *stack)
{
	size_t nr = stack->nr < m->options->frames ? stack->nr : m->options->frames;
	int err;

	buf__clear(&m->text);
	buf__str(&m->text, stack->ops_nr ? m->t->stack_ops.items[stack->ops_at].name
					 : without(stack, NO_OPERATOR));
	for (size_t i = 0; i < nr; i++) {
		struct recording_frame f = recording__frame(m->t->recording, stack->frames[i]);

		buf__char(&m->text, '\n');
		frame_text(&m->text, &f, true);
	}
	err = buf__error(&m->text);
	return err ? err : add_named(m, s, m->text.bytes, true, stack->frames, nr);
}

static int add_sample(struct summing *m, const struct tl_sample *s)
{
	const struct tl_sampled_stack *stack = &m->t->sampled_stacks.items[s->stack];

	if (!tl_part_has(&m->options->only, process_of(m->t, s)))
		return 0;
	if (s->flags & GP_SAMPLE_RUNNING)
		add_to(&m->table->all, s);
	switch (m->options->group) {
	case SAMPLE_BY_LINE:
		return add_frames(m, s, stack, true);
	case SAMPLE_BY_FUNCTION:
		return add_frames(m, s, stack, false);
	case SAMPLE_BY_THREAD:
		return add_thread(m, s);
	case SAMPLE_BY_PROCESS:
		return add_process(m, s);
	case SAMPLE_BY_ACTIVITY:
		return add(m, s, timeline__activity(m->t, s), true);
	case SAMPLE_BY_STACK:
		return add_stack(m, s, stack);
	default:
		return add_ops(m, s, stack);
	}
}

/* ---- errors and order ---- */

/* Each sample of the row counts for the row, each other sample against it. */
static void set_error(struct sample_sum *sum, const struct sample_sum *all)
{
	double nr = (double)all->nr, mean = (double)all->ns / (nr ? nr : 1);
	double each = all->squares / (nr ? nr : 1);
	double share = mean ? ((double)sum->ns + mean) / ((double)all->ns + 2 * mean) : 0;
	double variance =
		(sum->squares + each) * (1 - 2 * share) + (all->squares + 2 * each) * share * share;

	sum->error_ns = (uint64_t)sqrt(fmax(0, variance * nr / (nr + 2)));
}

static void set_errors(struct sample_table *table)
{
	for (size_t i = 0; i < table->rows.nr; i++) {
		struct sample_row *r = &table->rows.items[i];

		set_error(&r->self, &table->all);
		set_error(&r->total, &table->all);
		r->off.error_ns = (uint64_t)sqrt(r->looks_squares);
	}
	table->all.error_ns = (uint64_t)sqrt(table->all.squares);
}

/* Rows of stacks are named by the operator alone. */
static int set_names(struct sample_table *table)
{
	for (size_t i = 0; i < table->rows.nr; i++) {
		struct sample_row *r = &table->rows.items[i];

		r->name = intern__get(table->texts, r->name, strcspn(r->name, "\n"));
		if (!r->name)
			return -ENOMEM;
	}
	return 0;
}

static int compare(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int by_self(const struct sample_row *x, const struct sample_row *y)
{
	return compare(x->self.ns, y->self.ns)	   ?
	       : compare(x->total.ns, y->total.ns) ?
	       : compare(x->off.ns, y->off.ns)	   ?
						   : strcmp(x->name, y->name);
}

static int order_self(const void *a, const void *b)
{
	return by_self(a, b);
}

static int order_total(const void *a, const void *b)
{
	const struct sample_row *x = a, *y = b;

	return compare(x->total.ns, y->total.ns) ?: by_self(x, y);
}

static int order_off(const void *a, const void *b)
{
	const struct sample_row *x = a, *y = b;

	return compare(x->off.ns, y->off.ns) ?: by_self(x, y);
}

int sample_table__new(const struct timeline *t, const struct sample_table_options *options,
		      struct sample_table **ret_table)
{
	CLEANUP(cleanup_sample_table) struct sample_table *table = calloc(1, sizeof(*table));
	CLEANUP(summing__done)
	struct summing m = {.t = t, .options = options, .table = table};

	if (!table)
		return -ENOMEM;
	table->recording = t->recording;
	table->texts = intern__new();
	if (!table->texts)
		return -ENOMEM;
	for (size_t i = 0; i < t->samples.nr; i++) {
		int err;

		m.turn = i + 1;
		err = add_sample(&m, &t->samples.items[i]);
		if (err)
			return err;
	}
	set_errors(table);
	if (options->group == SAMPLE_BY_STACK && set_names(table))
		return -ENOMEM;
	if (table->rows.nr)
		qsort(table->rows.items, table->rows.nr, sizeof(*table->rows.items),
		      options->by_off	  ? order_off
		      : options->by_total ? order_total
					  : order_self);
	*ret_table = TAKE(table);
	return 0;
}
