/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Links one program to many uprobes (Linux 6.6). Makes the system call itself: old kernel headers
 * and libbpf before 1.2 lack it.
 */
#ifndef GP_INSPECT_KERNEL_UPROBE_MULTI_H
#define GP_INSPECT_KERNEL_UPROBE_MULTI_H

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* BPF_TRACE_UPROBE_MULTI: the program must be loaded with it, too. */
#define UPROBE_MULTI_ATTACH_TYPE 48

/* The part of union bpf_attr that BPF_LINK_CREATE uses. */
struct uprobe_multi_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t cnt;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t reserved;
};

/* Probes `nr` offsets of the file in one process. `cookies` NULL: none. Returns the link's
 * descriptor, or -errno. */
static inline int uprobe_multi_link(int program_fd, pid_t pid, const char *path,
				    const uint64_t *offsets, const uint64_t *cookies, size_t nr)
{
	struct uprobe_multi_attr attr = {.prog_fd = (uint32_t)program_fd,
					 .attach_type = UPROBE_MULTI_ATTACH_TYPE,
					 .path = (uint64_t)(uintptr_t)path,
					 .offsets = (uint64_t)(uintptr_t)offsets,
					 .cookies = (uint64_t)(uintptr_t)cookies,
					 .cnt = (uint32_t)nr,
					 .pid = (uint32_t)pid};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

#endif /* GP_INSPECT_KERNEL_UPROBE_MULTI_H */
