/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sockets with a path: where one is made, what is taken away, whom both ends talk to.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/unix_socket.h"

#define STRANGER 65534
#define GROUP	 4242

static char folder[] = "/tmp/gpuprof-unit-XXXXXX";
static char path[96];
static struct reason why;

static int enter(void **state)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/s", folder);
	return 0;
}

static int leave(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* A socket that nobody listens at, as one that was killed leaves it. */
static void leave_behind(const char *at)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", at);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	(void)close(fd);
}

static int try_listen(const char *at)
{
	struct unix_socket s;
	int err = unix_socket__listen(&s, at, NULL, &why);

	if (!err)
		unix_socket__done(&s);
	return err;
}

static mode_t mode_of(const char *at)
{
	struct stat st;

	return lstat(at, &st) ? 0 : st.st_mode;
}

static void test_both_ends(void **state)
{
	struct unix_socket s;
	mode_t mask = umask(0);
	int near, far;

	assert_int_equal(unix_socket__listen(&s, path, NULL, &why), 0);
	(void)umask(mask);
	assert_int_equal(mode_of(path), S_IFSOCK | 0600);
	near = unix_socket_connect(path, &why);
	assert_true(near >= 0);
	far = accept(s.fd, NULL, NULL);
	assert_true(far >= 0);
	assert_true(unix_socket_is_trusted(far, NULL));
	assert_int_equal(try_listen(path), -EADDRINUSE);
	(void)close(near);
	(void)close(far);
	unix_socket__done(&s);
	assert_int_equal(mode_of(path), 0);
	unix_socket__done(&s);
	assert_int_equal(unix_socket_connect(path, &why), -ENOENT);
	assert_int_equal(try_listen(folder), -EADDRINUSE);
	assert_int_equal(try_listen("/"), -EISDIR);
}

static void test_what_was_left(void **state)
{
	FILE *file;

	leave_behind(path);
	assert_int_equal(unix_socket_connect(path, &why), -ECONNREFUSED);
	assert_int_equal(try_listen(path), 0);
	/* Nothing but a socket is taken away. */
	file = fopen(path, "w");
	assert_non_null(file);
	(void)fclose(file);
	assert_int_equal(try_listen(path), -EADDRINUSE);
	assert_true(S_ISREG(mode_of(path)));
	assert_int_equal(unix_socket_connect(path, &why), -ENOTSOCK);
}

static void test_long_paths(void **state)
{
	char inner[200];

	(void)snprintf(inner, sizeof(inner), "%s/%0120d", folder, 0);
	assert_int_equal(mkdir(inner, 0700), 0);
	strcat(inner, "/s");
	assert_int_equal(try_listen(inner), 0);
}

/* Whose name it is by now does not matter to whom it was taken from. */
static void test_another_in_its_place(void **state)
{
	struct unix_socket s;

	assert_int_equal(unix_socket__listen(&s, path, NULL, &why), 0);
	assert_int_equal(unlink(path), 0);
	leave_behind(path);
	unix_socket__abandon_all();
	unix_socket__done(&s);
	assert_true(S_ISSOCK(mode_of(path)));
}

static void test_abandoned(void **state)
{
	struct unix_socket s;

	assert_int_equal(unix_socket__listen(&s, path, NULL, &why), 0);
	unix_socket__abandon_all();
	assert_int_equal(mode_of(path), 0);
	unix_socket__done(&s);
}

