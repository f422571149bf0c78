/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Differences are taken word by word, of 8 bytes. The lowest byte of the first word is the kind.
 * Two events of a kind have none in that byte, so the kind itself is stored there: the reader sees
 * which event to add to.
 */
#include "recording/delta.h"

#include "recording/format.h"
#include "wire.h"

#include <errno.h>
#include <string.h>

#define KINDS	  256
#define KIND_MASK 255U
#define WORD	  sizeof(uint64_t)

struct last {
	const uint64_t *words;
	size_t nr;
};

/* Counts the words that an event of `nr` words has in common with the last one of its kind. */
static size_t in_common(const struct last *last, size_t nr)
{
	return nr < last->nr ? nr : last->nr;
}

static void encode_one(const uint64_t *event, size_t nr, struct last *lasts, uint64_t *to)
{
	uint64_t kind = event[0] & KIND_MASK;
	struct last *last = &lasts[kind];
	size_t common = in_common(last, nr);

	for (size_t i = 0; i < common; i++)
		to[i] = event[i] - last->words[i];
	memcpy(to + common, event + common, (nr - common) * WORD);
	if (common)
		to[0] += kind;
	*last = (struct last){event, nr};
}

static void decode_one(uint64_t *event, size_t nr, struct last *lasts)
{
	uint64_t kind = event[0] & KIND_MASK;
	struct last *last = &lasts[kind];
	size_t common = in_common(last, nr);

	if (common)
		event[0] -= kind;
	for (size_t i = 0; i < common; i++)
		event[i] += last->words[i];
	*last = (struct last){event, nr};
}

void delta_encode(const uint8_t *events, size_t bytes, uint8_t *to)
{
	struct last lasts[KINDS] = {0};

	for (size_t at = 0; at < bytes;) {
		struct format_run run;

		memcpy(&run, events + at, sizeof(run));
		memcpy(to + at, &run, sizeof(run));
		at += sizeof(run);
		for (uint32_t i = 0; i < run.nr; i++, at += run.bytes)
			encode_one((const void *)(events + at), run.bytes / WORD, lasts,
				   (void *)(to + at));
	}
}

int delta_decode(uint8_t *events, size_t bytes)
{
	struct last lasts[KINDS] = {0};

	for (size_t at = 0; at < bytes;) {
		struct format_run run;

		if (bytes - at < sizeof(run))
			return -EBADMSG;
		memcpy(&run, events + at, sizeof(run));
		at += sizeof(run);
		if (run.bytes < sizeof(struct gp_ev_head) || run.bytes % WORD || !run.nr ||
		    run.nr > (bytes - at) / run.bytes)
			return -EBADMSG;
		for (uint32_t i = 0; i < run.nr; i++, at += run.bytes)
			decode_one((void *)(events + at), run.bytes / WORD, lasts);
	}
	return 0;
}
