/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * An op that another one calls while that one's call has not returned, and from no other Python
 * frame, is in the same calls of modules: those cannot have ended meanwhile.
 */
#include "collector/op_python.h"

#include "collector/compat.h"

/* Opens the calls that were found and are not open yet. */
static void follow_modules(struct thread_state *t, struct ring_writer *w, struct names *names)
{
	struct thread_modules *m = &t->modules;

	for (uint32_t i = modules__keep(m, w); i < m->found.nr; i++) {
		const struct python_module *call = &m->found.calls[m->found.nr - 1 - i];
		const char *type = (const char *)(uintptr_t)call->type;

		modules__open(m, call, thread_state__name_id(t, names, w, type));
	}
}

void op_python__take(struct stacks *k, struct ring_writer *w, struct thread_state *t,
		     struct names *names)
{
	struct open_op *op = &t->open[t->depth];
	const struct open_op *outer =
		t->depth && thread_is_on_stack(op[-1].record) ? &op[-1] : NULL;
	struct thread_modules *m = &t->modules;

	m->found.nr = 0;
	op->stack = stacks__take(k, w, &t->stack, outer ? &outer->stack : NULL,
				 names ? &m->found : NULL);
	if (outer && outer->stack.frame && outer->stack.frame == op->stack.frame)
		modules__cut(m, w, outer->modules_nr);
	else
		follow_modules(t, w, names);
	op->modules_nr = m->nr;
}
