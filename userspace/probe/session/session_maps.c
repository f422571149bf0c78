/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What is mapped in the processes: how often it changed, and the unwind tables of their code.
 */
#include "gpuprof.skel.h"
#include "probe/session/session_private.h"
#include "probe/unwind/unwind_maps.h"

#include <errno.h>

int probe_session__set_code(struct probe_session *s, uint16_t process_index,
			    const struct target_process *p)
{
	return s->unwind ? unwind_maps__set_process(s->unwind, process_index, p) : -EINVAL;
}

uint32_t probe_session__maps_changes(const struct probe_session *s, uint16_t process_index)
{
	if (!s->bpf || process_index >= sizeof(s->bpf->bss->gp_maps_changes) / sizeof(__u32))
		return 0;
	return __atomic_load_n(&s->bpf->bss->gp_maps_changes[process_index], __ATOMIC_ACQUIRE);
}

struct maps_moves probe_session__maps_moves(const struct probe_session *s, uint16_t process_index)
{
	struct maps_moves moves = {0};

	if (!s->bpf || process_index >= GP_PROCESSES_MAX)
		return moves;
	moves.adds = __atomic_load_n(&s->bpf->bss->gp_maps_adds[process_index], __ATOMIC_ACQUIRE);
	moves.removals =
		__atomic_load_n(&s->bpf->bss->gp_maps_removals[process_index], __ATOMIC_ACQUIRE);
	return moves;
}

int probe_session__load_unwind(struct probe_session *s, uint16_t process_index, uint64_t address)
{
	return s->unwind ? unwind_maps__load(s->unwind, process_index, address) : -EINVAL;
}

int probe_session__load_unwind_of(struct probe_session *s, uint16_t process_index,
				  const char *prefix)
{
	int err = s->unwind ? unwind_maps__load_library(s->unwind, process_index, prefix) : -EINVAL;

	/* Before the start nobody waits for us: wait for the tables here. */
	if (!err && !s->epochs.started)
		unwind_maps__collect(s->unwind, true);
	return err;
}

_Static_assert(sizeof(((struct gpuprof_bpf__bss *)NULL)->gp_maps_changes) / sizeof(__u32) ==
		       GP_PROCESSES_MAX,
	       "the programs have room for other numbers of processes");
