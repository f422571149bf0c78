/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Allocations and frees of PyTorch's allocators, each with the op that was open. The CPU's all call
 * c10::ProfiledCPUMemoryReporter, with or without a profiler; allocators of other devices call
 * c10::reportMemoryUsageToProfiler.
 */
#include "stack.bpf.h"
#include "thread.bpf.h"

/* Begins an event of the current thread; the caller fills in all but head and instance. NULL:
 * nothing is recorded now. */
static __always_inline struct gp_ev_memory *memory_begin(struct pt_regs *ctx, __u8 flags,
							 struct thread_state **ret_thread)
{
	struct gp_ev_memory *event;
	struct thread_state *t;
	struct op_site site;
	__u32 stack_id = 0;

	if (!op_begin(ctx, &site))
		return 0;
	t = site.thread;
	count_hit();
	if (gp_stacks && !(flags & GP_MEMORY_FREE))
		stack_id = stack_id_now(ctx, t, site.now);
	event = emit_reserve(sizeof(*event));
	if (!event)
		return 0;
	emit_head(&event->head, GP_EV_MEMORY, flags, t, site.now);
	event->instance = thread_instance(t, t->depth);
	event->allocated_bytes = 0;
	event->reserved_bytes = 0;
	event->device_type = GP_DEVICE_CPU;
	event->device_index = -1;
	event->stack_id = stack_id;
	*ret_thread = t;
	return event;
}

/* void ProfiledCPUMemoryReporter::New(void *ptr, size_t nbytes) */
SEC("uprobe")
int gp_cpu_new(struct pt_regs *ctx)
{
	__u64 bytes = PT_REGS_PARM3(ctx);
	struct thread_state *t;
	struct gp_ev_memory *event;

	if (!bytes)
		return 0;
	event = memory_begin(ctx, 0, &t);
	if (!event)
		return 0;
	event->address = PT_REGS_PARM2(ctx);
	event->bytes = (__s64)bytes;
	emit_submit(event, t);
	return 0;
}

/* void ProfiledCPUMemoryReporter::Delete(void *ptr): only the reporter knows the size; the reader
 * takes it from the allocation. */
SEC("uprobe")
int gp_cpu_delete(struct pt_regs *ctx)
{
	__u64 address = PT_REGS_PARM2(ctx);
	struct thread_state *t;
	struct gp_ev_memory *event;

	if (!address)
		return 0;
	event = memory_begin(ctx, GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN, &t);
	if (!event)
		return 0;
	event->address = address;
	event->bytes = 0;
	emit_submit(event, t);
	return 0;
}

/* void ProfiledCPUMemoryReporter::OutOfMemory(size_t nbytes) */
SEC("uprobe")
int gp_cpu_oom(struct pt_regs *ctx)
{
	__u64 bytes = PT_REGS_PARM2(ctx);
	struct thread_state *t;
	struct gp_ev_memory *event;

	event = memory_begin(ctx, GP_MEMORY_OOM, &t);
	if (!event)
		return 0;
	event->address = 0;
	event->bytes = (__s64)bytes;
	emit_submit(event, t);
	return 0;
}

/* void reportOutOfMemoryToProfiler(int64_t alloc_size, size_t total_allocated, size_t
 * total_reserved, Device device): the CPU's are skipped, as in reportMemoryUsageToProfiler. */
SEC("uprobe")
int gp_report_oom(struct pt_regs *ctx)
{
	__u64 device = PT_REGS_PARM4(ctx);
	struct thread_state *t;
	struct gp_ev_memory *event;

	if ((__s8)device == GP_DEVICE_CPU)
		return 0;
	event = memory_begin(ctx, GP_MEMORY_TOTALS | GP_MEMORY_OOM, &t);
	if (!event)
		return 0;
	event->address = 0;
	event->bytes = (__s64)PT_REGS_PARM1(ctx);
	event->allocated_bytes = PT_REGS_PARM2(ctx);
	event->reserved_bytes = PT_REGS_PARM3(ctx);
	event->device_type = (__s8)device;
	event->device_index = (__s8)(device >> 8);
	emit_submit(event, t);
	return 0;
}

/*
 * void reportMemoryUsageToProfiler(void *ptr, int64_t alloc_size, size_t total_allocated, size_t
 * total_reserved, Device device): Device is two signed bytes, type and index. The CPU's reporter
 * calls it too, but only while torch.profiler runs; its own functions are probed already.
 */
SEC("uprobe")
int gp_report_memory(struct pt_regs *ctx)
{
	__s64 bytes = (__s64)PT_REGS_PARM2(ctx);
	__u64 device = PT_REGS_PARM5(ctx);
	struct thread_state *t;
	struct gp_ev_memory *event;

	if ((__s8)device == GP_DEVICE_CPU)
		return 0;
	event = memory_begin(ctx, GP_MEMORY_TOTALS | (bytes < 0 ? GP_MEMORY_FREE : 0), &t);
	if (!event)
		return 0;
	event->address = PT_REGS_PARM1(ctx);
	event->bytes = bytes;
	event->allocated_bytes = PT_REGS_PARM3(ctx);
	event->reserved_bytes = PT_REGS_PARM4(ctx);
	event->device_type = (__s8)device;
	event->device_index = (__s8)(device >> 8);
	emit_submit(event, t);
	return 0;
}
