/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Line tables of code objects: three encodings from 3.8 to 3.14. The bytes are the target's.
 */
#include "capture/symbols/python_code.h"

struct table {
	const uint8_t *at;
	const uint8_t *end;
};

static uint32_t believed(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Up to 3.9: pairs of a step in bytes and one in lines. */
static uint32_t line_by_pairs(struct table t, int64_t line, int32_t lasti)
{
	int64_t address = 0;

	for (; t.end - t.at >= 2; t.at += 2) {
		address += t.at[0];
		if (address > lasti)
			break;
		line += (int8_t)t.at[1];
	}
	return believed(line);
}

/* 3.10: pairs of a range's length and the step to its line; -128: it has none. */
static uint32_t line_by_ranges(struct table t, int64_t line, int64_t offset)
{
	int64_t end = 0;

	for (; t.end - t.at >= 2; t.at += 2) {
		int8_t step = (int8_t)t.at[1];

		end += t.at[0];
		if (step != -128)
			line += step;
		if (offset < end)
			return step == -128 ? 0 : believed(line);
	}
	return 0;
}

static int64_t signed_varint(const uint8_t *at, const uint8_t *end)
{
	uint64_t n = 0;

	for (unsigned int shift = 0; at < end && shift < 36; shift += 6, at++) {
		n |= (uint64_t)(*at & 63) << shift;
		if (!(*at & 64))
			break;
	}
	return n & 1 ? -(int64_t)(n >> 1) : (int64_t)(n >> 1);
}

/* From 3.11 on: entries that begin with a byte above 127, which tells its kind and length. */
static uint32_t line_by_entries(struct table t, int64_t line, int64_t offset)
{
	int64_t end = 0;

	while (t.at < t.end) {
		unsigned int kind = *t.at >> 3 & 15, units = (*t.at & 7) + 1U;
		bool any = kind != 15;

		if (!(*t.at & 128))
			return 0;
		t.at++;
		if (kind == 13 || kind == 14)
			line += signed_varint(t.at, t.end);
		else if (kind >= 10 && kind <= 12)
			line += kind - 10;
		end += 2L * units;
		if (offset < end)
			return any ? believed(line) : 0;
		while (t.at < t.end && !(*t.at & 128))
			t.at++;
	}
	return 0;
}

uint32_t python_line(unsigned int minor, const uint8_t *table, size_t bytes, int32_t first_line,
		     int32_t lasti)
{
	struct table t = {table, table + bytes};

	if (lasti < 0)
		return believed(first_line);
	if (minor < 10)
		return line_by_pairs(t, first_line, lasti);
	if (minor == 10)
		return line_by_ranges(t, first_line, 2LL * lasti);
	return line_by_entries(t, first_line, lasti);
}
