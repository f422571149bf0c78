/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * An op that another one calls while that one's call has not returned, and from no other Python
 * frame, is in the same calls of modules: those cannot have ended meanwhile.
 */
#include "collector/op_python.h"

#include "collector/compat.h"

#include <dlfcn.h>
#include <pthread.h>

static uintptr_t main_stack_end; /* 0: not known */

/* glibc's; without it the first thread walks each stack. */
void op_python__init(void)
{
	void *const *end = dlsym(RTLD_DEFAULT, "__libc_stack_end");

	main_stack_end = end ? (uintptr_t)*end : 0;
}

/*
 * Whether the record lies on the C stack above us: then the call that has it has not returned. A
 * thread's descriptor lies at the end of its stack; the first thread's stack has its end elsewhere.
 * Records of annotations made by Python lie on the heap.
 */
static bool is_on_stack(const void *record)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t end = (uintptr_t)pthread_self();

	if (end < here)
		end = main_stack_end;
	return (uintptr_t)record > here && (uintptr_t)record < end;
}

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
	const struct open_op *outer = t->depth && is_on_stack(op[-1].record) ? &op[-1] : NULL;
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
