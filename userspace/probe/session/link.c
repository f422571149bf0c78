/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Calls bpf(BPF_LINK_CREATE) itself: Debian 12's libbpf does not know uprobe_multi.
 */
#include "probe/session/link.h"

#include "base/killsafe_call.h"
#include "base/log.h"
#include "inspect/kernel/uprobe_multi.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

unsigned int link_attach_type(enum link_method method)
{
	return method == LINK_UPROBE_MULTI ? UPROBE_MULTI_ATTACH_TYPE : 0;
}

/* Returns what the kernel says to a link on a directory. */
static int try_multi(pid_t pid)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT}};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = UPROBE_MULTI_ATTACH_TYPE);
	int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "gp_try", "GPL", insns, 2, &opts);
	uint64_t offset = 0;
	int err;

	if (program < 0)
		return program;
	err = uprobe_multi_link(program, pid, "/", &offset, NULL, 1);
	(void)close(program);
	if (err >= 0)
		(void)close(err);
	return err;
}

/*
 * A kernel with the link refuses a directory. If it takes the pid for a process it first refuses an
 * impossible pid; the earliest kernels (up to Linux 6.9) take it for a single thread and do not,
 * which makes the link useless here.
 */
enum link_method link_method_probe(void)
{
	const char *no = getenv("GPUPROF_NO_UPROBE_MULTI");
	int err;

	if (no && *no && strcmp(no, "0"))
		return LINK_PERF_EVENT;
	err = try_multi(0);
	if (err != -EBADF && err != -EISDIR)
		return LINK_PERF_EVENT;
	return try_multi(-1) == -EINVAL ? LINK_UPROBE_MULTI : LINK_PERF_EVENT;
}

/* The killsafe call cannot allocate memory, so it takes everything with it. */
struct attaching {
	struct link_set *set; /* with room for all descriptors */
	enum link_method method;
	int program_fd;
	pid_t pid;
	const char *path;
	struct link_site *sites;
	size_t nr;
	uint64_t *offsets; /* LINK_UPROBE_MULTI: offsets, followed by the cookies */
	int type;	   /* type of the perf events */
};

/* No other site can succeed: the process or file is gone, permission is missing, or a limit is
 * reached. */
static bool is_final(int err)
{
	return err == -ESRCH || err == -EPERM || err == -EACCES || err == -ENOENT ||
	       err == -EBADF || err == -EMFILE || err == -ENFILE || err == -ECANCELED;
}

static void refuse(struct link_site *site, int err)
{
	site->refused = true;
	site->error = err;
}

/* Bisects down to the one instruction that is refused. */
static int attach_multi(struct attaching *a, size_t first, size_t nr)
{
	size_t half = nr / 2;
	int fd = -ECANCELED, one, other;

	if (!killsafe_is_child())
		fd = uprobe_multi_link(a->program_fd, a->pid, a->path, a->offsets + first,
				       a->offsets + a->nr + first, nr);
	if (fd >= 0) {
		a->set->fds.items[a->set->fds.nr++] = fd;
		return (int)nr;
	}
	if (is_final(fd))
		return fd;
	if (nr == 1) {
		refuse(&a->sites[first], fd);
		return 0;
	}
	one = attach_multi(a, first, half);
	if (one < 0)
		return one;
	other = attach_multi(a, first + half, nr - half);
	return other < 0 ? other : one + other;
}

static int perf_uprobe_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type;

	if (!f)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	if (fscanf(f, "%d", &type) != 1)
		type = -EINVAL;
	(void)fclose(f);
	return type;
}

/* Each perf event and each link is a descriptor. */
static void allow_descriptors(size_t nr)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= nr)
		return;
	if (limit.rlim_max < nr)
		limit.rlim_max = nr;
	limit.rlim_cur = nr;
	if (!setrlimit(RLIMIT_NOFILE, &limit) || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Returns 1: attached, 0: refused, or -errno that ends everything. */
static int attach_one(struct attaching *a, struct link_site *site)
{
	struct perf_event_attr attr = {.type = (uint32_t)a->type,
				       .size = sizeof(attr),
				       .config1 = (uint64_t)(uintptr_t)a->path,
				       .config2 = site->offset};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = site->cookie);
	int event, link;

	event = (int)syscall(SYS_perf_event_open, &attr, a->pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0) {
		int err = -errno;

		refuse(site, err);
		return is_final(err) ? err : 0;
	}
	link = bpf_link_create(a->program_fd, event, BPF_PERF_EVENT, &opts);
	if (link < 0) {
		refuse(site, link);
		(void)close(event);
		return is_final(link) || link == -EINVAL ? link : 0;
	}
	a->set->fds.items[a->set->fds.nr++] = link;
	a->set->fds.items[a->set->fds.nr++] = event;
	return 1;
}

static int attach_all_perf(struct attaching *a)
{
	int attached = 0;

	for (size_t i = 0; i < a->nr; i++) {
		int one = killsafe_is_child() ? -ECANCELED : attach_one(a, &a->sites[i]);

		if (one < 0)
			return one;
		attached += one;
	}
	return attached;
}

static int attach_all(void *arg)
{
	struct attaching *a = arg;

	return a->method == LINK_UPROBE_MULTI ? attach_multi(a, 0, a->nr) : attach_all_perf(a);
}

/* Does everything that needs memory, a lock or one of this process's limits. */
static int prepare(struct attaching *a)
{
	bool multi = a->method == LINK_UPROBE_MULTI;

	if (vec_reserve(&a->set->fds, multi ? a->nr : 2 * a->nr))
		return -ENOMEM;
	if (!multi) {
		a->type = perf_uprobe_type();
		allow_descriptors(a->set->fds.nr + 2 * a->nr + 4096);
		return a->type < 0 ? a->type : 0;
	}
	a->offsets = malloc(2 * a->nr * sizeof(*a->offsets));
	if (!a->offsets)
		return -ENOMEM;
	for (size_t i = 0; i < a->nr; i++) {
		a->offsets[i] = a->sites[i].offset;
		a->offsets[a->nr + i] = a->sites[i].cookie;
	}
	return 0;
}

int link_attach(struct link_set *set, enum link_method method, int program_fd, pid_t pid,
		const char *path, struct link_site *sites, size_t nr)
{
	struct attaching a = {
		.set = set,
		.method = method,
		.program_fd = program_fd,
		.pid = pid,
		.path = path,
		.sites = sites,
		.nr = nr,
	};
	int attached;

	for (size_t i = 0; i < nr; i++)
		sites[i].refused = false;
	if (!nr)
		return 0;
	attached = prepare(&a) ?: killsafe_call(attach_all, &a);
	free(a.offsets);
	for (size_t i = 0; i < nr; i++)
		if (sites[i].refused)
			log_debug("no probe at offset 0x%llx of '%s': %s",
				  (unsigned long long)sites[i].offset, path,
				  strerror(-sites[i].error));
	return attached;
}

static int close_all(void *arg)
{
	struct link_set *set = arg;

	for (size_t i = set->fds.nr; i--;)
		(void)close(set->fds.items[i]);
	return 0;
}

void link_set__done(struct link_set *set)
{
	if (set->fds.nr)
		(void)killsafe_call(close_all, set);
	vec_done(&set->fds);
}
