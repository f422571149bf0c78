/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The processes of a capture: taken in, probed, and watched until they end, call exec or load
 * libraries. Their collectors are process_collector.c's.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "capture/private.h"
#include "capture/process/collector_policy.h"
#include "capture/symbols/python_code.h"
#include "inspect/program/python.h"
#include "inspect/program/versions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Who it is: for all recordings, those that are being written at once. */
static int describe_process(struct capture *c, struct traced_process *m)
{
	struct segment *const open[] = {c->segments.now, c->segments.closing};

	m->rank = target_process__environment_number(m->process, "RANK");
	m->world_size = target_process__environment_number(m->process, "WORLD_SIZE");
	if (!target_nccl_version(m->process, m->nccl_version, sizeof(m->nccl_version)))
		m->nccl_version[0] = '\0';
	for (int i = 0; i < 2; i++) {
		uint16_t number;
		int err;

		if (!open[i] || open[i]->broken)
			continue;
		err = capture_describe_process(m, open[i], &number);
		if (err == -ENOSPC && !recording_writer__error(open[i]->writer))
			continue;
		err = capture_note_error(c, open[i], err);
		if (err)
			return err;
	}
	return 0;
}

/* Finds the process's Python, where stacks are wanted. 0 or -errno with a reason: see
 * target_python_find(). */
static int find_python(struct capture *c, struct traced_process *m, struct reason *why)
{
	bool stacks = c->options.stacks & GP_STACK_WANT_PYTHON;
	struct target_python python;
	int err;

	if ((!stacks && !c->options.modules) || m->python)
		return 0;
	err = target_python_find(m->process, why, &python);
	if (err)
		return stacks ? err : 0;
	m->python = python_codes__new(&python);
	return m->python ? 0 : reason_set(why, -ENOMEM, "out of memory");
}

/* Has the kernel walk the stacks of a process that has been probed. 0 or -errno with a reason. */
static int walk_python(struct capture *c, struct traced_process *m, struct reason *why)
{
	const struct target_python *python;
	int err;

	if (!m->python || m->python_walked || probe_session__no_bpf(c->probes) ||
	    !(c->options.stacks & GP_STACK_WANT_PYTHON))
		return 0;
	python = python_codes__python(m->python);
	err = probe_session__set_python(c->probes, m->process, m->index, &python->walk,
					python->code_dealloc);
	m->python_walked = !err;
	return err ? reason_set(why, err, "cannot walk the stacks of %d: %s", (int)m->process->pid,
				strerror(-err))
		   : 0;
}

/* A program that is being started comes to its Python by and by. */
static void find_python_later(struct capture *c, struct traced_process *m)
{
	struct reason why = {0};
	int err = find_python(c, m, &why);

	err = err ? err : walk_python(c, m, &why);
	if (!err || err == -ENOENT || err == -EAGAIN || m->python_refused ||
	    traced_process__has_exited(m))
		return;
	m->python_refused = true;
	log_warn("no stacks: %s", why.text);
}

/* Tells the kernel where code lies now, and, the first time, reads the unwind tables of what nearly
 * every stack comes through. */
static void follow_code(struct capture *c, struct traced_process *m)
{
	static const char *const through[] = {"libtorch_cpu.so", "libtorch_python.so", "libpython3",
					      "python3", "libc.so"};
	int err;

	if (!(c->options.stacks & GP_STACK_WANT_NATIVE))
		return;
	err = probe_session__set_code(c->probes, m->index, m->process);
	if (err && !traced_process__has_exited(m))
		log_warn("%d: native stacks are not whole from now on: %s", (int)m->process->pid,
			 strerror(-err));
	for (size_t i = 0; i < sizeof(through) / sizeof(*through) && !m->code_known; i++)
		(void)probe_session__load_unwind_of(c->probes, m->index, through[i]);
	m->code_known = true;
}

int capture_probe_process(struct capture *c, struct traced_process *m, struct reason *why)
{
	bool callbacks = m->collector && collector_client__supports(m->collector, GP_FEATURE_OPS);
	uint32_t groups = callbacks ? 0 : PROBE_GROUP_OPS;

	m->callbacks |= callbacks;
	m->api_by_cupti = collector_policy_reports(m, GP_FEATURE_CUPTI);
	if (!m->memory_by_callback)
		groups |= PROBE_GROUP_MEMORY;
	if (c->options.gpu && !capture_samples(c) && !m->api_by_cupti)
		groups |= PROBE_GROUP_API;
	return probe_session__attach(c->probes, m->process, m->index, groups, why);
}

