/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * getent(1) prints the format of the files, so one reader serves both.
 */
#include "base/accounts.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const struct account_sources account_sources_here = {
	.users = "/etc/passwd",
	.groups = "/etc/group",
	.getent = "/usr/bin/getent",
};

/* Takes what is looked for out of a file of accounts; false: it is not there. */
typedef bool (*take_account_fn)(FILE *file, void *arg);

/* Starts getent with its output into `fd` and no signal blocked, as gpuprof may have them. */
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

static int ask_getent(const char *program, const char *database, const char *key,
		      take_account_fn take, void *arg)
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
	err = answer && take(answer, arg) ? 0 : -ENOENT;
	/* It ends by itself: it has written all, or nobody reads any more. */
	cleanup_file(&answer);
	answer = NULL;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return err;
}

static int look_up(const char *path, const char *getent, const char *database, const char *key,
		   take_account_fn take, void *arg)
{
	CLEANUP(cleanup_file) FILE *file = path ? fopen(path, "re") : NULL;

	if (file && take(file, arg))
		return 0;
	return getent && ask_getent(getent, database, key, take, arg) == 0 ? 0 : -ENOENT;
}

struct wanted_user {
	uid_t uid;
	char *name;
	size_t bytes;
};

static bool take_user(FILE *file, void *arg)
{
	struct wanted_user *wanted = arg;
	struct passwd *user;

	while ((user = fgetpwent(file)))
		if (user->pw_uid == wanted->uid) {
			(void)snprintf(wanted->name, wanted->bytes, "%s", user->pw_name);
			return true;
		}
	return false;
}

int account_user_name(const struct account_sources *from, uid_t uid, char *ret_name, size_t bytes)
{
	struct wanted_user wanted = {uid, ret_name, bytes};
	char key[16];

	(void)snprintf(key, sizeof(key), "%u", uid);
	return look_up(from->users, from->getent, "passwd", key, take_user, &wanted);
}

struct wanted_group {
	const char *name;
	gid_t gid;
};

static bool take_group(FILE *file, void *arg)
{
	struct wanted_group *wanted = arg;
	struct group *group;

	while ((group = fgetgrent(file)))
		if (!strcmp(group->gr_name, wanted->name)) {
			wanted->gid = group->gr_gid;
			return true;
		}
	return false;
}

int account_group_id(const struct account_sources *from, const char *name, gid_t *ret_gid)
{
	struct wanted_group wanted = {.name = name};
	int err = look_up(from->groups, from->getent, "group", name, take_group, &wanted);

	if (!err)
		*ret_gid = wanted.gid;
	return err;
}
