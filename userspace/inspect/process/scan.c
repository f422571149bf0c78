/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Lists processes by the numbers in /proc.
 */
#include "inspect/process/scan.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"
#include "inspect/elf/elf.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHILDREN_BYTES_MAX (1 << 20)
#define CGROUP_BYTES_MAX   (1 << 16)
#define MAPS_BYTES_MAX	   (64u << 20)
#define CGROUP_MOUNT	   "/sys/fs/cgroup"

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

struct pids {
	VEC(pid_t) list;
};

/* Sorts the list and hands it over, unless there is an error. */
static int give(struct pids *pids, int err, pid_t **ret_pids, size_t *ret_nr)
{
	if (err) {
		vec_done(&pids->list);
		return err;
	}
	if (pids->list.nr)
		qsort(pids->list.items, pids->list.nr, sizeof(pid_t), compare_pids);
	*ret_pids = pids->list.items;
	*ret_nr = pids->list.nr;
	return 0;
}

/* Adds the numbers among a folder's names. */
static int read_numbers(const char *path, struct pids *pids)
{
	struct dirent *entry;
	DIR *d = opendir(path);
	int err = 0;

	if (!d)
		return -errno;
	while (!err && (entry = readdir(d)))
		if (isdigit((unsigned char)entry->d_name[0]))
			err = vec_push(&pids->list, (pid_t)atoi(entry->d_name));
	(void)closedir(d);
	return err;
}

int target_scan(pid_t **ret_pids, size_t *ret_nr)
{
	struct pids pids = {0};
	int err = read_numbers("/proc", &pids);

	return give(&pids, err, ret_pids, ret_nr);
}

/* Adds one thread's children. A thread that has ended has none. */
static int read_children(pid_t pid, pid_t tid, struct pids *pids)
{
	CLEANUP(cleanup_free) char *text = NULL;
	char path[64], *at, *end;
	size_t bytes;
	int err;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	err = file_read(path, CHILDREN_BYTES_MAX, &text, &bytes);
	if (err)
		return err == -ENOENT || err == -ESRCH ? 0 : err;
	for (at = text; !err; at = end) {
		long child = strtol(at, &end, 10);

		if (end == at)
			break;
		/* If it is unknown (no such call, or gone) the child counts: a vfork child does not
		 * stay one for long. */
		if (syscall(SYS_kcmp, pid, (pid_t)child, KCMP_VM, 0, 0))
			err = vec_push(&pids->list, (pid_t)child);
	}
	return err;
}

int target_scan_children(pid_t pid, pid_t **ret_pids, size_t *ret_nr)
{
	struct pids threads = {0}, pids = {0};
	char path[64];
	int err;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	err = read_numbers(path, &threads);
	for (size_t i = 0; i < threads.list.nr && !err; i++)
		err = read_children(pid, threads.list.items[i], &pids);
	vec_done(&threads.list);
	return give(&pids, err, ret_pids, ret_nr);
}

bool target_process__is_profilable(const struct target_process *p)
{
	static const char *const prefixes[] = {"libtorch_cpu.so", "libtorch.so", "libc10.so",
					       "libcuda.so", "libcudart"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (target_process__library(p, prefixes[i]))
			return !target_process__sandbox(p);
	return false;
}

static int found_operator(const struct elf_symbol *sym, void *arg)
{
	(void)arg;
	return strstr(sym->name, "4callE") ? 1 : 0;
}

bool target_process__has_operators(const struct target_process *p)
{
	int found = 0;

	for (size_t i = 0; i < p->libraries_nr && found <= 0; i++) {
		struct reason why;
		struct elf_file *f;

		if (elf_file__open(p->libraries[i].open_path, &why, &f))
			continue;
		found = elf_file__each_symbol(f, "_ZN2at4_ops", found_operator, NULL);
		elf_file__free(f);
	}
	return found > 0;
}

/* gVisor keeps the memory of all its programs in one file, which each of its processes maps. */
static bool has_gvisor_memory(const struct target_process *p)
{
	CLEANUP(cleanup_free) char *maps = NULL;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)p->pid);
	return !file_read(path, MAPS_BYTES_MAX, &maps, NULL) &&
	       strstr(maps, " /memfd:runsc-memory");
}

const char *target_process__sandbox(const struct target_process *p)
{
	const char *exe = strrchr(p->exe, '/');

	exe = exe ? exe + 1 : p->exe;
	if (!strcmp(exe, "runsc") || !strncmp(p->cmdline, "runsc-sandbox ", 14) ||
	    has_gvisor_memory(p))
		return "gVisor";
	return NULL;
}

bool target_process__is_named(const struct target_process *p, const char *pattern)
{
	CLEANUP(cleanup_free) char *anywhere = NULL;

	if (asprintf(&anywhere, "*%s*", pattern) < 0) {
		anywhere = NULL;
		return false;
	}
	return !fnmatch(anywhere, p->cmdline ? p->cmdline : p->comm, 0);
}

bool target_process__is_in_cgroup(const struct target_process *p, const char *path)
{
	CLEANUP(cleanup_free) char *text = NULL;
	char file[64], *line, *rest = NULL;
	size_t nr;

	if (!strncmp(path, CGROUP_MOUNT "/", sizeof(CGROUP_MOUNT)))
		path += sizeof(CGROUP_MOUNT) - 1;
	for (nr = strlen(path); nr && path[nr - 1] == '/'; nr--)
		;
	(void)snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)p->pid);
	if (file_read(file, CGROUP_BYTES_MAX, &text, NULL))
		return false;
	/* Each line: hierarchy:controllers:path. */
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *at = strchr(line, ':');

		at = at ? strchr(at + 1, ':') : NULL;
		if (at && !strncmp(at + 1, path, nr) && (at[1 + nr] == '/' || !at[1 + nr]))
			return true;
	}
	return false;
}