static void test_folders(void **state)
{
	char link_path[96], inner[128];

	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(try_listen(path), -EPERM);
	assert_non_null(strstr(why.text, "others can write"));
	assert_int_equal(chmod(folder, 0720), 0);
	assert_int_equal(try_listen(path), -EPERM);
	assert_int_equal(chmod(folder, 01777), 0);
	assert_int_equal(try_listen(path), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	(void)snprintf(inner, sizeof(inner), "%s/f", folder);
	(void)snprintf(link_path, sizeof(link_path), "%s/l", folder);
	assert_int_equal(mkdir(inner, 0700), 0);
	assert_int_equal(symlink(inner, link_path), 0);
	strcat(link_path, "/s");
	assert_int_equal(try_listen(link_path), -ENOTDIR);
	if (geteuid())
		return;
	assert_int_equal(chown(folder, STRANGER, STRANGER), 0);
	assert_int_equal(try_listen(path), -EPERM);
	assert_non_null(strstr(why.text, "user 65534"));
}

static void test_default_folder(void **state)
{
	char inner[128];

	(void)snprintf(inner, sizeof(inner), "%s/run", folder);
	assert_int_equal(unix_socket_make_folder(inner, &why), 0);
	assert_int_equal(mode_of(inner) & 0777, geteuid() ? 0700 : 0755);
	assert_int_equal(chmod(inner, 0700), 0);
	assert_int_equal(unix_socket_make_folder(inner, &why), 0);
	assert_int_equal(mode_of(inner) & 0777, geteuid() ? 0700 : 0755);
	assert_int_equal(chmod(inner, 0777), 0);
	assert_int_equal(unix_socket_make_folder(inner, &why), -EPERM);
}

/* In a common folder, what another user has left stays, and nobody talks to what they planted. */
static void test_planted(void **state)
{
	struct unix_socket s;
	char link_path[96];

	(void)snprintf(link_path, sizeof(link_path), "%s/l", folder);
	assert_int_equal(unix_socket__listen(&s, path, NULL, &why), 0);
	assert_int_equal(symlink(path, link_path), 0);
	assert_int_equal(unix_socket_connect(link_path, &why), -ENOTSOCK);
	unix_socket__done(&s);
	if (geteuid())
		return;
	assert_int_equal(chmod(folder, 01777), 0);
	leave_behind(path);
	assert_int_equal(lchown(path, STRANGER, STRANGER), 0);
	assert_int_equal(try_listen(path), -EADDRINUSE);
	assert_true(S_ISSOCK(mode_of(path)));
	assert_int_equal(unix_socket_connect(path, &why), -EPERM);
	assert_non_null(strstr(why.text, "sudo -u #65534"));
}

/* Who connects, with the groups that it has. */
static void connect_as(uid_t uid, gid_t gid, gid_t supplementary, const char *at)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", at);
	_exit(setgroups(1, &supplementary) || setresgid(gid, gid, gid) ||
	      setresuid(uid, uid, uid) ||
	      connect(fd, (struct sockaddr *)&address, sizeof(address)) || pause());
}

static bool is_trusted(struct unix_socket *s, gid_t gid, gid_t supplementary,
		       const struct unix_group *group)
{
	pid_t pid = fork();
	bool trusted;
	int fd = -1;

	if (!pid)
		connect_as(STRANGER, gid, supplementary, path);
	while (fd < 0 && !waitpid(pid, NULL, WNOHANG))
		fd = accept(s->fd, NULL, NULL);
	assert_true(fd >= 0);
	trusted = unix_socket_is_trusted(fd, group);
	(void)close(fd);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return trusted;
}

static void test_group(void **state)
{
	const struct unix_group group = {GROUP, "them"};
	struct unix_socket s;
	struct stat st;

	if (geteuid())
		return;
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(unix_socket__listen(&s, path, &group, &why), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
	assert_int_equal(st.st_gid, GROUP);
	assert_int_equal(st.st_uid, 0);
	assert_true(is_trusted(&s, GROUP, STRANGER, &group));
	assert_true(is_trusted(&s, STRANGER, GROUP, &group));
	/* Whatever the mode says. */
	assert_int_equal(chmod(path, 0666), 0);
	assert_false(is_trusted(&s, STRANGER, STRANGER, &group));
	assert_false(is_trusted(&s, GROUP, GROUP, NULL));
	unix_socket__done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_both_ends, enter, leave),
		cmocka_unit_test_setup_teardown(test_what_was_left, enter, leave),
		cmocka_unit_test_setup_teardown(test_long_paths, enter, leave),
		cmocka_unit_test_setup_teardown(test_another_in_its_place, enter, leave),
		cmocka_unit_test_setup_teardown(test_abandoned, enter, leave),
		cmocka_unit_test_setup_teardown(test_folders, enter, leave),
		cmocka_unit_test_setup_teardown(test_default_folder, enter, leave),
		cmocka_unit_test_setup_teardown(test_planted, enter, leave),
		cmocka_unit_test_setup_teardown(test_group, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
