/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sums of Python's garbage collections, as JSON and as a line of text.
 */
#include "output/format/metadata.h"
#include "output/format/output.h"

#include "base/banned.h"

#define GENERATIONS 3

struct sum {
	uint64_t nr, ns, most_ns, collected;
};

/* Of one generation, or below 0 of all. */
static struct sum sum_of(const struct timeline *t, int64_t generation)
{
	struct sum sum = {0};

	for (size_t i = 0; i < t->python_gcs.nr; i++) {
		const struct tl_python_gc *gc = &t->python_gcs.items[i];
		uint64_t ns = gc->end_ns - gc->start_ns;

		if (generation >= 0 && gc->generation != generation)
			continue;
		sum.nr++;
		sum.ns += ns;
		sum.most_ns = ns > sum.most_ns ? ns : sum.most_ns;
		sum.collected += gc->collected > 0 ? (uint64_t)gc->collected : 0;
	}
	return sum;
}

static void sum_keys(struct json_writer *j, const struct sum *sum)
{
	json__put_u64(j, "count", sum->nr);
	json__put_u64(j, "collected", sum->collected);
	json__put_duration(j, "sum_us", sum->ns);
	json__put_duration(j, "max_us", sum->most_ns);
}

/* The part of the capture in which collections were recorded. */
static const char *seen_in(const struct timeline *t)
{
	if (t->windows.nr)
		return "the windows";
	return t->paused_ns ? "the time outside pauses" : "all";
}

void metadata_python_gc(struct json_writer *j, const struct timeline *t)
{
	struct sum sum = sum_of(t, -1);

	json__object(j, &json_spaced);
	sum_keys(j, &sum);
	json__put_word(j, "in", seen_in(t));
	json__put_array(j, "generations", &json_spaced);
	for (int i = 0; i < GENERATIONS; i++) {
		sum = sum_of(t, i);
		if (!sum.nr)
			continue;
		json__object(j, &json_spaced);
		json__put_i64(j, "generation", i);
		sum_keys(j, &sum);
		json__end(j);
	}
	json__end(j);
	json__end(j);
}

int output_python_gc_text(struct sink *s, const struct timeline *t)
{
	const struct sum sum = sum_of(t, -1);
	struct buf out = {0};

	if (sum.nr)
		buf__printf(&out,
			    "Python's garbage collector: %llu time%s, %.3f ms in %s, %.3f ms the "
			    "longest\n",
			    (unsigned long long)sum.nr, sum.nr == 1 ? "" : "s",
			    (double)sum.ns / 1e6, seen_in(t), (double)sum.most_ns / 1e6);
	return sink__write_buf(s, &out);
}
