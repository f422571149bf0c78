/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Stacks with a weight: torch.profiler's export_stacks(), and speedscope's sampled profile. Each
 * event that has a stack and a weight above zero is one line, or one sample.
 */
#include "output/flame/stack_samples.h"
#include "output/format/output.h"
#include "output/format/output_format.h"
#include "output/format/stack_text.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/hash.h"
#include "base/json_writer.h"

#define BLOCK_BYTES (1 << 20)

/* Numbers of marks in stacks.index_of, above those of frames. */
#define MARK_TRUNCATED	(1ULL << 32)
#define MARK_INCOMPLETE (2ULL << 32)
#define MARK_BACKWARD	(3ULL << 32)

struct stacks {
	struct sink *sink;
	const struct timeline *t;
	enum stack_metric metric;
	struct buf out, frame;
	struct json_writer json; /* writes to `out`, of speedscope */
	struct hash index_of;	 /* frame id or mark -> speedscope's number */
	uint64_t total;
	int (*each)(struct stacks *s, const struct tl_stack *k, uint64_t value);
};

static int add(const struct stack_sample *sample, void *arg)
{
	struct stacks *s = arg;
	uint64_t value = sample->values[s->metric];

	if (s->metric == STACK_CPU || s->metric == STACK_CUDA || s->metric == STACK_OFF)
		value /= 1000;
	return sample->stack.nr && value ? s->each(s, &sample->stack, value) : 0;
}

static int add_all(struct stacks *s)
{
	return stack_samples_each(s->t, false, add, s);
}

/* The profile's name and its values' unit, as speedscope has them. */
static void put_metric(struct json_writer *j, enum stack_metric metric)
{
	static const struct {
		const char *name, *unit;
	} profiles[] = {
		[STACK_CPU] = {"self CPU time", "microseconds"},
		[STACK_CUDA] = {"self CUDA time", "microseconds"},
		[STACK_CALLS] = {"calls", "none"},
		[STACK_ALLOCATIONS] = {"allocations", "none"},
		[STACK_ALLOCATED] = {"allocated", "bytes"},
		[STACK_PEAK] = {"held at the memory peak", "bytes"},
		[STACK_SAMPLES] = {"samples", "none"},
		[STACK_OFF] = {"off-CPU time", "microseconds"},
	};

	json__put_word(j, "name", profiles[metric].name);
	json__put_word(j, "unit", profiles[metric].unit);
}

/* ---- folded ---- */

static int folded_line(struct stacks *s, const struct tl_stack *k, uint64_t value)
{
	if (stack_text_mark(k->flags))
		buf__printf(&s->out, "%s;", stack_text_mark(k->flags));
	for (size_t i = k->nr; i-- > 0;) {
		stack_text_folded(&s->out, &s->frame, s->t->recording, k->frames[i]);
		buf__str(&s->out, i ? ";" : "");
	}
	buf__str(&s->out, k->is_forward ? ";" STACK_TEXT_BACKWARD " " : " ");
	buf__u64(&s->out, value);
	buf__char(&s->out, '\n');
	if (buf__error(&s->frame))
		return buf__error(&s->frame);
	return sink__drain(s->sink, &s->out, BLOCK_BYTES);
}

int output_stacks(struct sink *sink, const struct timeline *t, const char *metric)
{
	struct stacks s = {.sink = sink, .t = t, .each = folded_line};
	int err = stack_metric_of(metric);

	if (err < 0)
		return -EINVAL;
	s.metric = (enum stack_metric)err;
	err = add_all(&s);
	err = err ? err : sink__drain(s.sink, &s.out, 1);
	buf__done(&s.out);
	buf__done(&s.frame);
	return err;
}

/* ---- speedscope ---- */

/* One element a line, as json_lines, and tight inside. */
static const struct json_style lines_style = JSON_STYLE("\n", ",\n", ":", "");

/* Gives it a number if it has none yet. True if so; what fails goes to *ret_err. */
static bool is_new(struct stacks *s, uint64_t key, int *ret_err)
{
	if (*ret_err || hash__find(&s->index_of, key))
		return false;
	*ret_err = hash__set(&s->index_of, key, s->index_of.nr);
	return true;
}

static void note_mark(struct stacks *s, uint64_t mark, const char *name, int *ret_err)
{
	if (!is_new(s, mark, ret_err))
		return;
	json__object(&s->json, &json_tight);
	json__put_word(&s->json, "name", name);
	json__end(&s->json);
}

