/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Tries each kernel feature that a capture needs. Makes the bpf() call itself: this room does not
 * see libbpf. The kernel's ABI structures are written out here because older systems' headers lack
 * the newest of them.
 */
#include "inspect/kernel/kernel_checks.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/access/maps.h"
#include "inspect/kernel/uprobe_multi.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int bpf(int command, void *attr, unsigned int bytes)
{
	long fd = syscall(SYS_bpf, command, attr, bytes);

	return fd < 0 ? -errno : (int)fd;
}

/* Loads a program that returns 0. 0 or -errno. */
static int load_program(uint32_t attach_type)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_KPROBE;
	attr.insns = (uint64_t)(uintptr_t)code;
	attr.insn_cnt = 2;
	attr.license = (uint64_t)(uintptr_t) "Dual BSD/GPL";
	attr.expected_attach_type = attach_type;
	return bpf(BPF_PROG_LOAD, &attr, sizeof(attr));
}

int kernel_try_program(void)
{
	CLEANUP(cleanup_fd) int fd = load_program(0);

	return fd < 0 ? fd : 0;
}

int kernel_try_ring(uint32_t bytes)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_RINGBUF;
	attr.max_entries = bytes;
	CLEANUP(cleanup_fd) int fd = bpf(BPF_MAP_CREATE, &attr, sizeof(attr));

	return fd < 0 ? fd : 0;
}

/* The function to probe. Nothing calls it. */
static __attribute__((noinline, used)) int probed(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

/* Finds where probed() lies in /proc/self/exe. */
static int probed_offset(uint64_t *ret_offset)
{
	CLEANUP(cleanup_free) char *text = NULL;
	uint64_t at = (uint64_t)(uintptr_t)probed;
	char *line, *rest;
	int err = file_read("/proc/self/maps", 16u << 20, &text, NULL);

	if (err)
		return err;
	for (rest = text; (line = strsep(&rest, "\n"));) {
		struct map_line m;

		if (map_line_parse(line, &m) || at < m.start || at >= m.end)
			continue;
		*ret_offset = m.offset + (at - m.start);
		return 0;
	}
	return -ENOENT;
}

int kernel_try_uprobe_multi(void)
{
	CLEANUP(cleanup_fd) int program = load_program(UPROBE_MULTI_ATTACH_TYPE);
	uint64_t offset;
	int err = program < 0 ? program : probed_offset(&offset);

	if (err)
		return err;
	CLEANUP(cleanup_fd)
	int link = uprobe_multi_link(program, getpid(), "/proc/self/exe", &offset, NULL, 1);

	return link < 0 ? link : 0;
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int kernel_try_uprobe(void)
{
	CLEANUP(cleanup_fd) int program = load_program(0);
	CLEANUP(cleanup_free) char *type = NULL;
	struct perf_event_attr attr = {.size = sizeof(attr)};
	uint64_t offset;
	int err = program < 0 ? program : probed_offset(&offset);

	if (!err)
		err = file_read("/sys/bus/event_source/devices/uprobe/type", 64, &type, NULL);
	if (err)
		return err;
	attr.type = (uint32_t)strtoul(type, NULL, 10);
	attr.uprobe_path = (uint64_t)(uintptr_t) "/proc/self/exe";
	attr.probe_offset = offset;
	CLEANUP(cleanup_fd) int event = open_event(&attr, 0, -1);

	if (event < 0)
		return event;
	return ioctl(event, PERF_EVENT_IOC_SET_BPF, program) ? -errno : 0;
}

int kernel_try_perf_event(bool whole_cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = 49,
		.disabled = 1,
		.exclude_kernel = 1,
	};
	CLEANUP(cleanup_fd) int fd = open_event(&attr, whole_cpu ? -1 : 0, whole_cpu ? 0 : -1);

	return fd < 0 ? fd : 0;
}

int kernel_try_ptrace(void)
{
	pid_t child = fork();
	int err = 0;

	if (child < 0)
		return -errno;
	if (!child) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	if (ptrace(PTRACE_SEIZE, child, NULL, NULL))
		err = -errno;
	(void)kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return err;
}
