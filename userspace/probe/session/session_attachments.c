/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Adds the autograd nodes of a probed file to the programs' map and removes them with the
 * attachment.
 */
#include "gpuprof.skel.h"
#include "probe/session/session_private.h"

#include <bpf/libbpf.h>
#include <errno.h>

int session_name_nodes(struct probe_session *s, const struct session_plan *plan,
		       const struct target_library *lib, uint16_t process_index)
{
	bool wanted = s->options.ops && !s->options.ops_alone;

	for (size_t i = 0; i < plan->plan->nodes.nr && wanted; i++) {
		struct node_table key = {.address = lib->base + plan->plan->nodes.items[i].table,
					 .process = process_index};
		int err = bpf_map__update_elem(s->bpf->maps.node_names, &key, sizeof(key),
					       &plan->node_ids[i], sizeof(uint32_t), BPF_ANY);

		/* The map is full: the rest are recorded as "?" and counted when they run. */
		if (err == -E2BIG)
			return 0;
		if (err)
			return err;
	}
	return 0;
}

static void unname_nodes(struct probe_session *s, const struct attachment *a)
{
	const struct probe_plan *plan = s->plans.items.items[a->plan].plan;

	for (size_t i = 0; i < plan->nodes.nr && (a->groups & PROBE_GROUP_OPS); i++) {
		struct node_table key = {.address = a->base + plan->nodes.items[i].table,
					 .process = a->process_index};

		(void)bpf_map__delete_elem(s->bpf->maps.node_names, &key, sizeof(key), 0);
	}
}

void session_attachment_done(struct probe_session *s, struct attachment *a)
{
	link_set__done(&a->links);
	link_set__done(&a->kept);
	unname_nodes(s, a);
}