/* The same number may have been another process. */
static struct traced_process *find_process(const struct capture *c, pid_t pid)
{
	for (size_t i = 0; i < c->processes.nr; i++) {
		struct traced_process *m = c->processes.items[i];

		if (m->process->pid == pid && m->end != PROCESS_EXITED &&
		    !traced_process__has_exited(m))
			return m;
	}
	return NULL;
}

/* Makes the process a member. 0 or -errno with a reason. */
static int add_process(struct capture *c, pid_t pid, struct reason *why,
		       struct traced_process **ret_process)
{
	struct maps_moves moves =
		probe_session__maps_moves(c->probes, process_table__next(&c->processes));
	struct target_process *p;
	struct traced_process *m;
	int err;

	if (process_table__next(&c->processes) == GP_PROCESSES_MAX)
		return reason_set(why, -ENOSPC, "%d processes are watched, and no more can be",
				  GP_PROCESSES_MAX);
	err = target_process__new(pid, why, &p);
	if (err)
		return err;
	m = calloc(1, sizeof(*m));
	err = m ? traced_process__init(m, p, why) : -ENOMEM;
	if (err) {
		target_process__free(p);
		free(m);
		return err;
	}
	err = process_table__add(&c->processes, m);
	if (err) {
		traced_process__done(m);
		free(m);
		return err;
	}
	/* Counted on from whoever had the number before. */
	p->changes_nr = probe_session__maps_changes(c->probes, m->index);
	m->moves = moves;
	*ret_process = m;
	return 0;
}

/* Of one that cannot be probed after all nothing is left but its number. */
static void leave_out(struct capture *c, struct traced_process *m)
{
	if (m->collector)
		collector_policy_drop(c, m, false);
	probe_session__detach(c->probes, m->index, traced_process__has_exited(m));
	m->end = PROCESS_EXITED;
}

/* Before the collector is put in, which is to know. What `run` starts is no Python yet; of children
 * some are none at all. 0 or -errno with a reason. */
static int find_python_early(struct capture *c, struct traced_process *m, struct reason *why)
{
	int err = c->options.follow_exec ? 0 : find_python(c, m, why);

	if (err && capture_samples(c))
		log_warn("%d: no Python stacks: %s", (int)m->process->pid, why->text);
	return m->is_child || c->started || capture_samples(c) ? 0 : err;
}

int capture_join(struct capture *c, pid_t pid, bool is_child, struct reason *why)
{
	struct traced_process *m = NULL;
	int err;

	m = find_process(c, pid);
	if (m) {
		/* Of a child it was told twice: what was seen of it may be from before its exec. */
		m->renamed = m->maps_changed = is_child;
		return reason_set(why, -EEXIST, "%d was named twice", (int)pid);
	}
	err = add_process(c, pid, why, &m);
	if (err)
		return err;
	m->is_child = is_child;
	err = find_python_early(c, m, why);
	if (err) {
		leave_out(c, m);
		return err;
	}
	/* While events flow, what is probed in any case is probed before the collector's ring
	 * fills; what is wrong is told when the rest is. */
	if (c->started && !is_child)
		(void)probe_session__attach(c->probes, m->process, m->index, 0, NULL);
	/* A thread that has just been forked may be about to call exec, and locks that others held
	 * then are never given back to it: nothing is put in there. */
	if (!is_child || !c->started)
		collector_policy_inject(c, m, COLLECTOR_POLICY_ALL);
	/* Where CUDA brings the collector it may come any time, and so may what it tells of where
	 * it is all there is. */
	m->collector_refused = !c->options.invited && !m->collector && traced_process_has_cuda(m) &&
			       !probe_session__no_bpf(c->probes);
	capture_drain(c);
	if (collector_policy_was_all(c, m, why)) {
		leave_out(c, m);
		return -EPERM;
	}
	err = capture_probe_process(c, m, why);
	if (err >= 0 && (is_child || c->started))
		find_python_later(c, m);
	else if (err >= 0)
		err = walk_python(c, m, why);
	if (err < 0) {
		leave_out(c, m);
		return err;
	}
	/* What a child mapped between the look at it and the probes on its loader was not told. */
	m->maps_changed |= is_child;
	if (m->collector)
		probe_session__set_stack_tops(c->probes, m->index,
					      collector_client__stack_cache(m->collector));
	follow_code(c, m);
	return describe_process(c, m);
}

