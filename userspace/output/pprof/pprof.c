/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A pprof profile whose sample types are all metrics of the recording. The leaf of a sample is its
 * op, or the API call or GPU work below that op, so that `pprof -top` adds up as the table does.
 * Concatenated parts of a message are one message: samples are written one by one, and
 * the tables they refer to come last.
 */
#include "output/pprof/pprof.h"

#include "output/flame/stack_samples.h"
#include "output/format/output.h"
#include "output/format/output_format.h"
#include "output/format/protobuf_encode.h"
#include "output/format/stack_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/hash.h"

#include "profile.pb-c.h"

#define BLOCK_BYTES (1 << 20)
#define LABELS_MAX  6

static const struct {
	const char *name, *unit;
} types[] = {
	[STACK_CPU] = {"cpu", "nanoseconds"},
	[STACK_CUDA] = {"cuda", "nanoseconds"},
	[STACK_CALLS] = {"calls", "count"},
	[STACK_ALLOCATIONS] = {"alloc_objects", "count"},
	[STACK_ALLOCATED] = {"alloc_space", "bytes"},
	[STACK_PEAK] = {"peak_space", "bytes"},
	[STACK_SAMPLES] = {"samples", "count"},
	[STACK_OFF] = {"off_cpu", "nanoseconds"},
};

struct pprof {
	struct sink *sink;
	const struct timeline *t; /* whose samples are being added */
	int32_t pid;		  /* of these those of this process alone; 0: all */
	struct pprof_tables *tables;
	struct hash sample_of;
	VEC(struct stack_sample) samples; /* those that differ in more than their values */
	VEC(uint64_t) locations;	  /* of the sample that is being written */
	enum stack_metric metrics[STACK_METRIC_NR]; /* those that are shown */
	size_t metrics_nr;
	VEC(struct tl_loss) losses; /* of all timelines; names are copies */
	struct buf damage;
	bool gpu_estimated, gpu_partial; /* of one of them, see timeline.h */
	uint64_t start_ns, end_ns, realtime_offset_ns;
	uint64_t period_ns; /* of samples; 0: there are none */
	struct buf out;
	int err;
};

static int drain(struct pprof *p, size_t least)
{
	int err = p->err ? p->err : pprof_tables__error(p->tables);

	return err ? err : sink__drain(p->sink, &p->out, least);
}

/* ---- adding up ---- */

static bool same_place(const struct stack_sample *a, const struct stack_sample *b)
{
	return a->stack.id == b->stack.id && a->stack.nr == b->stack.nr &&
	       a->stack.is_forward == b->stack.is_forward && a->op == b->op && a->leaf == b->leaf &&
	       a->is_gpu == b->is_gpu && a->process == b->process && a->thread == b->thread &&
	       a->device_type == b->device_type && a->device_index == b->device_index;
}

static uint64_t key_of(const struct stack_sample *s)
{
	uint64_t key = hash_mix((uint64_t)s->stack.id << 1 | s->stack.is_forward);

	key = hash_mix(key ^ (uintptr_t)s->op);
	key = hash_mix(key ^ (uintptr_t)s->leaf);
	key = hash_mix(key ^ ((uint64_t)s->thread << 32 | s->process));
	return hash_mix(key ^
			((uint64_t)(uint32_t)s->device_type << 32 | (uint32_t)s->device_index));
}

static int add_sample(const struct stack_sample *s, void *arg)
{
	struct pprof *p = arg;
	uint64_t key = key_of(s), *at;

	if (p->pid && (s->process == TL_NONE || p->t->processes.items[s->process].pid != p->pid))
		return 0;
	for (; (at = hash__find(&p->sample_of, key)); key++) {
		struct stack_sample *known = &p->samples.items[*at];

		if (!same_place(known, s))
			continue;
		for (int i = 0; i < STACK_METRIC_NR; i++)
			if (__builtin_add_overflow(known->values[i], s->values[i],
						   &known->values[i]))
				known->values[i] = UINT64_MAX;
		return 0;
	}
	if (hash__set(&p->sample_of, key, p->samples.nr))
		return -ENOMEM;
	return vec_push(&p->samples, *s);
}

/* ---- samples ---- */

static void push(struct pprof *p, uint64_t location)
{
	if (vec_push(&p->locations, location))
		p->err = -ENOMEM;
}

static void push_leaf(struct pprof *p, enum pprof_mapping mapping, const char *name)
{
	push(p, pprof_tables__leaf(p->tables, mapping, name));
}

/* Leaf first. */
static void set_locations(struct pprof *p, const struct stack_sample *s)
{
	const char *mark = stack_text_mark(s->stack.flags);

	p->locations.nr = 0;
	if (s->leaf)
		push_leaf(p, s->is_gpu ? PPROF_GPU : PPROF_OPS, s->leaf);
	push_leaf(p, PPROF_OPS, stack_sample_op(s));
	if (s->stack.is_forward)
		push_leaf(p, PPROF_NONE, STACK_TEXT_BACKWARD);
	for (size_t i = 0; i < s->stack.nr; i++)
		if (!recording__frame(p->t->recording, s->stack.frames[i]).inlined)
			push(p, pprof_tables__frame(p->tables, s->stack.frames[i]));
	if (mark)
		push_leaf(p, PPROF_NONE, mark);
	if (!s->stack.nr)
		push_leaf(p, PPROF_NONE, "[no stack]");
}

