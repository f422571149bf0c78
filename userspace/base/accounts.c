/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parses accounts. getent(1) prints the format of the files, and users' lines begin like groups',
 * so one parser serves all four.
 */
#include "base/accounts.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const struct account_sources account_sources_here = {
	.users = "/etc/passwd",
	.groups = "/etc/group",
	.getent = "/usr/bin/getent",
};

/* The account to find, by its number or, if `by_name` is not NULL, by its name. */
struct account {
	const char *by_name;
	uint32_t number;
	char *name; /* receives the name, unless NULL */
	size_t bytes;
};

/* Whether a line "name:password:number..." is the account's, which it then completes. */
static bool take_line(char *line, struct account *a)
{
	char *password = strchr(line, ':');
	char *number = password ? strchr(password + 1, ':') : NULL, *end;
	unsigned long value;

	if (!number)
		return false;
	*password = '\0';
	errno = 0;
	value = strtoul(number + 1, &end, 10);
	if (end == number + 1 || errno || value > UINT32_MAX)
		return false;
	if (a->by_name ? strcmp(line, a->by_name) != 0 : value != a->number)
		return false;
	a->number = (uint32_t)value;
	if (a->name)
		(void)snprintf(a->name, a->bytes, "%s", line);
	return true;
}

static bool take_account(FILE *file, struct account *a)
{
	CLEANUP(cleanup_free) char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, file) > 0)
		if (take_line(line, a))
			return true;
	return false;
}

/* Starts getent with its output to `fd`, and unblocks the signals that gpuprof may have blocked. */
static int start_getent(const char *program, const char *database, const char *key, int fd,
			pid_t *ret_pid)
{
	char *const argv[] = {"getent", "--", (char *)database, (char *)key, NULL};
	char *const no_environment[] = {NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int err;

	(void)sigemptyset(&none);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	(void)posix_spawn_file_actions_init(&files);
	err = posix_spawn_file_actions_adddup2(&files, fd, STDOUT_FILENO);
	if (!err)
		err = posix_spawn(ret_pid, program, &files, &attributes, argv, no_environment);
	(void)posix_spawn_file_actions_destroy(&files);
	(void)posix_spawnattr_destroy(&attributes);
	return -err;
}

static int ask_getent(const char *program, const char *database, const char *key, struct account *a)
{
	CLEANUP(cleanup_file) FILE *answer = NULL;
	int ends[2], err;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	err = start_getent(program, database, key, ends[1], &pid);
	(void)close(ends[1]);
	answer = fdopen(ends[0], "re");
	if (!answer)
		(void)close(ends[0]);
	if (err)
		return err;
	err = answer && take_account(answer, a) ? 0 : -ENOENT;
	/* It ends by itself: it has written all, or nobody reads any more. */
	cleanup_file(&answer);
	answer = NULL;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return err;
}

static int look_up(const char *path, const char *getent, const char *database, const char *key,
		   struct account *a)
{
	CLEANUP(cleanup_file) FILE *file = path ? fopen(path, "re") : NULL;

	if (file && take_account(file, a))
		return 0;
	return getent && !ask_getent(getent, database, key, a) ? 0 : -ENOENT;
}

int account_user_name(const struct account_sources *from, uid_t uid, char *ret_name, size_t bytes)
{
	struct account wanted = {.number = uid, .name = ret_name, .bytes = bytes};
	char key[16];

	(void)snprintf(key, sizeof(key), "%u", uid);
	return look_up(from->users, from->getent, "passwd", key, &wanted);
}

int account_group_id(const struct account_sources *from, const char *name, gid_t *ret_gid)
{
	struct account wanted = {.by_name = name};
	int err = look_up(from->groups, from->getent, "group", name, &wanted);

	if (!err)
		*ret_gid = wanted.number;
	return err;
}
