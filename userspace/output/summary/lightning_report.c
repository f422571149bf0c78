/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The report of PyTorch Lightning's SimpleProfiler for each process: how often each action ran, and
 * for how long. Actions are the ranges that Lightning marks ("[pl][profile]..."), or all
 * annotations if there are none. Hooks of a LightningModule that are known from Python stacks alone
 * have the time of the operators in them, and no count.
 */
#include "output/format/output.h"
#include "output/format/output_format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "base/hash.h"

#define MARK   "[pl][profile]"
#define MODULE "[pl][module]"
#define CELL   15
#define TAB    8
#define DIGITS 5

static const char *const hooks[] = {
	"training_step",     "validation_step",		 "test_step", "predict_step",
	"backward",	     "optimizer_step",		 "forward",   "optimizer_zero_grad",
	"lr_scheduler_step", "transfer_batch_to_device",
};

struct action {
	const char *name;
	uint64_t calls; /* 0: not known */
	uint64_t total_ns;
};

struct lightning_report {
	const struct timeline *t;
	uint32_t process;
	VEC(struct action) items;
	struct hash index; /* name -> item; names are interned, or of `hooks` */
	bool has_marks;
};

static void lightning_report__done(struct lightning_report *a)
{
	vec_done(&a->items);
	hash__done(&a->index);
}

static int count(struct lightning_report *a, const char *name, uint64_t calls, uint64_t ns)
{
	const uint64_t *known = hash__find(&a->index, (uintptr_t)name);
	struct action fresh = {.name = name};
	uint64_t at = known ? *known : a->items.nr;
	int err = 0;

	if (!known)
		err = vec_push(&a->items, fresh);
	if (!err && !known)
		err = hash__set(&a->index, (uintptr_t)name, at);
	if (err)
		return err;
	a->items.items[at].calls += calls;
	a->items.items[at].total_ns += ns;
	return 0;
}

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static bool is_annotation(const struct lightning_report *a, const struct tl_op *op)
{
	return op->scope == GP_SCOPE_USER &&
	       a->t->threads.items[op->thread].process == a->process &&
	       !starts_with(op->name, MODULE);
}

static int find_annotations(struct lightning_report *a)
{
	int err = 0;

	for (size_t i = 0; i < a->t->ops.nr; i++)
		a->has_marks |= is_annotation(a, &a->t->ops.items[i]) &&
				starts_with(a->t->ops.items[i].name, MARK);
	for (size_t i = 0; i < a->t->ops.nr && !err; i++) {
		const struct tl_op *op = &a->t->ops.items[i];

		if (is_annotation(a, op) && (!a->has_marks || starts_with(op->name, MARK)))
			err = count(a, op->name, 1, op->end_ns - op->start_ns);
	}
	return err;
}

/* "Model.training_step" is a call of training_step. */
static const char *hook_of(const char *function)
{
	const char *last = strrchr(function, '.');

	last = last ? last + 1 : function;
	for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++)
		if (!strcmp(last, hooks[i]))
			return hooks[i];
	return NULL;
}

/* An operator that none other called counts once for each hook that it ran in. */
static int count_stack(struct lightning_report *a, const struct tl_op *op)
{
	const char *seen[sizeof(hooks) / sizeof(*hooks)];
	size_t nr = 0, seen_nr = 0;
	const uint32_t *frames = recording__stack(a->t->recording, op->stack_id, &nr, NULL);
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		const char *hook = hook_of(recording__frame(a->t->recording, frames[i]).function);
		bool again = !hook;

		for (size_t k = 0; k < seen_nr; k++)
			again |= seen[k] == hook;
		if (again)
			continue;
		seen[seen_nr++] = hook;
		err = count(a, hook, 0, op->end_ns - op->start_ns);
	}
	return err;
}

static int find_hooks(struct lightning_report *a)
{
	int err = 0;

	for (size_t i = 0; i < a->t->ops.nr && !err; i++) {
		const struct tl_op *op = &a->t->ops.items[i];
		bool inside =
			op->parent != TL_NONE && a->t->ops.items[op->parent].scope != GP_SCOPE_USER;

		if (op->stack_id && op->scope != GP_SCOPE_USER && !inside &&
		    a->t->threads.items[op->thread].process == a->process)
			err = count_stack(a, op);
	}
	return err;
}

/* ---- text ---- */

/* As Python's format(value, ".5"): five digits, and one behind the point at least. */
static void python_number(struct buf *b, double value)
{
	char text[40], *e;
	int exponent;
	size_t nr;

	(void)snprintf(text, sizeof(text), "%.*e", DIGITS - 1, value);
	e = strchr(text, 'e');
	exponent = e ? atoi(e + 1) : 0;
	if (value != 0 && (exponent < -4 || exponent >= DIGITS - 1)) {
		nr = (size_t)(e - text);
		while (nr > 1 && text[nr - 1] == '0')
			nr--;
		nr -= text[nr - 1] == '.';
		buf__add(b, text, nr);
		buf__str(b, e);
		return;
	}
	(void)snprintf(text, sizeof(text), "%.*f", DIGITS - 1 - (value != 0 ? exponent : 0), value);
	nr = strlen(text);
	while (nr > 2 && text[nr - 1] == '0' && text[nr - 2] != '.')
		nr--;
	buf__add(b, text, nr);
}

