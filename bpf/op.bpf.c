/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Operators and autograd nodes: one program for entries, one for exits. Both probe instructions
 * inside the function, never its return address (an exception that crosses a return probe kills the
 * process). Each runs millions of times a second, and the traced process pays for every line here.
 */
#include "op.bpf.h"

char gp_license[] SEC("license") = "Dual BSD/GPL";

SEC("uprobe")
int gp_op_entry(struct pt_regs *ctx)
{
	struct op_site site;

	if (!op_begin(ctx, &site))
		return 0;
	op_open(&site, COOKIE_NAME(site.cookie));
	return 0;
}

/* Returns the name of an autograd node's class by its virtual table; `otherwise`, counted, if it is
 * unknown. */
static __always_inline __u32 node_name(__u64 node, __u64 cookie, __u32 otherwise)
{
	struct node_table key = {.process = COOKIE_PROCESS(cookie)};
	const __u32 *name_id = 0;

	if (!bpf_probe_read_user(&key.address, sizeof(key.address), (const void *)node))
		name_id = bpf_map_lookup_elem(&node_names, &key);
	if (name_id)
		return *name_id;
	count_loss(GP_LOSS_NAMES);
	return otherwise;
}

/* void torch::autograd::Engine::evaluate_function(std::shared_ptr<GraphTask> &, Node *, ...); its
 * exits are those of an op. */
SEC("uprobe")
int gp_node_entry(struct pt_regs *ctx)
{
	struct op_site site;

	if (!op_begin(ctx, &site))
		return 0;
	op_open(&site, node_name(PT_REGS_PARM3(ctx), site.cookie, COOKIE_NAME(site.cookie)));
	return 0;
}

/*
 * void *__cxa_begin_catch(void *): an exception was caught, which has left all frames below the one
 * that caught it. Without this probe their ops would stay open until an event from further up the
 * stack.
 */
SEC("uprobe")
int gp_catch(struct pt_regs *ctx)
{
	__u32 epoch = gp_epoch;
	struct thread_state *t;
	__u64 cookie;

	if (!epoch)
		return 0;
	count_hit();
	cookie = bpf_get_attach_cookie(ctx);
	if (COOKIE_STEPPED(cookie))
		count_stepped();
	t = thread_find();
	if (!t || t->owner != ((__u64)epoch << 16 | COOKIE_PROCESS(cookie)))
		return 0;
	thread_settle(t, PT_REGS_SP(ctx) + COOKIE_SP_DELTA(cookie) + 1, bpf_ktime_get_ns());
	return 0;
}

SEC("uprobe")
int gp_op_exit(struct pt_regs *ctx)
{
	struct op_site site;

	if (op_end_begin(ctx, &site))
		(void)op_close(&site);
	return 0;
}
