/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A call's end is stored with the innermost open call only. When a call is over, its caller takes
 * over what it has seen.
 */
#include "collector/python/modules.h"

#include "collector/runtime/compat.h"

static void write_call(struct ring_writer *w, const struct module_call *c, uint32_t tid,
		       uint32_t depth)
{
	const struct gp_ev_module_call ev = {
		.head = {.kind = GP_EV_MODULE_CALL,
			 .tid = tid,
			 .time_ns = c->end_ns > c->start_ns ? c->end_ns : c->start_ns},
		.start_ns = c->start_ns,
		.first = c->first,
		.last = c->last,
		.object = c->object,
		.name_id = c->name_id,
		.depth = depth,
	};

	(void)ring_writer__write(w, &ev, sizeof(ev));
}

void modules__cut(struct thread_modules *m, struct ring_writer *w, uint32_t nr)
{
	while (m->nr > nr) {
		const struct module_call *c = &m->open[--m->nr];

		if (m->nr) {
			struct module_call *around = &m->open[m->nr - 1];

			if (around->end_ns < c->end_ns)
				around->end_ns = c->end_ns;
			if (around->last < c->last)
				around->last = c->last;
		}
		/* A call in which no op began has no times, so it makes no event. */
		if (c->first)
			write_call(w, c, m->tid, m->nr);
	}
}

void modules__leave(struct thread_modules *m, struct ring_writer *w, uint32_t epoch)
{
	if (m->epoch == epoch)
		modules__cut(m, w, 0);
	m->nr = 0;
}

uint32_t modules__keep(struct thread_modules *m, struct ring_writer *w)
{
	const struct python_modules *found = &m->found;
	uint32_t same = 0;

	while (same < m->nr && same < found->nr) {
		const struct python_module *now = &found->calls[found->nr - 1 - same];
		const struct module_call *open = &m->open[same];

		if (now->frame != open->frame || now->object != open->object ||
		    now->call != open->call)
			break;
		same++;
	}
	modules__cut(m, w, same);
	return same;
}

void modules__open(struct thread_modules *m, const struct python_module *found, uint32_t name_id)
{
	m->open[m->nr++] = (struct module_call){
		.frame = found->frame,
		.call = found->call,
		.object = found->object,
		.name_id = name_id,
	};
}

void modules__begin(struct thread_modules *m, uint64_t instance, uint64_t start_ns)
{
	for (uint32_t i = m->nr; i-- > 0 && !m->open[i].first;) {
		m->open[i].first = instance;
		m->open[i].start_ns = start_ns;
	}
	if (m->nr)
		m->open[m->nr - 1].last = instance;
}

void modules__end(struct thread_modules *m, uint32_t nr, uint64_t end_ns)
{
	if (nr && nr <= m->nr)
		m->open[nr - 1].end_ns = end_ns;
}
