/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Processes join, are probed, and are watched until they end, call exec or load libraries; so are
 * their children, where they are wanted. The kernel reports each fork; a child from before the
 * kernel knew of its parent is found in /proc. A child runs a little before it is probed: what it
 * did until then is lost, and such children are counted.
 */
#include "capture/process/process_set.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "capture/process/collector_policy.h"
#include "capture/process/probing.h"
#include "capture/process/process_record.h"
#include "capture/symbols/python_code.h"
#include "common/clock.h"
#include "inspect/process/scan.h"
#include "inspect/program/versions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define BORN_MAX 65536

/* Who it is: for all recordings, those that are being written at once. */
static int describe_process(struct process_set *s, struct traced_process *m)
{
	struct segment *const open[] = {s->recordings->segments.current,
					s->recordings->segments.draining};

	m->job.rank = target_process__environment_number(m->process, "RANK");
	m->job.world_size = target_process__environment_number(m->process, "WORLD_SIZE");
	if (!target_nccl_version(m->process, m->job.nccl_version, sizeof(m->job.nccl_version)))
		m->job.nccl_version[0] = '\0';
	for (int i = 0; i < 2; i++) {
		uint16_t number;
		int err;

		if (!open[i] || open[i]->broken)
			continue;
		err = process_record__describe(m, open[i], &number);
		if (err == -ENOSPC && !recording_writer__error(open[i]->writer))
			continue;
		err = recording_set__note_error(s->recordings, open[i], err);
		if (err)
			return err;
	}
	return 0;
}

/* The same number may have been another process. */
static struct traced_process *find_process(const struct process_set *s, pid_t pid)
{
	for (size_t i = 0; i < s->table.nr; i++) {
		struct traced_process *m = s->table.items[i];

		if (m->process->pid == pid && m->end != PROCESS_EXITED &&
		    !traced_process__has_exited(m))
			return m;
	}
	return NULL;
}

/* Makes the process a member. 0 or -errno with a reason. */
static int add_process(struct process_set *s, pid_t pid, struct reason *why,
		       struct traced_process **ret_process)
{
	struct maps_moves moves =
		probe_session__maps_moves(s->probes, process_table__next(&s->table));
	struct target_process *p;
	struct traced_process *m;
	int err;

	if (process_table__next(&s->table) == GP_PROCESSES_MAX)
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
	err = process_table__add(&s->table, m);
	if (err) {
		traced_process__done(m);
		free(m);
		return err;
	}
	/* Counted on from whoever had the number before. */
	p->changes_nr = probe_session__maps_changes(s->probes, m->index);
	m->maps.moves = moves;
	*ret_process = m;
	return 0;
}

/* Of one that cannot be probed after all nothing is left but its number. */
static void leave_out(struct process_set *s, struct traced_process *m)
{
	if (m->collector)
		collector_policy_drop(s, m, false);
	probe_session__detach(s->probes, m->index, traced_process__has_exited(m));
	m->end = PROCESS_EXITED;
}

