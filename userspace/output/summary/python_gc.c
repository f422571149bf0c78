/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Python's garbage collections, in sum.
 */
#include "output/format/columns.h"
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

static void members(struct buf *out, const struct sum *sum)
{
	buf__printf(out, "\"count\": %llu, \"collected\": %llu", (unsigned long long)sum->nr,
		    (unsigned long long)sum->collected);
	columns_us(out, COLUMNS_JSON, "sum_us", sum->ns);
	columns_us(out, COLUMNS_JSON, "max_us", sum->most_ns);
}

/* What else there was is not known. */
static const char *seen_in(const struct timeline *t)
{
	if (t->windows.nr)
		return "the windows";
	return t->paused_ns ? "the time outside pauses" : "all";
}

void describe_python_gc(struct buf *out, const struct timeline *t)
{
	struct sum sum = sum_of(t, -1);
	bool first = true;

	buf__char(out, '{');
	members(out, &sum);
	buf__printf(out, ", \"in\": \"%s\", \"generations\": [", seen_in(t));
	for (int i = 0; i < GENERATIONS; i++) {
		sum = sum_of(t, i);
		if (!sum.nr)
			continue;
		buf__printf(out, "%s{\"generation\": %d, ", first ? "" : ", ", i);
		members(out, &sum);
		buf__char(out, '}');
		first = false;
	}
	buf__str(out, "]}");
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