struct labels {
	Pprof__Label items[LABELS_MAX];
	Pprof__Label *pointers[LABELS_MAX];
	size_t nr;
};

static Pprof__Label *add_label(struct pprof *p, struct labels *l, const char *key)
{
	Pprof__Label *label = &l->items[l->nr];

	l->pointers[l->nr++] = label;
	pprof__label__init(label);
	label->key = pprof_tables__text(p->tables, key);
	return label;
}

static void text_label(struct pprof *p, struct labels *l, const char *key, const char *text)
{
	if (text && *text)
		add_label(p, l, key)->str = pprof_tables__text(p->tables, text);
}

static void device_label(struct pprof *p, struct labels *l, const struct stack_sample *s)
{
	char name[64];

	if (s->device_type < 0)
		return;
	stack_sample_device(s, name, sizeof(name));
	text_label(p, l, "device", name);
}

static void set_labels(struct pprof *p, struct labels *l, const struct stack_sample *s)
{
	text_label(p, l, "op", s->op);
	if (s->process != TL_NONE) {
		add_label(p, l, "pid")->num = p->t->processes.items[s->process].pid;
		text_label(p, l, "process", p->t->processes.items[s->process].comm);
	}
	if (s->thread != TL_NONE) {
		add_label(p, l, "tid")->num = p->t->threads.items[s->thread].tid;
		text_label(p, l, "thread", p->t->threads.items[s->thread].comm);
	}
	device_label(p, l, s);
}

static int write_sample(struct pprof *p, const struct stack_sample *s)
{
	Pprof__Profile profile = PPROF__PROFILE__INIT;
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *one = &sample;
	int64_t values[STACK_METRIC_NR];
	struct labels labels = {.nr = 0};
	bool any = false;

	for (size_t i = 0; i < p->metrics_nr; i++) {
		uint64_t value = s->values[p->metrics[i]];

		values[i] = value > INT64_MAX ? INT64_MAX : (int64_t)value;
		any |= value > 0;
	}
	if (!any)
		return 0;
	set_locations(p, s);
	if (p->err)
		return p->err;
	set_labels(p, &labels, s);
	sample.location_id = p->locations.items;
	sample.n_location_id = p->locations.nr;
	sample.value = values;
	sample.n_value = p->metrics_nr;
	sample.label = labels.pointers;
	sample.n_label = labels.nr;
	profile.sample = &one;
	profile.n_sample = 1;
	protobuf_encode(&profile, &p->out);
	return drain(p, BLOCK_BYTES);
}

/* ---- what the samples refer to ---- */

static int add_loss(struct pprof *p, const struct tl_loss *loss)
{
	struct tl_loss own = {.count = loss->count};

	for (size_t i = 0; i < p->losses.nr; i++)
		if (!strcmp(p->losses.items[i].name, loss->name)) {
			p->losses.items[i].count += loss->count;
			return 0;
		}
	own.name = strdup(loss->name);
	if (!own.name || vec_push(&p->losses, own)) {
		free((char *)own.name);
		return -ENOMEM;
	}
	return 0;
}

/* Every counter, zeros too. One line, because pprof prints comments above whatever it prints. */
static int64_t losses_comment(struct pprof *p)
{
	struct buf text = {0};
	int64_t comment;

	buf__str(&text, "losses:");
	for (size_t i = 0; i < p->losses.nr; i++)
		buf__printf(&text, "%s %s: %llu", i ? "," : "", p->losses.items[i].name,
			    (unsigned long long)p->losses.items[i].count);
	comment = pprof_tables__text(p->tables, text.bytes ? text.bytes : "");
	if (buf__error(&text))
		p->err = -ENOMEM;
	buf__done(&text);
	return comment;
}

#define COMMENTS 4

static size_t make_comments(struct pprof *p, int64_t comments[COMMENTS])
{
	size_t nr = 0;

	comments[nr++] = losses_comment(p);
	if (p->damage.nr)
		comments[nr++] = pprof_tables__text(p->tables, p->damage.bytes);
	if (p->gpu_estimated)
		comments[nr++] = pprof_tables__text(p->tables, "what GPUs did is estimated from "
							       "windows of time");
	if (p->gpu_partial)
		comments[nr++] = pprof_tables__text(p->tables, "what GPUs did is of windows of "
							       "time alone, not of all");
	if (buf__error(&p->damage))
		p->err = -ENOMEM;
	return nr;
}

static bool shows(const struct pprof *p, enum stack_metric metric)
{
	for (size_t i = 0; i < p->metrics_nr; i++)
		if (p->metrics[i] == metric)
			return true;
	return false;
}