int process_set__join(struct process_set *s, pid_t pid, bool is_child, struct reason *why)
{
	struct traced_process *m = NULL;
	int err;

	m = find_process(s, pid);
	if (m) {
		/* A child that was reported twice: what is known of it may be from before its exec.
		 */
		m->renamed = m->maps.changed = is_child;
		return reason_set(why, -EEXIST, "%d was named twice", (int)pid);
	}
	err = add_process(s, pid, why, &m);
	if (err)
		return err;
	m->is_child = is_child;
	err = probing_find_python_early(s, m, why);
	if (err) {
		leave_out(s, m);
		return err;
	}
	/* While events flow, what is probed in any case is probed before the collector's ring
	 * fills; errors are reported with those of the rest. */
	if (s->run->started && !is_child)
		(void)probe_session__attach(s->probes, m->process, m->index, 0, NULL);
	/* A thread that has just been forked may be about to call exec, and locks that others held
	 * then are never given back to it: nothing is put in there. */
	if (!is_child || !s->run->started)
		collector_policy_inject(s, m, COLLECTOR_POLICY_ALL);
	/* Where CUDA loads the collector that may happen any time, and so may its events where
	 * there are no probes. */
	m->state.refused = !s->options->invited && !m->collector && traced_process__has_cuda(m) &&
			   !probe_session__no_bpf(s->probes);
	s->drain.drain(s->drain.arg);
	if (collector_policy_was_all(s, m, why)) {
		leave_out(s, m);
		return -EPERM;
	}
	err = probing_attach(s, m, why);
	if (err >= 0 && (is_child || s->run->started))
		probing_find_python_later(s, m);
	else if (err >= 0)
		err = probing_walk_python(s, m, why);
	if (err < 0) {
		leave_out(s, m);
		return err;
	}
	/* No event reports what a child mapped before its loader was probed. */
	m->maps.changed |= is_child;
	if (m->collector)
		probe_session__set_stack_tops(s->probes, m->index,
					      collector_client__stack_cache(m->collector));
	probing_follow_code(s, m);
	return describe_process(s, m);
}

/* After exec: who it is now. The probes of its new libraries follow. 0 or -errno with a reason. */
static int rename_process(struct process_set *s, struct traced_process *m, struct reason *why)
{
	struct maps_moves moves = probe_session__maps_moves(s->probes, m->index);
	struct target_process *now;
	int err;

	err = target_process__new(m->process->pid, why, &now);
	if (err)
		return err;
	m->maps.moves = moves;
	m->renamed = false;
	collector_policy_emit_missing(s, m);
	gpu_unavailable__forget(&s->gpu_unavailable, m->process->pid);
	if (m->collector)
		collector_policy_drop(s, m, true);
	target_process__free(m->process);
	m->process = now;
	/* Nothing of these has been probed: not even the loader, where there was none before. */
	m->maps.libraries_changed = true;
	m->state.refused = m->state.lack_logged = false;
	m->state.again_ns = m->state.tries = 0;
	python_codes__free(TAKE(m->python));
	m->python_walked = false;
	m->code_known = false;
	probing_follow_code(s, m);
	buf__clear(&m->schemas);
	if (!s->run->failed)
		(void)describe_process(s, m);
	return 0;
}

/* Libraries that came since: probed from now on. */
static void probe_anew(struct process_set *s, struct traced_process *m)
{
	struct reason why = {0};
	bool reported = m->maps.failed;
	int err;

	err = m->renamed ? rename_process(s, m, &why) : 0;
	err = err ? err : probing_update_libraries(s, m, &why);
	m->maps.changed = false;
	if (err >= 0)
		probing_follow_code(s, m);
	if (err > 0)
		err = probing_attach(s, m, &why);
	/* It is looked at again until that can be done, or it ends. */
	m->maps.failed = err < 0;
	m->maps.again_ns = clock_now_ns() + collector_policy_drain_deadline_ns(s, m);
	if (err >= 0)
		m->maps.libraries_changed = false;
	if (err > 0)
		log_info("%d: %d probes more, in libraries that came since", (int)m->process->pid,
			 err);
	if (err >= 0)
		probing_find_python_later(s, m);
	if (err < 0 && !reported && !traced_process__has_exited(m))
		log_warn("%d: new libraries cannot be probed: %s", (int)m->process->pid, why.text);
	probe_session__resume(s->probes, m->index);
	if (err >= 0)
		collector_policy_follow_libraries(s, m);
}

