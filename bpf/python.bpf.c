/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Counts freed code objects: from then on their addresses may belong to others, so what is known of
 * stacks by such addresses is void. The frames of a walk keep their code objects alive: two walks
 * without a free in between see the same object at the same address. Counts whether or not anything
 * is being recorded.
 */
#include "emit.bpf.h"

/* void code_dealloc(PyCodeObject *), as PyCode_Type names it. */
SEC("uprobe")
int gp_code_freed(void *ctx)
{
	__u32 process = (__u16)(bpf_get_attach_cookie(ctx) >> 48);
	struct gp_python *py = bpf_map_lookup_elem(&pythons, &process);

	if (py)
		__sync_fetch_and_add(&py->generation, 1);
	if (gp_epoch)
		count_hit();
	return 0;
}
