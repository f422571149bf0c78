/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The tables of a capture, begun, trimmed and freed together.
 */
#include "capture/symbols/symbol_tables.h"

int symbol_tables__init(struct symbol_tables *t, const struct segments *segments,
			const struct capture_options *options)
{
	t->native_stacks.ops.names = capture_samples(options) ? &t->names : NULL;
	return stacks__init(&t->stacks, segments, &t->names);
}

/* Hardly two samples have the same stack: those of earlier recordings would fill the memory. */
static int poll_stacks(struct symbol_tables *t)
{
	int err = native_stacks__release(&t->native_stacks, &t->stacks, 0);

	stacks__poll(&t->stacks);
	return err;
}

int symbol_tables__poll(struct symbol_tables *t, const struct file_users *users,
			const struct capture_options *options)
{
	native_stacks__poll(&t->native_stacks, users);
	kernels__poll(&t->kernels, users);
	return capture_samples(options) ? poll_stacks(t) : 0;
}

void symbol_tables__forget(struct symbol_tables *t, uint32_t source)
{
	names__forget(&t->names, source);
	inputs_ids__forget(&t->inputs, source);
	stacks__forget(&t->stacks, source);
}

void symbol_tables__done(struct symbol_tables *t)
{
	names__done(&t->names);
	inputs_ids__done(&t->inputs);
	stacks__done(&t->stacks);
	native_stacks__done(&t->native_stacks);
	kernels__done(&t->kernels);
}
