/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Arrows from a forward op to its backward: both carry autograd's sequence number, which counts per
 * forward thread. Of several forward ops the last to begin counts, of several backward ones the
 * first to end, as in Kineto. PyTorch's thread numbers are not tids.
 */
#include "output/chrome.h"

#include <errno.h>

#include "base/banned.h"

static uint64_t key_of(const struct chrome *c, const struct tl_op *op, uint64_t thread)
{
	uint64_t process = c->t->threads.items[op->thread].process;

	return hash_mix((uint64_t)op->sequence_nr ^ hash_mix(thread ^ hash_mix(process + 1)));
}

static bool is_forward(const struct tl_op *op)
{
	return op->sequence_nr >= 0 && !op->forward_thread && op->thread_number &&
	       !(op->flags & GP_OP_ASYNC);
}

static bool is_backward(const struct tl_op *op)
{
	return op->sequence_nr >= 0 && op->forward_thread && !(op->flags & GP_OP_ASYNC);
}

static int add_forward(struct chrome *c, uint32_t i)
{
	const struct tl_op *op = &c->t->ops.items[i];
	uint64_t key = key_of(c, op, op->thread_number);
	const uint64_t *known = hash__find(&c->flow, key);

	if (known && c->t->ops.items[*known >> 32].start_ns > op->start_ns)
		return 0;
	return hash__set(&c->flow, key, (uint64_t)i << 32 | TL_NONE);
}

static void add_backward(struct chrome *c, uint32_t i)
{
	const struct tl_op *op = &c->t->ops.items[i], *other;
	uint64_t *known = hash__find(&c->flow, key_of(c, op, op->forward_thread));

	if (!known || c->t->ops.items[*known >> 32].start_ns > op->start_ns)
		return;
	if ((uint32_t)*known != TL_NONE) {
		other = &c->t->ops.items[(uint32_t)*known];
		if (other->end_ns <= op->end_ns)
			return;
	}
	*known = (*known >> 32) << 32 | i;
}

int chrome_flow_find(struct chrome *c)
{
	int err = 0;

	for (uint32_t i = 0; i < c->t->ops.nr && !err; i++)
		if (is_forward(&c->t->ops.items[i]))
			err = add_forward(c, i);
	for (uint32_t i = 0; i < c->t->ops.nr && !err && c->flow.nr; i++)
		if (is_backward(&c->t->ops.items[i]))
			add_backward(c, i);
	return err;
}

void chrome_flow_write(struct chrome *c, uint32_t i)
{
	const struct tl_op *op = &c->t->ops.items[i];
	bool forward = is_forward(op);
	const uint64_t *known;

	if (!c->flow.nr || (!forward && !is_backward(op)))
		return;
	known = hash__find(&c->flow,
			   key_of(c, op, forward ? op->thread_number : op->forward_thread));
	if (!known || (uint32_t)*known == TL_NONE ||
	    (forward ? (uint32_t)(*known >> 32) : (uint32_t)*known) != i)
		return;
	chrome_begin(c);
	if (forward)
		chrome_lit(&c->out, "{\"ph\":\"s\",\"id\":");
	else
		chrome_lit(&c->out, "{\"ph\":\"f\",\"bp\":\"e\",\"id\":");
	buf__u64(&c->out, (*known >> 32) + 1);
	chrome_lit(&c->out, ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\"");
	chrome_where(c, op->thread, op->start_ns);
	chrome_lit(&c->out, "}");
}
