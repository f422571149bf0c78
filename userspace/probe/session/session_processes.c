/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The processes of a session, by their index.
 */
#include "probe/session/session_private.h"

#include <signal.h>

struct probed_process *session_process(struct probe_session *s, uint16_t index)
{
	for (size_t i = 0; i < s->processes.nr; i++)
		if (s->processes.items[i].index == index)
			return &s->processes.items[i];
	return NULL;
}

void session_continue(struct probed_process *p)
{
	if (p->stopped)
		(void)kill((pid_t)p->pid, SIGCONT);
	p->stopped = false;
}

void probe_session__resume(struct probe_session *s, uint16_t process_index)
{
	struct probed_process *p = session_process(s, process_index);

	if (p)
		session_continue(p);
}

void session_set_process_bit(__u64 *bits, uint16_t process_index, bool set)
{
	uint64_t *word = (uint64_t *)&bits[process_index / 64];
	uint64_t bit = 1ULL << process_index % 64;

	if (set)
		__atomic_fetch_or(word, bit, __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_RELEASE);
}