static void note_frame(struct stacks *s, uint32_t frame, int *ret_err)
{
	struct recording_frame f = recording__frame(s->t->recording, frame);
	struct buf name = {0};

	if (!is_new(s, frame, ret_err))
		return;
	stack_text_function(&name, &f);
	json__object(&s->json, &json_tight);
	json__put_text(&s->json, "name", name.bytes ? name.bytes : "");
	json__put_text(&s->json, "file", *f.file ? f.file : f.module);
	if (f.kind == RECORDING_FRAME_PYTHON || f.line)
		json__put_u64(&s->json, "line", f.line);
	json__end(&s->json);
	if (!*ret_err)
		*ret_err = buf__error(&name);
	buf__done(&name);
}

static uint64_t outer_mark(const struct tl_stack *k)
{
	if (!stack_text_mark(k->flags))
		return 0;
	return k->flags & GP_STACK_INCOMPLETE ? MARK_INCOMPLETE : MARK_TRUNCATED;
}

static int note_frames(struct stacks *s, const struct tl_stack *k, uint64_t value)
{
	int err = 0;

	if (outer_mark(k))
		note_mark(s, outer_mark(k), stack_text_mark(k->flags), &err);
	for (size_t i = 0; i < k->nr; i++)
		note_frame(s, k->frames[i], &err);
	if (k->is_forward)
		note_mark(s, MARK_BACKWARD, STACK_TEXT_BACKWARD, &err);
	s->total += value;
	return err ? err : sink__drain(s->sink, &s->out, BLOCK_BYTES);
}

static void put_index(struct stacks *s, uint64_t key)
{
	json__u64(&s->json, *hash__find(&s->index_of, key));
}

static int sample(struct stacks *s, const struct tl_stack *k, uint64_t value)
{
	json__array(&s->json, &json_tight);
	if (outer_mark(k))
		put_index(s, outer_mark(k));
	for (size_t i = k->nr; i-- > 0;)
		put_index(s, k->frames[i]);
	if (k->is_forward)
		put_index(s, MARK_BACKWARD);
	json__end(&s->json);
	return sink__drain(s->sink, &s->out, BLOCK_BYTES);
}

static int weight(struct stacks *s, const struct tl_stack *k, uint64_t value)
{
	json__u64(&s->json, value);
	return sink__drain(s->sink, &s->out, BLOCK_BYTES);
}

static int add_array(struct stacks *s, const char *name, const struct json_style *style,
		     int (*each)(struct stacks *s, const struct tl_stack *k, uint64_t value))
{
	int err;

	json__put_array(&s->json, name, style);
	s->each = each;
	err = add_all(s);
	json__end(&s->json);
	return err;
}

static int add_profile(struct stacks *s)
{
	struct json_writer *j = &s->json;
	int err;

	json__object(j, &json_tight);
	json__put_word(j, "type", "sampled");
	put_metric(j, s->metric);
	json__put_u64(j, "startValue", 0);
	json__put_u64(j, "endValue", s->total);
	err = add_array(s, "samples", &lines_style, sample);
	json__new_line(j, 0);
	err = err ? err : add_array(s, "weights", &json_tight, weight);
	json__end(j);
	return err;
}

static int speedscope(struct stacks *s, const char *name)
{
	struct json_writer *j = &s->json;
	int err;

	json__init(j, &s->out);
	json__object(j, &json_tight);
	json__put_word(j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json__put_word(j, "exporter", "gpuprof");
	json__put_text(j, "name", name);
	json__put_object(j, "shared", &json_tight);
	err = add_array(s, "frames", &lines_style, note_frames);
	json__end(j);
	json__new_line(j, 0);
	json__put_array(j, "profiles", &json_tight);
	err = err ? err : add_profile(s);
	json__end(j);
	json__end(j);
	buf__char(&s->out, '\n');
	return err ? err : sink__drain(s->sink, &s->out, 1);
}

int output_speedscope(struct sink *sink, const struct timeline *t, const char *metric,
		      const char *name)
{
	struct stacks s = {.sink = sink, .t = t};
	int err = stack_metric_of(metric);

	if (err < 0)
		return -EINVAL;
	s.metric = (enum stack_metric)err;
	err = speedscope(&s, name);
	buf__done(&s.out);
	hash__done(&s.index_of);
	return err;
}

int output_format_stacks(struct sink *s, const struct timeline *t,
			 const struct output_request *request)
{
	return output_stacks(s, t, request->metric);
}

int output_format_speedscope(struct sink *s, const struct timeline *t,
			     const struct output_request *request)
{
	return output_speedscope(s, t, request->metric,
				 t->processes.nr ? t->processes.items[0].cmdline : "gpuprof");
}
