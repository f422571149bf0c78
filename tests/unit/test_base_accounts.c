/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names of accounts: out of a file, and as a program answers whom the file does not know.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/accounts.h"

/* A folder with the files of one machine. */
static char folder[] = "/tmp/gpuprof-accounts-XXXXXX";
static char users[64], groups[64], getent[64];
static const struct account_sources here = {users, groups, getent};

static void put(char *path, const char *name, const char *text)
{
	FILE *file;

	(void)snprintf(path, 64, "%s/%s", folder, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int make_files(void **state)
{
	assert_non_null(mkdtemp(folder));
	put(users, "passwd",
	    "root:x:0:0:root:/root:/bin/sh\n"
	    "anne:x:1000:1000::/:/bin/sh\n");
	put(groups, "group", "root:x:0:\nwheel:x:10:anne\n");
	put(getent, "getent",
	    "#!/bin/sh\n"
	    "case \"$*\" in\n"
	    "'-- passwd 5000') echo 'far:x:5000:5000::/:/bin/sh' ;;\n"
	    "'-- passwd 6000') echo 'other:x:6001:5000::/:/bin/sh' ;;\n"
	    "'-- passwd 8000') grep -q 'SigBlk:.0*$' /proc/self/status &&\n"
	    "	echo 'free:x:8000:1::/:/bin/sh' ;;\n"
	    "'-- group far') echo 'far:x:5000:' ;;\n"
	    "*) exit 2 ;;\n"
	    "esac\n");
	assert_int_equal(chmod(getent, 0755), 0);
	return 0;
}

static int remove_files(void **state)
{
	(void)unlink(users);
	(void)unlink(groups);
	(void)unlink(getent);
	return rmdir(folder);
}

static void check_user(uid_t uid, const char *name)
{
	char found[33] = "unchanged";

	assert_int_equal(account_user_name(&here, uid, found, sizeof(found)), 0);
	assert_string_equal(found, name);
}

static void test_users(void **state)
{
	char found[3] = "-";

	check_user(0, "root");
	check_user(1000, "anne");
	check_user(5000, "far");
	assert_int_equal(account_user_name(&here, 1000, found, sizeof(found)), 0);
	assert_string_equal(found, "an");
}

static void test_nobody(void **state)
{
	const struct account_sources files = {users, groups, NULL};
	const struct account_sources nothing = {"/dev/null/x", NULL, "/dev/null/x"};
	char found[33] = "unchanged";

	assert_int_equal(account_user_name(&here, 4000, found, sizeof(found)), -ENOENT);
	assert_int_equal(account_user_name(&here, 6000, found, sizeof(found)), -ENOENT);
	assert_int_equal(account_user_name(&files, 5000, found, sizeof(found)), -ENOENT);
	assert_int_equal(account_user_name(&nothing, 0, found, sizeof(found)), -ENOENT);
	assert_string_equal(found, "unchanged");
}

static void test_groups(void **state)
{
	gid_t gid = 77;

	assert_int_equal(account_group_id(&here, "nobodys", &gid), -ENOENT);
	assert_int_equal(gid, 77);
	assert_int_equal(account_group_id(&here, "wheel", &gid), 0);
	assert_int_equal(gid, 10);
	assert_int_equal(account_group_id(&here, "far", &gid), 0);
	assert_int_equal(gid, 5000);
}

/* gpuprof blocks signals: the program does not, and leaves no child. */
static void test_signals(void **state)
{
	sigset_t all, before;

	(void)sigfillset(&all);
	assert_int_equal(sigprocmask(SIG_SETMASK, &all, &before), 0);
	check_user(8000, "free");
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_signals),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
