/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "base/memory.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX     (64 << 10)
#define AVAILABLE    "\nMemAvailable:"
#define LIKES_TO_END "1000" /* OOM_SCORE_ADJ_MAX */

static bool read_number(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return end != text && !errno;
}

bool memory_parse(const char *statm, const char *meminfo, uint64_t page_bytes,
		  struct memory_now *ret)
{
	const char *resident = strchr(statm, ' '), *left = strstr(meminfo, AVAILABLE);

	if (!resident || !left || !read_number(resident, &ret->own) ||
	    !read_number(left + strlen(AVAILABLE), &ret->left) ||
	    ret->own > UINT64_MAX / page_bytes || ret->left > UINT64_MAX / 1024)
		return false;
	ret->own *= page_bytes;
	ret->left *= 1024;
	return true;
}

bool memory_now(struct memory_now *ret)
{
	CLEANUP(cleanup_free) char *statm = NULL, *meminfo = NULL;
	const char *left = getenv("GPUPROF_MEMORY_LEFT");
	size_t bytes;

	if (file_read("/proc/self/statm", FILE_MAX, &statm, &bytes) ||
	    file_read("/proc/meminfo", FILE_MAX, &meminfo, &bytes) ||
	    !memory_parse(statm, meminfo, (uint64_t)sysconf(_SC_PAGESIZE), ret))
		return false;
	return !left || !*left || read_number(left, &ret->left);
}

void memory_end_me_first(void)
{
	CLEANUP(cleanup_fd) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)file_write_all(fd, LIKES_TO_END, strlen(LIKES_TO_END));
}
