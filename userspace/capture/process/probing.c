/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Puts probes into one traced process, and finds its Python and its code.
 */
#include "capture/process/probing.h"

#include "base/log.h"
#include "capture/symbols/python_code.h"
#include "inspect/program/python.h"

#include <errno.h>
#include <string.h>

/* Finds the process's Python, where stacks are wanted. 0 or -errno with a reason: see
 * target_python_find(). */
static int find_python(struct process_set *s, struct traced_process *m, struct reason *why)
{
	bool stacks = s->options->stacks & GP_STACK_WANT_PYTHON;
	struct target_python python;
	int err;

	if ((!stacks && !s->options->modules) || m->python)
		return 0;
	err = target_python_find(m->process, why, &python);
	if (err)
		return stacks ? err : 0;
	m->python = python_codes__new(&python);
	return m->python ? 0 : reason_set(why, -ENOMEM, "out of memory");
}

/* Has the kernel walk the stacks of a process that has been probed. 0 or -errno with a reason. */
int probing_walk_python(struct process_set *s, struct traced_process *m, struct reason *why)
{
	const struct target_python *python;
	int err;

	if (!m->python || m->python_walked || probe_session__no_bpf(s->probes) ||
	    !(s->options->stacks & GP_STACK_WANT_PYTHON))
		return 0;
	python = python_codes__python(m->python);
	err = probe_session__set_python(s->probes, m->process, m->index, &python->walk,
					python->code_dealloc);
	m->python_walked = !err;
	return err ? reason_set(why, err, "cannot walk the stacks of %d: %s", (int)m->process->pid,
				strerror(-err))
		   : 0;
}

/* A program that is being started comes to its Python by and by. */
void probing_find_python_later(struct process_set *s, struct traced_process *m)
{
	struct reason why = {0};
	int err = find_python(s, m, &why);

	err = err ? err : probing_walk_python(s, m, &why);
	if (!err || err == -ENOENT || err == -EAGAIN || m->python_refused ||
	    traced_process__has_exited(m))
		return;
	m->python_refused = true;
	log_warn("no stacks: %s", why.text);
}

/* Tells the kernel where code lies now, and, the first time, reads the unwind tables of what nearly
 * every stack comes through. */
void probing_follow_code(struct process_set *s, struct traced_process *m)
{
	static const char *const through[] = {"libtorch_cpu.so", "libtorch_python.so", "libpython3",
					      "python3", "libc.so"};
	int err;

	if (!(s->options->stacks & GP_STACK_WANT_NATIVE))
		return;
	err = probe_session__set_code(s->probes, m->index, m->process);
	if (err && !traced_process__has_exited(m))
		log_warn("%d: native stacks are not whole from now on: %s", (int)m->process->pid,
			 strerror(-err));
	for (size_t i = 0; i < sizeof(through) / sizeof(*through) && !m->code_known; i++)
		(void)probe_session__load_unwind_of(s->probes, m->index, through[i]);
	m->code_known = true;
}

int probing_attach(struct process_set *s, struct traced_process *m, struct reason *why)
{
	bool callbacks = m->collector && collector_client__supports(m->collector, GP_FEATURE_OPS);
	uint32_t groups = callbacks ? 0 : PROBE_GROUP_OPS;

	m->state.callbacks |= callbacks;
	m->state.api_by_cupti = traced_process__reports(m, GP_FEATURE_CUPTI);
	if (!m->state.memory_by_callback)
		groups |= PROBE_GROUP_MEMORY;
	if (s->options->gpu && !capture_samples(s->options) && !m->state.api_by_cupti)
		groups |= PROBE_GROUP_API;
	return probe_session__attach(s->probes, m->process, m->index, groups, why);
}

/* Before the collector is put in, which is to know. What `run` starts is no Python yet; of children
 * some are none at all. 0 or -errno with a reason. */
int probing_find_python_early(struct process_set *s, struct traced_process *m, struct reason *why)
{
	int err = s->options->follow_exec ? 0 : find_python(s, m, why);

	if (err && capture_samples(s->options))
		log_warn("%d: no Python stacks: %s", (int)m->process->pid, why->text);
	return m->is_child || s->run->started || capture_samples(s->options) ? 0 : err;
}

/* Whether what lies where it lay at the last look may have been away since then, and another thing
 * in its place. */
static bool may_have_been_away(const struct process_set *s, const struct traced_process *m)
{
	struct maps_moves now = probe_session__maps_moves(s->probes, m->index);

	return now.adds - m->maps.moves.adds >= 2 && now.removals - m->maps.moves.removals >= 2;
}

/* 1 if libraries have changed since they were probed, 0 if not, or -errno with a reason. */
int probing_update_libraries(struct process_set *s, struct traced_process *m, struct reason *why)
{
	uint32_t before = probe_session__maps_changes(s->probes, m->index), after;
	struct maps_moves moves = probe_session__maps_moves(s->probes, m->index);
	struct target_process *p = m->process;
	bool away;
	int err;

	p->changes_nr = UINT32_MAX;
	err = target_process__update_libraries(p, why);
	p->changes_nr = before;
	/* Those that were found now may have come as late as this; where nothing was found, none is
	 * known to be there still. */
	away = err < 0 || may_have_been_away(s, m);
	after = err < 0 ? UINT32_MAX : probe_session__maps_changes(s->probes, m->index);
	for (size_t i = 0; i < p->libraries_nr; i++)
		if (p->libraries[i].since == UINT32_MAX || away)
			p->libraries[i].since = after;
	if (err < 0)
		return err;
	m->maps.moves = moves;
	m->maps.libraries_changed = m->maps.libraries_changed || err > 0;
	return m->maps.libraries_changed;
}

void probing_follow_maps(struct process_set *s, struct traced_process *m)
{
	struct reason why;

	if (m->process->changes_nr != probe_session__maps_changes(s->probes, m->index))
		(void)probing_update_libraries(s, m, &why);
}
