/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which processes there are: the numbers in /proc.
 */
#include "target/scan.h"

#include "base/vec.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

int target_scan(pid_t **ret_pids, size_t *ret_nr)
{
	VEC(pid_t) pids = {0};
	struct dirent *entry;
	DIR *d = opendir("/proc");
	int err = 0;

	if (!d)
		return -errno;
	while (!err && (entry = readdir(d)))
		if (isdigit((unsigned char)entry->d_name[0]))
			err = vec_push(&pids, (pid_t)atoi(entry->d_name));
	(void)closedir(d);
	if (err) {
		vec_done(&pids);
		return err;
	}
	if (pids.nr)
		qsort(pids.items, pids.nr, sizeof(*pids.items), compare_pids);
	*ret_pids = pids.items;
	*ret_nr = pids.nr;
	return 0;
}

bool target_process__is_profilable(const struct target_process *p)
{
	static const char *const prefixes[] = {"libtorch_cpu.so", "libtorch.so", "libc10.so",
					       "libcuda.so", "libcudart"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (target_process__library(p, prefixes[i]))
			return true;
	return false;
}
