/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads thread ids from /proc. NSpid of /proc/PID/task/TID/status lists a thread's ids from
 * gpuprof's namespace to the innermost; the collector writes the last of them. An unknown id makes
 * gpuprof read the tasks again, at most once per drain. The map is emptied now and then, since
 * threads come and go.
 */
#include "capture/collector/tid_map.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TID_MAX	     (1U << 22) /* the kernel's */
#define STATUS_BYTES 65536
#define FORGET_AFTER 1024

void tid_map__init(struct tid_map *t, pid_t pid)
{
	char path[64];
	struct stat ours, theirs;

	*t = (struct tid_map){.pid = pid, .same = true};
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	if (!stat("/proc/self/ns/pid", &ours) && !stat(path, &theirs))
		t->same = ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

void tid_map__done(struct tid_map *t)
{
	hash__done(&t->map);
}

void tid_map__round(struct tid_map *t)
{
	t->fresh = false;
	if (++t->rounds % FORGET_AFTER == 0)
		hash__done(&t->map);
}

static void read_task(struct tid_map *t, uint32_t host_tid)
{
	CLEANUP(cleanup_free) char *text = NULL;
	char path[64], *line, *last;
	unsigned long inner;
	size_t bytes;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%u/status", t->pid, host_tid);
	if (file_read(path, STATUS_BYTES, &text, &bytes))
		return;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return;
	line++;
	line[strcspn(line, "\n")] = '\0';
	last = strrchr(line, '\t');
	inner = last ? strtoul(last + 1, NULL, 10) : 0;
	if (inner && inner < TID_MAX)
		(void)hash__set(&t->map, inner, host_tid);
}

static void read_tasks(struct tid_map *t)
{
	char path[64];
	struct dirent *entry;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", t->pid);
	CLEANUP(cleanup_dir) DIR *dir = opendir(path);

	while (dir && (entry = readdir(dir)) != NULL) {
		unsigned long tid = strtoul(entry->d_name, NULL, 10);

		if (tid && tid < TID_MAX)
			read_task(t, (uint32_t)tid);
	}
}

uint32_t tid_map__get(struct tid_map *t, uint32_t tid)
{
	uint64_t *found;

	if (!tid || tid >= TID_MAX) {
		t->unknown_nr++;
		return 0;
	}
	if (t->same)
		return tid;
	found = hash__find(&t->map, tid);
	if (!found && !t->fresh) {
		t->fresh = true;
		read_tasks(t);
		found = hash__find(&t->map, tid);
	}
	if (!found)
		t->unknown_nr++;
	return found ? (uint32_t)*found : 0;
}
