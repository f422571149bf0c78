/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A program's steps in sum: as JSON, and as a line of text for each process.
 */
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

static void series_object(struct json_writer *j, const struct timeline *t,
			  const struct tl_step_series *s)
{
	static const char *const by[] = {
		[TL_STEPS_PROFILER] = "profiler",
		[TL_STEPS_OPTIMIZER] = "optimizer",
		[TL_STEPS_DATALOADER] = "dataloader",
		[TL_STEPS_SEQUENCE] = "sequence",
	};
	const struct extent e = extent_of(t, s);

	json__object(j, &json_spaced);
	json__put_i64(j, "pid", t->processes.items[s->process].pid);
	json__put_u64(j, "tid", t->threads.items[s->thread].tid);
	json__put_word(j, "found_by", by[s->by]);
	if (s->marker)
		json__put_text(j, "marker", s->marker);
	else
		json__put_u64(j, "cycle_ops", s->cycle_nr);
	json__put_u64(j, "first", t->steps.items[s->first].number);
	json__put_u64(j, "count", s->nr);
	json__put_duration(j, "mean_us", e.sum_ns / s->nr);
	json__put_duration(j, "min_us", e.least_ns);
	json__put_duration(j, "max_us", e.most_ns);
	json__end(j);
}

void metadata_steps(struct json_writer *j, const struct timeline *t)
{
	json__array(j, &json_spaced);
	for (size_t i = 0; i < t->step_series.nr; i++)
		series_object(j, t, &t->step_series.items[i]);
	json__end(j);
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
