/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Stacks with a number behind each: torch.profiler's export_stacks() and speedscope's sampled
 * profile. One line, or one sample, for each event that has a stack and a number above zero.
 */
#include "output/output.h"
#include "output/stack_text.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/hash.h"

#define BLOCK_BYTES (1 << 20)

const char *const output_stack_metrics[] = {"self_cpu_time_total", "self_cuda_time_total",
					    "allocated_bytes", NULL};

enum metric { METRIC_CPU, METRIC_CUDA, METRIC_BYTES };

struct stack {
	const uint32_t *frames;
	size_t nr;
	uint32_t flags;
};

struct stacks {
	struct sink *sink;
	const struct timeline *t;
	enum metric metric;
	struct buf out;
	struct hash index_of; /* frame id -> speedscope's number */
	uint64_t samples_nr, total;
	int (*each)(struct stacks *s, const struct stack *k, uint64_t value);
};

static int drain(struct stacks *s, size_t least)
{
	int err = buf__error(&s->out);

	if (err || s->out.nr < least)
		return err;
	err = sink__write(s->sink, s->out.bytes, s->out.nr);
	buf__clear(&s->out);
	return err;
}

static int add(struct stacks *s, uint32_t stack_id, uint64_t value)
{
	struct stack k;

	if (!stack_id || !value)
		return 0;
	k.frames = recording__stack(s->t->recording, stack_id, &k.nr, &k.flags);
	return k.nr ? s->each(s, &k, value) : 0;
}

static int add_all(struct stacks *s)
{
	int err = 0;

	for (size_t i = 0; i < s->t->ops.nr && s->metric != METRIC_BYTES && !err; i++) {
		const struct tl_op *op = &s->t->ops.items[i];
		uint64_t ns = s->metric == METRIC_CPU ? op->self_ns : op->self_cuda_ns;

		err = add(s, op->stack_id, ns / 1000);
	}
	for (size_t i = 0; i < s->t->memory.nr && s->metric == METRIC_BYTES && !err; i++)
		if (s->t->memory.items[i].bytes > 0)
			err = add(s, s->t->memory.items[i].stack_id,
				  (uint64_t)s->t->memory.items[i].bytes);
	return err;
}

static enum metric metric_of(const char *name)
{
	if (name && !strcmp(name, "self_cuda_time_total"))
		return METRIC_CUDA;
	return name && !strcmp(name, "allocated_bytes") ? METRIC_BYTES : METRIC_CPU;
}

static const char *profile_of(enum metric metric)
{
	switch (metric) {
	case METRIC_CUDA:
		return "\"self CUDA time\",\"unit\":\"microseconds\"";
	case METRIC_BYTES:
		return "\"allocated\",\"unit\":\"bytes\"";
	default:
		return "\"self CPU time\",\"unit\":\"microseconds\"";
	}
}

/* ---- folded ---- */

static int folded_line(struct stacks *s, const struct stack *k, uint64_t value)
{
	if (stack_text_mark(k->flags))
		buf__printf(&s->out, "%s;", stack_text_mark(k->flags));
	for (size_t i = k->nr; i-- > 0;) {
		stack_text_folded(&s->out, s->t->recording, k->frames[i]);
		buf__char(&s->out, i ? ';' : ' ');
	}
	buf__u64(&s->out, value);
	buf__char(&s->out, '\n');
	return drain(s, BLOCK_BYTES);
}

int output_stacks(struct sink *sink, const struct timeline *t, const char *metric)
{
	struct stacks s = {.sink = sink, .t = t, .metric = metric_of(metric), .each = folded_line};
	int err = add_all(&s);

	err = err ? err : drain(&s, 1);
	buf__done(&s.out);
	return err;
}

/* ---- speedscope ---- */

/* Numbers a frame and writes it, if it is new. */
static int note_frames(struct stacks *s, const struct stack *k, uint64_t value)
{
	for (size_t i = 0; i < k->nr; i++) {
		struct recording_frame f = recording__frame(s->t->recording, k->frames[i]);

		if (hash__find(&s->index_of, k->frames[i]))
			continue;
		buf__str(&s->out, s->index_of.nr ? ",\n{\"name\":" : "\n{\"name\":");
		buf__json(&s->out, f.function);
		buf__str(&s->out, ",\"file\":");
		buf__json(&s->out, f.file);
		buf__str(&s->out, ",\"line\":");
		buf__u64(&s->out, f.line);
		buf__char(&s->out, '}');
		if (hash__set(&s->index_of, k->frames[i], s->index_of.nr))
			return -ENOMEM;
	}
	s->total += value;
	return drain(s, BLOCK_BYTES);
}

static int sample(struct stacks *s, const struct stack *k, uint64_t value)
{
	buf__str(&s->out, s->samples_nr++ ? ",\n[" : "\n[");
	for (size_t i = k->nr; i-- > 0;) {
		buf__u64(&s->out, *hash__find(&s->index_of, k->frames[i]));
		if (i)
			buf__char(&s->out, ',');
	}
	buf__char(&s->out, ']');
	return drain(s, BLOCK_BYTES);
}

static int weight(struct stacks *s, const struct stack *k, uint64_t value)
{
	if (s->samples_nr++)
		buf__char(&s->out, ',');
	buf__u64(&s->out, value);
	return drain(s, BLOCK_BYTES);
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
	return err ? err : drain(s, 1);
}

int output_speedscope(struct sink *sink, const struct timeline *t, const char *metric,
		      const char *name)
{
	struct stacks s = {.sink = sink, .t = t, .metric = metric_of(metric)};
	int err = speedscope(&s, name);

	buf__done(&s.out);
	hash__done(&s.index_of);
	return err;
}