int capture__add(struct capture *c, pid_t pid, struct reason *why)
{
	int err = capture_join(c, pid, false, why);

	if (!err)
		capture_join_children(c, pid);
	return err;
}

/* After exec: who it is now. The probes of its new libraries follow. 0 or -errno with a reason. */
static int rename_process(struct capture *c, struct traced_process *m, struct reason *why)
{
	struct maps_moves moves = probe_session__maps_moves(c->probes, m->index);
	struct target_process *now;
	int err;

	err = target_process__new(m->process->pid, why, &now);
	if (err)
		return err;
	m->moves = moves;
	m->renamed = false;
	collector_policy_emit_missing(c, m);
	gpu_unavailable__forget(&c->gpu_unavailable, m->process->pid);
	if (m->collector)
		collector_policy_drop(c, m, true);
	target_process__free(m->process);
	m->process = now;
	/* Nothing of these has been probed: not even the loader, where there was none before. */
	m->libraries_changed = true;
	m->collector_refused = m->lack_emitted = false;
	m->collector_again_ns = m->collector_tries = 0;
	python_codes__free(TAKE(m->python));
	m->python_walked = false;
	m->code_known = false;
	follow_code(c, m);
	buf__clear(&m->schemas);
	if (!c->failed)
		(void)describe_process(c, m);
	return 0;
}

/* Whether what lies where it lay at the last look may have been away since then, and another thing
 * in its place. */
static bool may_have_been_away(const struct capture *c, const struct traced_process *m)
{
	struct maps_moves now = probe_session__maps_moves(c->probes, m->index);

	return now.adds - m->moves.adds >= 2 && now.removals - m->moves.removals >= 2;
}

/* 1 if libraries have changed since they were probed, 0 if not, or -errno with a reason. */
static int update_libraries(struct capture *c, struct traced_process *m, struct reason *why)
{
	uint32_t before = probe_session__maps_changes(c->probes, m->index), after;
	struct maps_moves moves = probe_session__maps_moves(c->probes, m->index);
	struct target_process *p = m->process;
	bool away;
	int err;

	p->changes_nr = UINT32_MAX;
	err = target_process__update_libraries(p, why);
	p->changes_nr = before;
	/* Those that were found now may have come as late as this; where nothing was found, none is
	 * known to be there still. */
	away = err < 0 || may_have_been_away(c, m);
	after = err < 0 ? UINT32_MAX : probe_session__maps_changes(c->probes, m->index);
	for (size_t i = 0; i < p->libraries_nr; i++)
		if (p->libraries[i].since == UINT32_MAX || away)
			p->libraries[i].since = after;
	if (err < 0)
		return err;
	m->moves = moves;
	m->libraries_changed = m->libraries_changed || err > 0;
	return m->libraries_changed;
}

void capture_look_at_code(struct capture *c, struct traced_process *m)
{
	struct reason why;

	if (m->process->changes_nr != probe_session__maps_changes(c->probes, m->index))
		(void)update_libraries(c, m, &why);
}

/* Libraries that came since: probed from now on. */
static void probe_anew(struct capture *c, struct traced_process *m)
{
	struct reason why = {0};
	bool reported = m->look_failed;
	int err;

	err = m->renamed ? rename_process(c, m, &why) : 0;
	err = err ? err : update_libraries(c, m, &why);
	m->maps_changed = false;
	if (err >= 0)
		follow_code(c, m);
	if (err > 0)
		err = capture_probe_process(c, m, &why);
	/* It is looked at again until that can be done, or it ends. */
	m->look_failed = err < 0;
	m->look_again_ns = clock_now_ns() + collector_policy_drain_deadline_ns(c, m);
	if (err >= 0)
		m->libraries_changed = false;
	if (err > 0)
		log_info("%d: %d probes more, in libraries that came since", (int)m->process->pid,
			 err);
	if (err >= 0)
		find_python_later(c, m);
	if (err < 0 && !reported && !traced_process__has_exited(m))
		log_warn("%d: new libraries cannot be probed: %s", (int)m->process->pid, why.text);
	probe_session__resume(c->probes, m->index);
	if (err >= 0)
		collector_policy_follow_libraries(c, m);
}

