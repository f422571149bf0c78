/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Removes a session's probes: from a process for a time, from a process for good, or from all.
 */
#include "gpuprof.skel.h"
#include "probe/session/session_private.h"
#include "probe/unwind/unwind_maps.h"

#include <bpf/libbpf.h>
#include <signal.h>

/* Forgets the addresses of a process: the next one with this index has other things there. */
static void forget_places(struct probe_session *s, uint16_t index)
{
	if (index >= GP_PROCESSES_MAX)
		return;
	session_forget_python(s, index);
	s->bpf->bss->gp_loader_state[index] = 0;
	s->bpf->bss->gp_loader_did[index] = 0;
	__atomic_fetch_add(&s->bpf->bss->gp_maps_changes[index], 1, __ATOMIC_RELEASE);
	session_set_process_bit(s->bpf->bss->gp_api_off, index, false);
}

/* Forgets a process. Process 0 may have been stopped a moment ago, whether or not that event was
 * drained: it must go on. */
static void forget_process(struct probe_session *s, struct probed_process *p)
{
	(void)bpf_map__delete_elem(s->bpf->maps.processes, &p->pid, sizeof(p->pid), 0);
	session_sample_drop(s, (pid_t)p->pid);
	forget_places(s, p->index);
	link_set__done(&p->code_freed);
	session_gc_drop(p);
	p->stopped = s->options.stop_at_load && !p->index;
	session_continue(p);
}

void session_detach_all(struct probe_session *s)
{
	for (size_t i = 0; i < s->attachments.nr; i++)
		session_attachment_done(s, &s->attachments.items[i]);
	s->attachments.nr = 0;
	for (size_t i = 0; i < s->processes.nr; i++)
		forget_process(s, &s->processes.items[i]);
	s->processes.nr = 0;
}

/* Drops a process's attachments that are for `groups` only. Returns how many sites they had. */
static uint32_t drop_attachments(struct probe_session *s, uint16_t process_index, uint32_t groups)
{
	uint32_t sites_nr = 0;
	size_t kept = 0;

	for (size_t i = 0; i < s->attachments.nr; i++) {
		struct attachment *a = &s->attachments.items[i];

		if (a->process_index == process_index && !(a->groups & ~groups)) {
			sites_nr += a->sites_nr;
			session_attachment_done(s, a);
		} else {
			s->attachments.items[kept++] = *a;
		}
	}
	s->attachments.nr = kept;
	return sites_nr;
}

uint32_t probe_session__detach_api(struct probe_session *s, uint16_t process_index)
{
	if (s->bpf)
		session_set_process_bit(s->bpf->bss->gp_api_off, process_index, true);
	return drop_attachments(s, process_index, PROBE_GROUP_API);
}

void probe_session__lift(struct probe_session *s, uint16_t process_index)
{
	for (size_t i = 0; i < s->attachments.nr; i++) {
		struct attachment *a = &s->attachments.items[i];

		if (a->process_index != process_index || !a->links.fds.nr)
			continue;
		link_set__done(&a->links);
		a->lifted = true;
	}
}

/* Hands the links to the closer. The attachments are then empty and are dropped at once. */
static void close_later(struct probe_session *s, uint16_t process_index)
{
	struct probed_process *p = session_process(s, process_index);

	for (size_t i = 0; i < s->attachments.nr; i++) {
		struct attachment *a = &s->attachments.items[i];

		if (a->process_index != process_index)
			continue;
		link_closer__take(s->closer, &a->links);
		link_closer__take(s->closer, &a->kept);
	}
	if (p)
		link_closer__take(s->closer, &p->code_freed);
}

/* The next process with this index has other libraries. */
static void forget_missed(struct probe_session *s, uint16_t process_index)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->coverage.missed.nr; i++)
		if (s->coverage.missed.items[i].process_index != process_index)
			s->coverage.missed.items[kept++] = s->coverage.missed.items[i];
	s->coverage.missed.nr = kept;
}

void probe_session__detach(struct probe_session *s, uint16_t process_index, bool has_ended)
{
	size_t kept = 0;

	if (s->unwind)
		unwind_maps__drop_process(s->unwind, process_index);
	if (has_ended)
		close_later(s, process_index);
	(void)drop_attachments(s, process_index, UINT32_MAX);
	for (size_t i = 0; i < s->processes.nr; i++) {
		if (s->processes.items[i].index == process_index)
			forget_process(s, &s->processes.items[i]);
		else
			s->processes.items[kept++] = s->processes.items[i];
	}
	s->processes.nr = kept;
	forget_missed(s, process_index);
}
