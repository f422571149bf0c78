/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Stands for libbpf's header of this name where a kernel program is compiled for the host: what its
 * helpers do is defined by the fuzz target that includes it.
 */
#ifndef GP_FUZZ_BPF_HELPERS_H
#define GP_FUZZ_BPF_HELPERS_H

#include <linux/bpf.h>
#include <stdbool.h>

#define SEC(name)
#define __uint(name, value)  int(*name)[value]
#define __type(name, type)   typeof(type) *name
#define __array(name, value) typeof(value) *name[]
#define __noinline	     __attribute__((noinline))
#define __weak		     __attribute__((weak))
/* What hides a value from the compiler; the verifier is not here to be helped. */
#define barrier_var(var) __asm__ volatile("" : "+r"(var))
#undef __always_inline
#define __always_inline inline __attribute__((always_inline, unused))

struct task_struct {
	struct {
		unsigned long fsbase;
	} thread;
};

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(void *map, const void *key);
void *bpf_task_storage_get(void *map, struct task_struct *task, void *value, __u64 flags);
struct task_struct *bpf_get_current_task_btf(void);
__u64 bpf_get_current_pid_tgid(void);
__u64 bpf_ktime_get_ns(void);
long bpf_probe_read_user(void *to, __u32 bytes, const void *from);
long bpf_loop(__u32 nr, void *fn, void *arg, __u64 flags);
void *bpf_ringbuf_reserve(void *map, __u64 bytes, __u64 flags);
void bpf_ringbuf_submit(void *event, __u64 flags);
long bpf_ringbuf_output(void *map, void *event, __u64 bytes, __u64 flags);
__u64 bpf_ringbuf_query(void *map, __u64 flags);

#endif /* GP_FUZZ_BPF_HELPERS_H */
