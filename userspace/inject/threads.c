/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "inject/threads.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"

int threads_list(pid_t pid, struct thread_ids *ret_list)
{
	DIR CLEANUP(cleanup_dir) *d = NULL;
	const struct dirent *e;
	char path[32];
	int err = 0;

	ret_list->ids.nr = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	if (!d)
		return -ESRCH;
	while (!err && (e = readdir(d)))
		if (atoi(e->d_name) > 0)
			err = vec_push(&ret_list->ids, (pid_t)atoi(e->d_name));
	return err;
}

char thread_state(pid_t pid, pid_t tid)
{
	char CLEANUP(cleanup_free) *text = NULL;
	const char *after;
	char path[64];
	size_t bytes;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (file_read(path, 4096, &text, &bytes))
		return 0;
	after = strrchr(text, ')');
	return after && after[1] ? after[2] : 0;
}

bool thread_is_called(pid_t pid, pid_t tid, const char *name)
{
	char CLEANUP(cleanup_free) *text = NULL;
	char path[64];
	size_t bytes;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	return !file_read(path, 64, &text, &bytes) && bytes == strlen(name) + 1 &&
	       !memcmp(text, name, strlen(name));
}
