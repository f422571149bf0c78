/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The innermost frame runs on between two ops, so it is compared by identity only.
 */
#include "collector/python/python_calls.h"

#include "collector/python/python_read.h"
#include "collector/runtime/compat.h"

#include <string.h>

/* A bound on frames, Python's and others. */
#define WALK_MAX (2 * GP_STACK_FRAMES)

/* Hashes where the frame waits, and its variables. False: it cannot be read. */
static inline __attribute__((always_inline)) bool
hash_around(const struct gp_python *py, const struct python_call *call, uint64_t instr,
	    enum python_reads reads, uint64_t *ret_hash)
{
	uint64_t hash = gp_python_mix(0, py->is_index ? (uint32_t)instr : instr);

	if (!python_add_variables(py, call->frame, call->code, reads, &hash))
		return false;
	*ret_hash = hash;
	return true;
}

static inline __attribute__((always_inline)) bool
walk(const struct gp_python *py, uint64_t frame, enum python_reads reads, struct python_calls *c)
{
	uint64_t copy[GP_PYTHON_FRAME_BYTES / 8];
	const unsigned char *at;

	for (int i = 0; frame; i++) {
		struct python_call call = {.frame = frame};

		at = read_target(reads, frame + py->frame_at, py->frame_bytes, copy);
		if (!at)
			return false;
		frame = field(at, py->frame_back);
		if (i < WALK_MAX && !is_function(py, at))
			continue;
		if (i == WALK_MAX || c->nr == GP_STACK_FRAMES) {
			c->nr = 0;
			return true;
		}
		call.code = field(at, py->frame_code) & py->code_mask;
		if (c->nr &&
		    !hash_around(py, &call, field(at, py->frame_instr), reads, &call.around))
			return false;
		c->calls[GP_STACK_FRAMES - ++c->nr] = call;
	}
	return true;
}

bool python_calls(const struct gp_python *py, uint64_t frame, enum python_reads reads,
		  struct python_calls *ret_calls)
{
	bool whole;

	ret_calls->nr = 0;
	whole = reads == PYTHON_CHECKED ? walk(py, frame, PYTHON_CHECKED, ret_calls)
					: walk(py, frame, PYTHON_PLAIN, ret_calls);
	if (!whole)
		ret_calls->nr = 0;
	ret_calls->at = GP_STACK_FRAMES - ret_calls->nr;
	return whole;
}

uint32_t python_calls_same(const struct python_calls *a, const struct python_calls *b)
{
	uint32_t same = 0;

	while (same < a->nr && same < b->nr) {
		const struct python_call *x = &a->calls[a->at + same];
		const struct python_call *y = &b->calls[b->at + same];

		if (x->frame != y->frame || x->code != y->code)
			break;
		same++;
		/* Calls inside of one that differs, or of the innermost one, are not shared. */
		if (x->around != y->around)
			break;
	}
	return same;
}

bool python_calls_equal(const struct python_calls *a, const struct python_calls *b)
{
	return a->nr == b->nr &&
	       !memcmp(a->calls + a->at, b->calls + b->at, a->nr * sizeof(a->calls[0]));
}