/* What went wrong with it, if anything did; gpuprof run says that of its child itself. */
static void emit_exit(const struct process_set *s, const struct traced_process *m)
{
	char how[96] = "";

	if (s->options->invited)
		how[0] = '\0';
	else if (WIFSIGNALED(m->exit_status))
		(void)snprintf(how, sizeof(how), ", by signal %d (%s)", WTERMSIG(m->exit_status),
			       strsignal(WTERMSIG(m->exit_status)));
	else if (m->exit_status)
		(void)snprintf(how, sizeof(how), " with status %d", WEXITSTATUS(m->exit_status));
	log_at(m->is_child ? LOG_INFO : LOG_WARN, "%d (%s) has ended%s", (int)m->process->pid,
	       m->process->comm, how);
}

static void end_process(struct process_set *s, struct traced_process *m)
{
	if (m->end == PROCESS_EXITED)
		emit_exit(s, m);
	else
		log_at(LOG_WARN, "%d (%s) runs another program now (exec): its capture has ended",
		       (int)m->process->pid, m->process->comm);
	collector_policy_emit_missing(s, m);
	if (m->collector)
		collector_policy_stop(s, m->collector, true);
	probe_session__detach(s->probes, m->index, m->end == PROCESS_EXITED);
}

/* Its end was dealt with before the rings were drained last: there is no event of it any more. */
static bool is_over(const struct traced_process *m)
{
	return m->end == PROCESS_EXITED;
}

static void forget_process(struct traced_process *m, void *arg)
{
	struct process_set *s = arg;

	cpu_clocks__forget(&s->clocks, m);
	if (m->collector)
		collector_policy_drop(s, m, true);
	if (m->state.had) {
		symbol_tables__forget(s->symbols, SOURCE_COLLECTOR(m->serial));
	}
	s->counts.callbacks_nr += m->state.callbacks;
	traced_process__done(m);
	free(m);
}

static void follow_collector(struct process_set *s, struct traced_process *m)
{
	collector_policy_follow_cupti(s, m);
	collector_policy_follow_memory(s, m);
}

/* Whether its libraries are to be read again: an event said so, or would have but for a full ring.
 * Where there are no probes they are read now and then. */
static bool is_to_be_looked_at(const struct process_set *s, const struct traced_process *m)
{
	if (m->maps.changed)
		return true;
	if (m->maps.failed || probe_session__no_bpf(s->probes))
		return clock_now_ns() >= m->maps.again_ns;
	return m->maps.libraries_changed ||
	       m->process->changes_nr != probe_session__maps_changes(s->probes, m->index);
}

/* ---- children ---- */

static void note_child(struct process_set *s, pid_t pid)
{
	if (s->born.nr >= BORN_MAX || vec_push(&s->born, pid))
		s->counts.child_missed_nr++;
}

static void join_child(struct process_set *s, pid_t pid)
{
	struct reason why = {0};
	int err = process_set__join(s, pid, true, &why);

	if (err == -EEXIST)
		return;
	if (err) {
		s->counts.child_missed_nr++;
		log_at(err == -ESRCH ? LOG_INFO : LOG_WARN, "child %d is not recorded: %s",
		       (int)pid, why.text);
		return;
	}
	s->counts.child_late_nr += s->run->started;
	log_info("child %d is recorded", (int)pid);
	process_set__join_children(s, pid);
}

void process_set__join_children(struct process_set *s, pid_t pid)
{
	CLEANUP(cleanup_free) pid_t *pids = NULL;
	size_t nr = 0;
	int err;

	if (!s->options->children)
		return;
	err = target_scan_children(pid, &pids, &nr);
	/* One that has ended has none. */
	if (err && err != -ENOENT && err != -ESRCH) {
		s->counts.child_missed_nr++;
		log_warn("cannot look for children of %d: %s", (int)pid, strerror(-err));
	}
	for (size_t i = 0; i < nr; i++)
		join_child(s, pids[i]);
}

static void poll_children(struct process_set *s)
{
	while (s->born.nr && !s->run->failed)
		join_child(s, s->born.items[--s->born.nr]);
}