static void set_type(struct pprof *p, Pprof__ValueType *to, enum stack_metric metric)
{
	pprof__value_type__init(to);
	to->type = pprof_tables__text(p->tables, types[metric].name);
	to->unit = pprof_tables__text(p->tables, types[metric].unit);
}

static int write_tables(struct pprof *p, enum stack_metric metric)
{
	Pprof__Profile profile = PPROF__PROFILE__INIT;
	Pprof__ValueType kinds[STACK_METRIC_NR], *pointers[STACK_METRIC_NR], period;
	int64_t comments[COMMENTS];
	int err;

	for (size_t i = 0; i < p->metrics_nr; i++) {
		set_type(p, &kinds[i], p->metrics[i]);
		pointers[i] = &kinds[i];
	}
	if (p->period_ns && shows(p, STACK_SAMPLES)) {
		set_type(p, &period, STACK_CPU);
		profile.period_type = &period;
		profile.period = (int64_t)p->period_ns;
	}
	profile.sample_type = pointers;
	profile.n_sample_type = p->metrics_nr;
	if (!shows(p, metric))
		metric = STACK_CPU;
	profile.default_sample_type = pprof_tables__text(p->tables, types[metric].name);
	profile.comment = comments;
	profile.n_comment = make_comments(p, comments);
	profile.time_nanos = (int64_t)(p->start_ns + p->realtime_offset_ns);
	profile.duration_nanos = (int64_t)(p->end_ns - p->start_ns);
	protobuf_encode(&profile, &p->out);
	err = pprof_tables__pack(p->tables, &p->out);
	return err ? err : drain(p, 1);
}

/* ---- the whole ---- */

struct pprof *pprof__new(struct sink *s, uint32_t metrics)
{
	struct pprof *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->sink = s;
	/* As Go's own CPU profiles have them: samples, then what they stand for. */
	if (metrics & 1U << STACK_SAMPLES)
		p->metrics[p->metrics_nr++] = STACK_SAMPLES;
	for (int i = 0; i < STACK_METRIC_NR; i++)
		if (i != STACK_SAMPLES && metrics & 1U << i)
			p->metrics[p->metrics_nr++] = i;
	p->tables = pprof_tables__new();
	if (!p->tables) {
		free(p);
		return NULL;
	}
	return p;
}

/* Time between two samples of a CPU, in the mean; 0: there are none. */
static uint64_t period_of(const struct timeline *t)
{
	double hz = timeline__sample_hz(t);

	return hz > 0 ? (uint64_t)(1e9 / hz) : 0;
}

int pprof__add(struct pprof *p, const struct timeline *t, int32_t pid)
{
	const char *damage = recording__damage(t->recording);
	int err;

	p->t = t;
	p->pid = pid;
	if (!p->end_ns) {
		p->start_ns = t->start_ns;
		p->realtime_offset_ns = t->realtime_offset_ns;
		p->period_ns = period_of(t);
	}
	p->end_ns = t->end_ns > p->end_ns ? t->end_ns : p->end_ns;
	p->gpu_estimated |= t->gpu_estimated;
	p->gpu_partial |= t->gpu_partial;
	if (damage && !p->damage.nr)
		buf__printf(&p->damage, "the recording is not whole: %s", damage);
	pprof_tables__begin(p->tables, t->recording);
	hash__done(&p->sample_of);
	p->samples.nr = 0;
	err = stack_samples_each(t, true, add_sample, p);
	for (size_t i = 0; i < p->samples.nr && !err; i++)
		err = write_sample(p, &p->samples.items[i]);
	for (size_t i = 0; i < t->losses.nr && !err; i++)
		err = add_loss(p, &t->losses.items[i]);
	return err;
}

int pprof__finish(struct pprof *p, const char *metric)
{
	int number = stack_metric_of(metric);

	return number < 0 ? -EINVAL : write_tables(p, (enum stack_metric)number);
}

void pprof__free(struct pprof *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->losses.nr; i++)
		free((char *)p->losses.items[i].name);
	vec_done(&p->losses);
	buf__done(&p->damage);
	pprof_tables__free(p->tables);
	hash__done(&p->sample_of);
	vec_done(&p->samples);
	vec_done(&p->locations);
	buf__done(&p->out);
	free(p);
}

int output_pprof(struct sink *s, const struct timeline *t, const char *metric)
{
	uint32_t metrics = 0;
	struct pprof *p;
	int err;

	if (stack_metric_of(metric) < 0)
		return -EINVAL;
	for (int i = 0; i < STACK_METRIC_NR; i++)
		metrics |= stack_metric_captured(t, i) ? 1U << i : 0;
	p = pprof__new(s, metrics);
	err = p ? pprof__add(p, t, 0) : -ENOMEM;
	err = err ? err : pprof__finish(p, metric);
	pprof__free(p);
	return err;
}

int output_format_pprof(struct sink *s, const struct timeline *t,
			const struct output_request *request)
{
	return output_pprof(s, t, request->metric);
}
