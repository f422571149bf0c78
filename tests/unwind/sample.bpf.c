/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kernel's walk of native stacks on threads that a timer interrupts anywhere in their code.
 * Each sample stops its process (SIGSTOP) before another instruction of it runs, so that another
 * unwinder can look at the very same stack.
 */
#include "unwind.bpf.h"

char sample_license[] SEC("license") = "Dual BSD/GPL";

#define SIGNAL_STOP 19

/* 1: each sample stops its process; 0: the walk alone is measured. */
const volatile __u32 sample_stop = 1;
const volatile __u32 sample_tgid;
/* 1: the next sample is taken, and sets it to 0. */
__u32 sample_armed;

struct sample {
	__u64 ip, sp, bp;
	__u32 tid;
	__u32 nr;
	__u32 flags;
	__u32 reserved;
	__u64 ns;
	__u64 frames[GP_STACK_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct native_thread);
} sample_memory SEC(".maps");

static __always_inline void sample_fill(struct sample *s, const struct native_thread *memory)
{
	s->tid = (__u32)bpf_get_current_pid_tgid();
	s->nr = memory->walk.nr;
	s->flags = memory->walk.flags;
	s->reserved = 0;
	(void)bpf_probe_read_kernel(s->frames, sizeof(s->frames), memory->frames);
}

SEC("perf_event")
int take_sample(struct bpf_perf_event_data *ctx)
{
	struct unwind_walk begin = {.ip = ctx->regs.ip, .sp = ctx->regs.sp, .bp = ctx->regs.bp};
	struct native_thread *memory;
	__u32 zero = 0;
	struct sample *s;
	__u64 start;

	if ((__u32)(bpf_get_current_pid_tgid() >> 32) != sample_tgid ||
	    !__sync_lock_test_and_set(&sample_armed, 0))
		return 0;
	memory = bpf_map_lookup_elem(&sample_memory, &zero);
	s = bpf_ringbuf_reserve(&samples, sizeof(*s), 0);
	if (!s)
		return 0;
	s->ip = begin.ip;
	s->sp = begin.sp;
	s->bp = begin.bp;
	if (memory && !sample_stop) {
		/* Once more for the time alone: what the walk needs is in the caches then. */
		memory->walk = begin;
		unwind_stack(memory);
	}
	start = bpf_ktime_get_ns();
	if (memory) {
		memory->walk = begin;
		unwind_stack(memory);
		s->ns = bpf_ktime_get_ns() - start;
		sample_fill(s, memory);
	}
	if (sample_stop)
		(void)bpf_send_signal(SIGNAL_STOP);
	bpf_ringbuf_submit(s, 0);
	return 0;
}
