/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One numbering of inputs. Two lists with the same 64-bit hash would share a number: with the tens
 * of thousands of a capture the odds are below one in 10^9.
 */
#include "capture/inputs.h"

#include <errno.h>
#include <string.h>

/* More lists than this in one capture are not told apart any more: the op has none, and that is
 * counted. */
#define LISTS_MAX 1000000

static uint64_t source_key(uint32_t source, uint32_t id)
{
	return (uint64_t)source << 32 | id;
}

static int write_list(struct recording_writer *w, struct recording_writer *also,
		      const struct gp_ev_inputs *ev, size_t bytes, uint32_t number)
{
	uint64_t words[(sizeof(*ev) + GP_INPUTS_BYTES_MAX) / 8];
	struct gp_ev_inputs *out = (struct gp_ev_inputs *)words;

	int err;

	memcpy(words, ev, bytes);
	out->inputs_id = number;
	err = recording_writer__event(w, words, bytes);
	return err || !also ? err : recording_writer__event(also, words, bytes);
}

int inputs_ids__add(struct inputs_ids *n, struct recording_writer *w, struct recording_writer *also,
		    uint32_t source, const struct gp_ev_inputs *ev, size_t bytes)
{
	uint64_t content, *known;
	uint32_t number;
	int err = 0;

	if (bytes < sizeof(*ev) || bytes > sizeof(*ev) + GP_INPUTS_BYTES_MAX ||
	    ev->bytes > bytes - sizeof(*ev))
		return 0;
	content = hash_bytes(ev + 1, ev->bytes);
	known = hash__find(&n->by_content, content);
	if (!known && n->nr >= LISTS_MAX)
		return 0;
	number = known ? (uint32_t)*known : n->nr + 1;
	if (!known)
		err = write_list(w, also, ev, bytes, number);
	if (!err && !known)
		err = hash__set(&n->by_content, content, number);
	if (err)
		return err;
	n->nr = number > n->nr ? number : n->nr;
	return hash__set(&n->by_source, source_key(source, ev->inputs_id), number);
}

uint32_t inputs_ids__find(const struct inputs_ids *n, uint32_t source, uint32_t id)
{
	uint64_t *number = hash__find(&n->by_source, source_key(source, id));

	return number ? (uint32_t)*number : 0;
}

void inputs_ids__done(struct inputs_ids *n)
{
	hash__done(&n->by_content);
	hash__done(&n->by_source);
}
