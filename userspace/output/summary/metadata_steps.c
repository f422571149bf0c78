/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What is known about a program's steps.
 */
#include "output/format/columns.h"
#include "output/format/metadata.h"
#include "output/format/output.h"

#include <string.h>

#include "base/banned.h"

struct extent {
	uint64_t sum_ns, least_ns, most_ns;
};

static struct extent extent_of(const struct timeline *t, const struct tl_step_series *s)
{
	struct extent e = {.least_ns = UINT64_MAX};

	for (uint32_t i = s->first; i < s->first + s->nr; i++) {
		const struct tl_step *step = &t->steps.items[i];
		uint64_t ns = step->end_ns - step->start_ns;

		e.sum_ns += ns;
		e.least_ns = ns < e.least_ns ? ns : e.least_ns;
		e.most_ns = ns > e.most_ns ? ns : e.most_ns;
	}
	return e;
}

static void us(struct buf *out, const char *name, uint64_t ns)
{
	columns_us(out, COLUMNS_JSON, name, ns);
}

void describe_steps(struct buf *out, const struct timeline *t)
{
	static const char *const by[] = {
		[TL_STEPS_PROFILER] = "profiler",
		[TL_STEPS_OPTIMIZER] = "optimizer",
		[TL_STEPS_DATALOADER] = "dataloader",
		[TL_STEPS_SEQUENCE] = "sequence",
	};

	buf__char(out, '[');
	for (size_t i = 0; i < t->step_series.nr; i++) {
		const struct tl_step_series *s = &t->step_series.items[i];
		struct extent e = extent_of(t, s);

		buf__printf(out, "%s{\"pid\": %d, \"tid\": %u, \"found_by\": \"%s\"", i ? ", " : "",
			    t->processes.items[s->process].pid, t->threads.items[s->thread].tid,
			    by[s->by]);
		if (s->marker) {
			buf__str(out, ", \"marker\": ");
			buf__json(out, s->marker);
		} else {
			buf__printf(out, ", \"cycle_ops\": %u", s->cycle_nr);
		}
		buf__printf(out, ", \"first\": %llu, \"count\": %u",
			    (unsigned long long)t->steps.items[s->first].number, s->nr);
		us(out, "mean_us", e.sum_ns / s->nr);
		us(out, "min_us", e.least_ns);
		us(out, "max_us", e.most_ns);
		buf__char(out, '}');
	}
	buf__char(out, ']');
}

static void duration(struct buf *out, uint64_t ns)
{
	if (ns >= 1000000000)
		buf__printf(out, "%.3f s", (double)ns / 1e9);
	else if (ns >= 1000000)
		buf__printf(out, "%.3f ms", (double)ns / 1e6);
	else
		buf__printf(out, "%.3f us", (double)ns / 1e3);
}

static void one_series(struct buf *out, const struct timeline *t, const struct tl_step_series *s)
{
	struct extent e = extent_of(t, s);

	buf__str(out, "steps: ");
	if (t->step_series.nr > 1)
		buf__printf(out, "%d: ", t->processes.items[s->process].pid);
	buf__printf(out, "%u ", s->nr);
	buf__str(out, "by ");
	if (s->marker)
		buf__line(out, s->marker);
	else
		buf__printf(out, "a cycle of %u operator%s", s->cycle_nr,
			    s->cycle_nr == 1 ? "" : "s");
	buf__str(out, ", ");
	duration(out, e.sum_ns / s->nr);
	buf__str(out, " each on average (");
	duration(out, e.least_ns);
	buf__str(out, " to ");
	duration(out, e.most_ns);
	buf__str(out, ")\n");
}

bool output_has_annotations(const struct timeline *t)
{
	const char *recorded = recording__meta(t->recording, "annotations");

	return !recorded || strcmp(recorded, "0") != 0;
}

int output_steps_text(struct sink *s, const struct timeline *t)
{
	struct buf out = {0};

	if (!t->step_series.nr)
		buf__str(&out, output_has_annotations(t)
				       ? "steps: none found\n"
				       : "steps: none found; annotations, which tell those of "
					 "training, were not recorded\n");
	for (size_t i = 0; i < t->step_series.nr; i++)
		one_series(&out, t, &t->step_series.items[i]);
	return sink__write_buf(s, &out);
}