/* What went wrong with it, if anything did; gpuprof run says that of its child itself. */
static void emit_exit(const struct capture *c, const struct traced_process *m)
{
	char how[96] = "";

	if (c->options.invited)
		how[0] = '\0';
	else if (WIFSIGNALED(m->exit_status))
		(void)snprintf(how, sizeof(how), ", by signal %d (%s)", WTERMSIG(m->exit_status),
			       strsignal(WTERMSIG(m->exit_status)));
	else if (m->exit_status)
		(void)snprintf(how, sizeof(how), " with status %d", WEXITSTATUS(m->exit_status));
	log_at(m->is_child ? LOG_INFO : LOG_WARN, "%d (%s) has ended%s", (int)m->process->pid,
	       m->process->comm, how);
}

static void end_process(struct capture *c, struct traced_process *m)
{
	if (m->end == PROCESS_EXITED)
		emit_exit(c, m);
	else
		log_at(LOG_WARN, "%d (%s) runs another program now (exec): its capture has ended",
		       (int)m->process->pid, m->process->comm);
	collector_policy_emit_missing(c, m);
	if (m->collector)
		capture_stop_collector(c, m->collector, true);
	probe_session__detach(c->probes, m->index, m->end == PROCESS_EXITED);
}

/* Its end was dealt with before the rings were drained last: there is no event of it any more. */
static bool is_over(const struct traced_process *m)
{
	return m->end == PROCESS_EXITED;
}

static void forget_process(struct traced_process *m, void *arg)
{
	struct capture *c = arg;

	cost_forget(c, m);
	if (m->collector)
		collector_policy_drop(c, m, true);
	if (m->had_collector) {
		names__forget(&c->names, SOURCE_COLLECTOR(m->serial));
		inputs_ids__forget(&c->inputs, SOURCE_COLLECTOR(m->serial));
		stacks__forget(&c->stacks, SOURCE_COLLECTOR(m->serial));
	}
	c->gone_callbacks_nr += m->callbacks;
	traced_process__done(m);
	free(m);
}

static void follow_collector(struct capture *c, struct traced_process *m)
{
	collector_policy_follow_cupti(c, m);
	collector_policy_follow_memory(c, m);
}

/* Whether its libraries are to be looked at: it was told, or would have been but for a full ring.
 * Where no probe tells they are looked for. */
static bool is_to_be_looked_at(const struct capture *c, const struct traced_process *m)
{
	if (m->maps_changed)
		return true;
	if (m->look_failed || probe_session__no_bpf(c->probes))
		return clock_now_ns() >= m->look_again_ns;
	return m->libraries_changed ||
	       m->process->changes_nr != probe_session__maps_changes(c->probes, m->index);
}

/* How many of those that were added are still there. */
int capture_poll_processes(struct capture *c)
{
	int here = 0;

	if (!c->failed)
		process_table__sweep(&c->processes, is_over, forget_process, c);
	for (size_t i = 0; i < c->processes.nr; i++) {
		struct traced_process *m = c->processes.items[i];
		bool was_here = m->end != PROCESS_EXITED;

		if (was_here && traced_process__has_exited(m)) {
			capture_drain(c);
			if (!m->exec_emitted) {
				m->end = m->end ? m->end : PROCESS_EXITED;
				end_process(c, m);
			}
			m->end = PROCESS_EXITED;
			traced_process__shed(m);
			continue;
		}
		if (!m->end && probe_session__no_bpf(c->probes) &&
		    target_process__has_execed(m->process))
			traced_process__note_exec(m, c->options.follow_exec || c->options.children);
		if (m->end == PROCESS_EXECED && !m->exec_emitted) {
			m->exec_emitted = true;
			end_process(c, m);
		} else if (!m->end && is_to_be_looked_at(c, m)) {
			probe_anew(c, m);
		} else if (!m->end) {
			collector_policy_poll(c, m);
		}
		if (!m->end && m->collector)
			follow_collector(c, m);
		here += !m->end && !m->is_child;
	}
	if (here)
		capture_poll_children(c);
	return here;
}
