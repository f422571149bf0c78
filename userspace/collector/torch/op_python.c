/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * An op that another op calls, while that op's call has not returned and from the same Python
 * frame, is inside the same module calls and Python calls: they cannot have ended meanwhile.
 */
#include "collector/torch/op_python.h"

#include "collector/runtime/compat.h"

/* Opens the module calls that the walk found and that are not open yet. Returns the frame of the
 * outermost call that has ended; 0: none. */
static uint64_t follow_modules(struct thread_state *t, struct ring_writer *w, struct names *names)
{
	struct thread_modules *m = &t->modules;
	uint32_t open_nr = m->nr, same_nr = modules__keep(m, w);
	uint64_t over = same_nr < open_nr ? m->open[same_nr].frame : 0;

	for (uint32_t i = same_nr; i < m->found.nr; i++) {
		const struct python_module *call = &m->found.calls[m->found.nr - 1 - i];
		const char *type = (const char *)(uintptr_t)call->type;

		modules__open(m, call, thread_state__name_id(t, names, w, type));
	}
	return over;
}

/* Compares the Python calls with those of the last op. `over` is the frame of a module call that
 * has ended: calls from there inwards are new, even if they look the same. */
static void follow_calls(struct stacks *k, struct thread_state *t, struct open_op *op,
			 uint64_t over)
{
	uint32_t same_nr = 0;
	const struct python_calls *calls = stacks__calls(k, &t->stack, &op->stack, &same_nr);

	if (!calls)
		return;
	for (uint32_t i = 0; over && i < same_nr; i++)
		if (calls->calls[calls->at + i].frame == over)
			same_nr = i;
	op->calls_nr = calls->nr;
	op->same_calls = same_nr + 1;
}

/* Takes over the calls of the op around it, and has the next op compared with those. */
static void take_calls(struct thread_state *t, struct open_op *op, const struct open_op *outer)
{
	struct python_calls *calls = &t->stack.calls[t->stack.calls_now];

	if (!outer->calls_nr || calls->nr < outer->calls_nr)
		return;
	calls->nr = outer->calls_nr;
	op->calls_nr = outer->calls_nr;
	op->same_calls = outer->calls_nr + 1;
}

void op_python__take(struct stacks *k, struct ring_writer *w, struct thread_state *t,
		     struct names *names)
{
	struct open_op *op = &t->open[t->depth];
	const struct open_op *outer =
		t->depth && thread_is_on_stack(op[-1].record) ? &op[-1] : NULL;
	struct thread_modules *m = &t->modules;

	m->found.nr = 0;
	op->calls_nr = 0;
	op->same_calls = 0;
	op->stack = stacks__take(k, w, &t->stack, outer ? &outer->stack : NULL,
				 names ? &m->found : NULL);
	if (outer && outer->stack.frame && outer->stack.frame == op->stack.frame) {
		modules__cut(m, w, outer->modules_nr);
		take_calls(t, op, outer);
	} else {
		follow_calls(k, t, op, follow_modules(t, w, names));
	}
	op->modules_nr = m->nr;
}
