/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Stacks with a number behind each: torch.profiler's export_stacks() and speedscope's sampled
 * profile. One line, or one sample, for each event that has a stack and a number above zero.
 */
#include "output/flame/stack_samples.h"
#include "output/format/output.h"
#include "output/format/stack_text.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/hash.h"

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
	struct hash index_of; /* frame id or mark -> speedscope's number */
	uint64_t samples_nr, total;
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

static const char *profile_of(enum stack_metric metric)
{
	static const char *const profiles[] = {
		[STACK_CPU] = "\"self CPU time\",\"unit\":\"microseconds\"",
		[STACK_CUDA] = "\"self CUDA time\",\"unit\":\"microseconds\"",
		[STACK_CALLS] = "\"calls\",\"unit\":\"none\"",
		[STACK_ALLOCATIONS] = "\"allocations\",\"unit\":\"none\"",
		[STACK_ALLOCATED] = "\"allocated\",\"unit\":\"bytes\"",
		[STACK_PEAK] = "\"held at the memory peak\",\"unit\":\"bytes\"",
		[STACK_SAMPLES] = "\"samples\",\"unit\":\"none\"",
		[STACK_OFF] = "\"off-CPU time\",\"unit\":\"microseconds\"",
	};

	return profiles[metric];
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

/* True if it has no number yet and is given one, with *ret_err. */
static bool is_new(struct stacks *s, uint64_t key, int *ret_err)
{
	if (*ret_err || hash__find(&s->index_of, key))
		return false;
	buf__str(&s->out, s->index_of.nr ? ",\n" : "\n");
	*ret_err = hash__set(&s->index_of, key, s->index_of.nr);
	return true;
}

static void note_mark(struct stacks *s, uint64_t mark, const char *name, int *ret_err)
{
	if (is_new(s, mark, ret_err))
		buf__printf(&s->out, "{\"name\":\"%s\"}", name);
}

static void note_frame(struct stacks *s, uint32_t frame, int *ret_err)
{
	struct recording_frame f = recording__frame(s->t->recording, frame);
	struct buf name = {0};

	if (!is_new(s, frame, ret_err))
		return;
	stack_text_function(&name, &f);
	buf__str(&s->out, "{\"name\":");
	buf__json(&s->out, name.bytes ? name.bytes : "");
	buf__str(&s->out, ",\"file\":");
	buf__json(&s->out, *f.file ? f.file : f.module);
	if (f.kind == RECORDING_FRAME_PYTHON || f.line) {
		buf__str(&s->out, ",\"line\":");
		buf__u64(&s->out, f.line);
	}
	buf__char(&s->out, '}');
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

static void index_of(struct stacks *s, uint64_t key, bool first)
{
	buf__str(&s->out, first ? "" : ",");
	buf__u64(&s->out, *hash__find(&s->index_of, key));
}

static int sample(struct stacks *s, const struct tl_stack *k, uint64_t value)
{
	bool first = !outer_mark(k);

	buf__str(&s->out, s->samples_nr++ ? ",\n[" : "\n[");
	if (!first)
		index_of(s, outer_mark(k), true);
	for (size_t i = k->nr; i-- > 0; first = false)
		index_of(s, k->frames[i], first);
	if (k->is_forward)
		index_of(s, MARK_BACKWARD, false);
	buf__char(&s->out, ']');
	return sink__drain(s->sink, &s->out, BLOCK_BYTES);
}

static int weight(struct stacks *s, const struct tl_stack *k, uint64_t value)
{
	if (s->samples_nr++)
		buf__char(&s->out, ',');
	buf__u64(&s->out, value);
	return sink__drain(s->sink, &s->out, BLOCK_BYTES);
}

static int speedscope(struct stacks *s, const char *name)
{
	int err;

	buf__str(&s->out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
			  "\"exporter\":\"gpuprof\",\"name\":");
	buf__json(&s->out, name);
	buf__str(&s->out, ",\"shared\":{\"frames\":[");
	s->each = note_frames;
	err = add_all(s);
	buf__str(&s->out, "]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":");
	buf__str(&s->out, profile_of(s->metric));
	buf__str(&s->out, ",\"startValue\":0,\"endValue\":");
	buf__u64(&s->out, s->total);
	buf__str(&s->out, ",\"samples\":[");
	s->each = sample;
	err = err ? err : add_all(s);
	buf__str(&s->out, "],\n\"weights\":[");
	s->samples_nr = 0;
	s->each = weight;
	err = err ? err : add_all(s);
	buf__str(&s->out, "]}]}\n");
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
