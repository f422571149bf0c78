/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "base/memory.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "common/saturating.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX     (64 << 10)
#define AVAILABLE    "\nMemAvailable:"
#define LIKES_TO_END "1000" /* OOM_SCORE_ADJ_MAX */
#define GROUPS_MOUNT "/sys/fs/cgroup"

/* The files of one control group version. */
struct group_files {
	/* Of the mount, where its hierarchy is: version 2 beside version 1 has a place of its own.
	 */
	const char *below[2];
	/* Beyond the second one memory is not refused, but every process of the group crawls. */
	const char *limits[2], *taken;
	/* Of memory.stat: pages of files and kernel objects that can be had back. */
	const char *spare[3];
};

static const struct group_files version_1 = {{"/memory"},
					     {"memory.limit_in_bytes"},
					     "memory.usage_in_bytes",
					     {"total_inactive_file ", "total_active_file "}};
static const struct group_files version_2 = {
	{"", "/unified"},
	{"memory.max", "memory.high"},
	"memory.current",
	{"inactive_file ", "active_file ", "slab_reclaimable "}};

static bool read_number(const char *text, uint64_t *ret)
{
	text += strspn(text, " ");
	errno = 0;
	*ret = strtoull(text, NULL, 10);
	return *text >= '0' && *text <= '9' && !errno;
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

static bool read_group_file(const char *group, const char *name, char **ret_text)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", group, name) < (int)sizeof(path) &&
	       !file_read(path, FILE_MAX, ret_text, NULL);
}

/* Returns the number in the line with this key, or 0. */
static uint64_t number_in(const char *stat, const char *key)
{
	uint64_t number;

	for (const char *line = stat; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, strlen(key)))
			return read_number(line + strlen(key), &number) ? number : 0;
	}
	return 0;
}

static uint64_t limit_of_group(const char *group, const struct group_files *files)
{
	uint64_t least = UINT64_MAX, limit;

	for (size_t i = 0; i < 2 && files->limits[i]; i++) {
		CLEANUP(cleanup_free) char *text = NULL;

		if (read_group_file(group, files->limits[i], &text) && read_number(text, &limit) &&
		    limit < least)
			least = limit;
	}
	return least;
}

/* UINT64_MAX: the group has no limit, or does not exist. */
static uint64_t left_of_group(const char *group, const struct group_files *files)
{
	CLEANUP(cleanup_free) char *taken = NULL, *stat = NULL;
	uint64_t max = limit_of_group(group, files), now, spare = 0;

	if (max == UINT64_MAX || !read_group_file(group, files->taken, &taken) ||
	    !read_number(taken, &now))
		return UINT64_MAX;
	if (read_group_file(group, "memory.stat", &stat))
		for (size_t i = 0; i < 3 && files->spare[i]; i++)
			spare = add_saturating(spare, number_in(stat, files->spare[i]));
	now -= spare < now ? spare : now;
	return max > now ? max - now : 0;
}

/* Computes it for the group and all its ancestors. */
static uint64_t left_of_groups(const char *top, const char *group, const struct group_files *files)
{
	uint64_t left, least = UINT64_MAX;
	char path[PATH_MAX];
	size_t top_bytes = strlen(top);

	if (snprintf(path, sizeof(path), "%s%s", top, group) >= (int)sizeof(path))
		return UINT64_MAX;
	for (;;) {
		left = left_of_group(path, files);
		if (left < least)
			least = left;
		if (strlen(path) <= top_bytes)
			return least;
		*strrchr(path, '/') = '\0';
	}
}

/* Whether the comma-separated list contains the word. */
static bool has_word(const char *list, const char *word)
{
	size_t nr = strlen(word);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, word, nr) && (!at[nr] || at[nr] == ','))
			return true;
	}
	return false;
}

uint64_t memory_group_left(const char *cgroups, const char *mount)
{
	CLEANUP(cleanup_free) char *text = strdup(cgroups);
	uint64_t left, least = UINT64_MAX;
	char *line, *rest = NULL;

	if (!text)
		return UINT64_MAX;
	/* Each line: hierarchy:controllers:path. */
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		const struct group_files *files;

		if (!group)
			continue;
		*group++ = '\0';
		controllers++;
		if (!*controllers)
			files = &version_2;
		else if (has_word(controllers, "memory"))
			files = &version_1;
		else
			continue;
		for (size_t i = 0; i < 2 && files->below[i] && *group == '/'; i++) {
			char top[PATH_MAX];

			if (snprintf(top, sizeof(top), "%s%s", mount, files->below[i]) >=
			    (int)sizeof(top))
				continue;
			left = left_of_groups(top, group, files);
			if (left < least)
				least = left;
		}
	}
	return least;
}

/* Reads the numbers of the machine, without control groups. */
static bool of_the_machine(struct memory_now *ret)
{
	CLEANUP(cleanup_free) char *statm = NULL, *meminfo = NULL;
	size_t bytes;

	return !file_read("/proc/self/statm", FILE_MAX, &statm, &bytes) &&
	       !file_read("/proc/meminfo", FILE_MAX, &meminfo, &bytes) &&
	       memory_parse(statm, meminfo, (uint64_t)sysconf(_SC_PAGESIZE), ret);
}

/* Computes what the groups in the file leave. */
static uint64_t of_groups(const char *path)
{
	CLEANUP(cleanup_free) char *cgroups = NULL;
	size_t bytes;

	if (file_read(path, FILE_MAX, &cgroups, &bytes))
		return UINT64_MAX;
	return memory_group_left(cgroups, GROUPS_MOUNT);
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

bool memory_now(struct memory_now *ret)
{
	const char *left = getenv("GPUPROF_MEMORY_LEFT");

	if (!of_the_machine(ret))
		return false;
	ret->left = lesser(ret->left, of_groups("/proc/self/cgroup"));
	return !left || !*left || read_number(left, &ret->left);
}

uint64_t memory_left_of(pid_t pid)
{
	struct memory_now machine;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	return lesser(of_the_machine(&machine) ? machine.left : UINT64_MAX, of_groups(path));
}

void memory_end_me_first(void)
{
	CLEANUP(cleanup_fd) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)file_write_all(fd, LIKES_TO_END, strlen(LIKES_TO_END));
}