static void pad(struct buf *b, const char *text, size_t width)
{
	buf__line(b, text);
	for (size_t nr = line_characters(text); nr < width; nr++)
		buf__char(b, ' ');
}

static void row(struct buf *b, size_t width, const char *action, const char *const cells[4])
{
	buf__str(b, "\n|  ");
	pad(b, action, width);
	for (size_t i = 0; i < 4; i++) {
		buf__str(b, "\t|  ");
		pad(b, cells[i], CELL);
	}
	buf__str(b, "\t|");
}

/* Its columns, tabs expanded, and the line end that it begins with. */
static size_t row_columns(const struct buf *b)
{
	size_t columns = 0;

	for (size_t i = 1; i < b->nr; i++) {
		if (b->bytes[i] == '\t')
			columns = columns / TAB * TAB + TAB;
		else
			columns += ((unsigned char)b->bytes[i] & 0xc0) != 0x80;
	}
	return columns + 1;
}

static void line(struct buf *b, size_t columns)
{
	buf__char(b, '\n');
	while (columns-- > 0)
		buf__char(b, '-');
}

static const char *shown_name(const struct lightning_report *a, const struct action *one)
{
	return a->has_marks && starts_with(one->name, MARK) ? one->name + strlen(MARK) : one->name;
}

static void action_row(struct buf *b, const struct lightning_report *a, const struct action *one,
		       size_t width, double wall_s)
{
	struct buf mean = {0}, total = {0}, percent = {0};
	double total_s = (double)one->total_ns / 1e9;
	char calls[24] = "-";

	if (one->calls) {
		(void)snprintf(calls, sizeof(calls), "%llu", (unsigned long long)one->calls);
		python_number(&mean, total_s / (double)one->calls);
	} else {
		buf__char(&mean, '-');
	}
	python_number(&total, total_s);
	python_number(&percent, wall_s > 0 ? 100.0 * total_s / wall_s : 0.0);
	if (buf__error(&mean) || buf__error(&total) || buf__error(&percent))
		b->err = -ENOMEM;
	else
		row(b, width, shown_name(a, one),
		    (const char *const[]){mean.bytes, calls, total.bytes, percent.bytes});
	buf__done(&mean);
	buf__done(&total);
	buf__done(&percent);
}

static int longest_first(const void *a, const void *b)
{
	const struct action *x = *(const struct action *const *)a;
	const struct action *y = *(const struct action *const *)b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void total_row(struct buf *b, const struct lightning_report *a, size_t width, double wall_s)
{
	struct buf wall = {0};
	uint64_t nr = 0;
	char calls[24];

	for (size_t i = 0; i < a->items.nr; i++)
		nr += a->items.items[i].calls;
	(void)snprintf(calls, sizeof(calls), "%llu", (unsigned long long)nr);
	python_number(&wall, wall_s);
	if (buf__error(&wall))
		b->err = -ENOMEM;
	else
		row(b, width, "Total", (const char *const[]){"-", calls, wall.bytes, "100 %"});
	buf__done(&wall);
}

static int table(struct buf *b, const struct lightning_report *a)
{
	static const char *const titles[] = {"Mean duration (s)", "Num calls", "Total time (s)",
					     "Percentage %"};
	CLEANUP(cleanup_free)
	const struct action **order = malloc((a->items.nr + 1) * sizeof(*order));
	double wall_s = (double)(a->t->end_ns - a->t->start_ns) / 1e9;
	CLEANUP(buf__done) struct buf head = {0};
	size_t width = 0, columns;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < a->items.nr; i++) {
		size_t nr = line_characters(shown_name(a, &a->items.items[i]));

		width = nr > width ? nr : width;
		order[i] = &a->items.items[i];
	}
	qsort(order, a->items.nr, sizeof(*order), longest_first);
	row(&head, width, "Action", titles);
	if (buf__error(&head))
		return -ENOMEM;
	columns = row_columns(&head);
	line(b, columns);
	buf__add(b, head.bytes, head.nr);
	line(b, columns);
	total_row(b, a, width, wall_s);
	line(b, columns);
	for (size_t i = 0; i < a->items.nr; i++)
		action_row(b, a, order[i], width, wall_s);
	line(b, columns);
	return 0;
}

static int report(struct buf *b, const struct timeline *t, uint32_t process)
{
	CLEANUP(lightning_report__done) struct lightning_report a = {.t = t, .process = process};
	const struct tl_process *p = &t->processes.items[process];
	int err = find_annotations(&a);

	if (!err && !a.has_marks)
		err = find_hooks(&a);
	if (t->processes.nr > 1 && p->rank >= 0)
		buf__printf(b, "Profile stats for: pid %d rank: %d\n", p->pid, p->rank);
	else if (t->processes.nr > 1)
		buf__printf(b, "Profile stats for: pid %d\n", p->pid);
	buf__str(b, "Profiler Report\n");
	if (!err && a.items.nr)
		err = table(b, &a);
	buf__char(b, '\n');
	return err ? err : buf__error(b);
}

int output_lightning(struct sink *s, const struct timeline *t)
{
	CLEANUP(buf__done) struct buf b = {0};
	int err = 0;

	for (uint32_t i = 0; i < t->processes.nr && !err; i++)
		err = report(&b, t, i);
	return err ? err : sink__write_buf(s, &b);
}

int output_format_lightning(struct sink *s, const struct timeline *t,
			    const struct output_request *request)
{
	return output_lightning(s, t);
}
