/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Answers questions about the windows of a timeline once they are read. Calls nothing that reads or
 * weighs them.
 */
#include "timeline/model/timeline.h"

#include "base/banned.h"

double timeline__gpu_stands_for(const struct timeline *t, const struct tl_gpu *work)
{
	uint32_t at = t->gpu_stands_for > 0 ? timeline__window_at(t, timeline__asked_ns(t, work))
					    : TL_NONE;

	return at == TL_NONE ? 1 : t->gpu_stands_for * t->windows.items[at].weight;
}

uint64_t timeline__asked_ns(const struct timeline *t, const struct tl_gpu *work)
{
	return work->api == TL_NONE ? work->start_ns : t->gpu.api.items[work->api].start_ns;
}

uint64_t timeline__wanted_ns(const struct timeline *t)
{
	uint64_t ns = t->end_ns > t->start_ns ? t->end_ns - t->start_ns : 0;

	return ns > t->unwanted_ns ? ns - t->unwanted_ns : 0;
}

uint32_t timeline__window_at(const struct timeline *t, uint64_t time_ns)
{
	size_t low = 0, high = t->windows.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->windows.items[middle].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low && time_ns < t->windows.items[low - 1].end_ns ? (uint32_t)low - 1 : TL_NONE;
}

bool timeline__in_windows(const struct timeline *t, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t at = timeline__window_at(t, from_ns);

	if (at == TL_NONE)
		return false;
	while (t->windows.items[at].end_ns < to_ns && at + 1 < t->windows.nr &&
	       t->windows.items[at + 1].start_ns == t->windows.items[at].end_ns)
		at++;
	return to_ns <= t->windows.items[at].end_ns;
}
