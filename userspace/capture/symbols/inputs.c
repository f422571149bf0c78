/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One numbering of inputs. Two lists with the same 64-bit hash would share a number: with the tens
 * of thousands of a capture the odds are below one in 10^9.
 */
#include "capture/symbols/inputs.h"

#include <errno.h>
#include <string.h>

/* More lists than this in one capture, or longer ones together, are not told apart any more: the op
 * has none, and that is counted. */
#define LISTS_MAX 1000000
#define BYTES_MAX (64U << 20)

static int keep_list(struct inputs_ids *n, const struct gp_ev_inputs *ev, size_t bytes)
{
	struct gp_ev_inputs head = *ev;
	size_t at = n->events.nr;

	head.inputs_id = (uint32_t)n->lists.nr + 1;
	buf__add(&n->events, &head, sizeof(head));
	buf__add(&n->events, ev + 1, bytes - sizeof(head));
	return buf__error(&n->events) ? -ENOMEM : vec_push(&n->lists, at);
}

int inputs_ids__add(struct inputs_ids *n, uint32_t source, const struct gp_ev_inputs *ev,
		    size_t bytes)
{
	uint64_t content, *known;
	uint32_t number;
	int err = 0;

	if (bytes < sizeof(*ev) || bytes % 8 || bytes > sizeof(*ev) + GP_INPUTS_BYTES_MAX ||
	    ev->bytes > bytes - sizeof(*ev))
		return 0;
	content = hash_bytes(ev + 1, ev->bytes);
	known = hash__find(&n->by_content, content);
	if (!known && (n->lists.nr >= LISTS_MAX || n->events.nr + bytes > BYTES_MAX))
		return 0;
	number = known ? (uint32_t)*known : (uint32_t)n->lists.nr + 1;
	if (!known)
		err = keep_list(n, ev, bytes);
	if (!err && !known)
		err = hash__set(&n->by_content, content, number);
	return err ? err : hash__set(&n->by_source, source_key(source, ev->inputs_id), number);
}

int inputs_ids__emit(const struct inputs_ids *n, struct segment *to, uint32_t number)
{
	size_t at, end;
	int err;

	if (!number || number > n->lists.nr || bits__has(&to->inputs, number))
		return 0;
	at = n->lists.items[number - 1];
	end = number < n->lists.nr ? n->lists.items[number] : n->events.nr;
	err = bits__set(&to->inputs, number);
	return err ? err : recording_writer__event(to->writer, n->events.bytes + at, end - at);
}

uint32_t inputs_ids__find(const struct inputs_ids *n, uint32_t source, uint32_t id)
{
	uint64_t *number = hash__find(&n->by_source, source_key(source, id));

	return number ? (uint32_t)*number : 0;
}

void inputs_ids__forget(struct inputs_ids *n, uint32_t source)
{
	hash__delete_high(&n->by_source, source);
}

void inputs_ids__done(struct inputs_ids *n)
{
	hash__done(&n->by_content);
	hash__done(&n->by_source);
	vec_done(&n->lists);
	buf__done(&n->events);
}