void process_set__note_event(struct process_set *s, struct traced_process *m,
			     const struct gp_ev_process *ev)
{
	if (ev->what == GP_PROCESS_FORK && s->options->children)
		note_child(s, ev->value);
	if (ev->what == GP_PROCESS_EXIT)
		m->exit_status = ev->value;
	if (ev->what == GP_PROCESS_EXEC && !m->end)
		traced_process__note_exec(m, s->options->follow_exec || s->options->children);
}

/* ---- the watch ---- */

int process_set__poll(struct process_set *s)
{
	int here = 0;

	if (!s->run->failed)
		process_table__sweep(&s->table, is_over, forget_process, s);
	for (size_t i = 0; i < s->table.nr; i++) {
		struct traced_process *m = s->table.items[i];
		bool was_here = m->end != PROCESS_EXITED;

		if (was_here && traced_process__has_exited(m)) {
			s->drain.drain(s->drain.arg);
			if (!m->exec_handled) {
				m->end = m->end ? m->end : PROCESS_EXITED;
				end_process(s, m);
			}
			m->end = PROCESS_EXITED;
			traced_process__shed(m);
			continue;
		}
		if (!m->end && probe_session__no_bpf(s->probes) &&
		    target_process__has_execed(m->process))
			traced_process__note_exec(m,
						  s->options->follow_exec || s->options->children);
		if (m->end == PROCESS_EXECED && !m->exec_handled) {
			m->exec_handled = true;
			end_process(s, m);
		} else if (!m->end && is_to_be_looked_at(s, m)) {
			probe_anew(s, m);
		} else if (!m->end) {
			collector_policy_poll(s, m);
		}
		if (!m->end && m->collector)
			follow_collector(s, m);
		here += !m->end && !m->is_child;
	}
	if (here)
		poll_children(s);
	return here;
}

/* ---- start and stop ---- */

void process_set__begin(struct process_set *s)
{
	for (size_t i = 0; i < s->table.nr; i++)
		if (s->table.items[i]->collector)
			collector_client__begin(s->table.items[i]->collector);
}

int process_set__timeout_ms(const struct process_set *s, int timeout_ms)
{
	for (size_t i = 0; i < s->table.nr; i++) {
		const struct traced_process *m = s->table.items[i];
		const struct collector_client *g = m->collector;
		uint64_t ns = g ? collector_client__drain_deadline_ns(g)
				: collector_policy_drain_deadline_ns(s, m);
		uint64_t ms = m->end ? UINT64_MAX : ns / 1000000;

		if (ms < (uint64_t)timeout_ms)
			timeout_ms = (int)ms;
	}
	return timeout_ms;
}

void process_set__silence(struct process_set *s)
{
	for (size_t i = 0; i < s->table.nr; i++)
		if (s->table.items[i]->collector && !s->table.items[i]->end)
			collector_client__only(s->table.items[i]->collector, 0);
}

bool process_set__is_silent(const struct process_set *s)
{
	for (size_t i = 0; i < s->table.nr; i++) {
		const struct traced_process *m = s->table.items[i];

		if (!m->end && m->collector && !traced_process__has_exited(m) &&
		    (collector_client__active(m->collector) &
		     ~(uint32_t)(GP_FEATURE_CUPTI | GP_FEATURE_CUPTI_HELD)))
			return false;
	}
	return true;
}

void process_set__stop(struct process_set *s)
{
	for (size_t i = 0; i < s->table.nr; i++) {
		struct traced_process *m = s->table.items[i];

		if (m->collector && !m->end)
			collector_policy_stop(s, m->collector, traced_process__has_exited(m));
	}
}

void process_set__done(struct process_set *s)
{
	for (size_t i = 0; i < s->table.nr; i++) {
		struct traced_process *m = s->table.items[i];

		if (m->collector)
			collector_client__free(m->collector, m->process,
					       m->end || traced_process__has_exited(m));
		traced_process__done(m);
		free(m);
	}
	process_table__done(&s->table);
	gpu_unavailable__done(&s->gpu_unavailable);
	threads__done(&s->threads);
	vec_done(&s->born);
}
