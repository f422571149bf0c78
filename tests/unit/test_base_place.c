/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What others plant in folders that they may write to, while root writes there: links, pipes and
 * hard links lead root nowhere, at rest and swapped in all the while; those of root and of the
 * caller of sudo count.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define NOBODY 65534
#define SECRET "what root alone may change"
#define TRIES  300

static char top[64]; /* root's; in it theirs/, victim/secret, and what a test makes */

static const char *in_top(const char *name)
{
	static char paths[8][128];
	static unsigned int next;
	char *path = paths[next++ % 8];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", top, name);
	return path;
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void make_folder(const char *name, uid_t owner, mode_t mode)
{
	assert_int_equal(mkdir(in_top(name), 0700), 0);
	assert_int_equal(chown(in_top(name), owner, owner), 0);
	assert_int_equal(chmod(in_top(name), mode), 0);
}

static int set_up(void **state)
{
	(void)unsetenv("SUDO_UID");
	(void)unsetenv("SUDO_GID");
	/* Of others' files all this is about root. */
	assert_int_equal(geteuid(), 0);
	(void)snprintf(top, sizeof(top), "/tmp/gpuprof-place-XXXXXX");
	assert_non_null(mkdtemp(top));
	assert_int_equal(chmod(top, 0755), 0);
	make_folder("theirs", NOBODY, 0755);
	make_folder("victim", 0, 0755);
	write_text(in_top("victim/secret"), SECRET);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)unsetenv("SUDO_UID");
	(void)unsetenv("SUDO_GID");
	(void)snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

/* A child that is nobody; 0 in it. */
static pid_t be_nobody(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child && (prctl(PR_SET_PDEATHSIG, SIGKILL) || setgid(NOBODY) || setuid(NOBODY)))
		_exit(99);
	return child;
}

static void end_well(pid_t child)
{
	int how;

	assert_int_equal(waitpid(child, &how, 0), child);
	assert_int_equal(how, 0);
}

/* Nobody makes a link of that name. */
static void plant_link(const char *target, const char *name)
{
	const char *path = in_top(name);
	pid_t child = be_nobody();

	if (!child)
		_exit(symlink(target, path) != 0);
	end_well(child);
}

static int write_there(const char *name)
{
	struct file_new f;
	int err = file_new__open(&f, in_top(name));

	if (err)
		return err;
	err = file_write_all(f.fd, "new", 3);
	if (!err)
		err = file_new__commit(&f);
	file_new__done(&f);
	return err;
}

static int record_there(const char *name)
{
	CLEANUP(cleanup_writer) struct recording_writer *w = NULL;

	return recording_writer__new(in_top(name), NULL, &w);
}

static void must_hold(const char *name, const char *expected)
{
	CLEANUP(cleanup_free) char *text = NULL;

	assert_int_equal(file_read(in_top(name), 4096, &text, NULL), 0);
	assert_string_equal(text, expected);
}

static void victim_is_untouched(void)
{
	CLEANUP(cleanup_dir) DIR *d = opendir(in_top("victim"));
	struct dirent *entry;
	size_t nr = 0;

	must_hold("victim/secret", SECRET);
	assert_non_null(d);
	while ((entry = readdir(d)))
		nr++;
	assert_int_equal(nr, 3);
}

/* Every way to write the name is refused, and nothing was. */
static void is_refused(const char *name)
{
	assert_int_equal(write_there(name), -ELOOP);
	assert_int_equal(record_there(name), -ELOOP);
	victim_is_untouched();
}

static void links_of_others_do_not_count(void **state)
{
	plant_link("../victim/secret", "theirs/relative");
	is_refused("theirs/relative");
	plant_link(in_top("victim/secret"), "theirs/absolute");
	is_refused("theirs/absolute");
	plant_link("absolute", "theirs/twice");
	is_refused("theirs/twice");
	plant_link(in_top("victim"), "theirs/folder");
	is_refused("theirs/folder/secret");
	is_refused("theirs/folder/new");
	plant_link("/proc/self/cwd", "theirs/magic");
	is_refused("theirs/magic/secret");
}

static void links_into_folders_for_all(void **state)
{
	make_folder("sticky", 0, 01777);
	plant_link("../victim/secret", "sticky/planted");
	is_refused("sticky/planted");
	/* Root's own, which nobody can move there. */
	assert_int_equal(symlink("out", in_top("sticky/own")), 0);
	assert_int_equal(write_there("sticky/own"), 0);
	must_hold("sticky/out", "new");
	/* Without the sticky bit everybody can. */
	make_folder("open", 0, 0777);
	assert_int_equal(symlink("../victim/secret", in_top("open/own")), 0);
	is_refused("open/own");
	make_folder("group", 0, 0775);
	assert_int_equal(chown(in_top("group"), 0, NOBODY), 0);
	assert_int_equal(symlink("../victim/secret", in_top("group/own")), 0);
	is_refused("group/own");
}

/* A link with a second name may be one of root's, put there by somebody else. */
static void hard_links_to_links(void **state)
{
	make_folder("sticky", 0, 01777);
	assert_int_equal(symlink(in_top("victim/secret"), in_top("own")), 0);
	assert_int_equal(linkat(AT_FDCWD, in_top("own"), AT_FDCWD, in_top("sticky/moved"), 0), 0);
	is_refused("sticky/moved");
}

static void links_of_root_count(void **state)
{
	make_folder("real", 0, 0755);
	assert_int_equal(symlink("real", in_top("folder")), 0);
	assert_int_equal(symlink("folder/../folder/out", in_top("link")), 0);
	assert_int_equal(write_there("link"), 0);
	must_hold("real/out", "new");
	assert_int_equal(record_there("folder/rec"), 0);
	assert_int_equal(access(in_top("real/rec"), F_OK), 0);
}

static void links_of_the_caller_count(void **state)
{
	plant_link("out", "theirs/link");
	(void)setenv("SUDO_UID", "65534", 1);
	(void)setenv("SUDO_GID", "65534", 1);
	assert_int_equal(write_there("theirs/link"), 0);
	must_hold("theirs/out", "new");
	/* Not where a third user may write too. */
	assert_int_equal(chmod(in_top("theirs"), 0777), 0);
	assert_int_equal(write_there("theirs/link"), -ELOOP);
	/* Nor another caller's. */
	assert_int_equal(chmod(in_top("theirs"), 0755), 0);
	(void)setenv("SUDO_UID", "65533", 1);
	assert_int_equal(write_there("theirs/link"), -ELOOP);
}

/* A second name of root's file in their folder: the name is replaced, the file is not written. */
static void hard_links(void **state)
{
	assert_int_equal(link(in_top("victim/secret"), in_top("theirs/out")), 0);
	assert_int_equal(write_there("theirs/out"), 0);
	must_hold("theirs/out", "new");
	assert_int_equal(link(in_top("victim/secret"), in_top("theirs/rec")), 0);
	assert_int_equal(record_there("theirs/rec"), 0);
	victim_is_untouched();
}

static void pipes_of_others(void **state)
{
	const char *path = in_top("theirs/pipe");
	pid_t child = be_nobody();
	CLEANUP(cleanup_fd) int reader = -1;

	if (!child)
		_exit(mkfifo(path, 0666) != 0);
	end_well(child);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	assert_int_equal(write_there("theirs/pipe"), -EISNAM);
	(void)setenv("SUDO_UID", "65534", 1);
	(void)setenv("SUDO_GID", "65534", 1);
	assert_int_equal(write_there("theirs/pipe"), 0);
}

static void pipes(void **state)
{
	CLEANUP(cleanup_fd) int reader = -1;
	struct file_new f;
	char got[8] = "";

	assert_int_equal(mkfifo(in_top("pipe"), 0600), 0);
	assert_int_equal(write_there("pipe"), -ENXIO);
	reader = open(in_top("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	assert_int_equal(file_new__open(&f, in_top("pipe")), 0);
	/* From here on a slow reader is waited for. */
	assert_int_equal(fcntl(f.fd, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(write(f.fd, "piped", 5), 5);
	assert_int_equal(file_new__commit(&f), 0);
	assert_int_equal(read(reader, got, sizeof(got)), 5);
	assert_string_equal(got, "piped");
}

/* ---- swapped all the while ---- */

/* Where there is something of that name already, so be it. */
static void put_link(const char *victim, int at, const char *name)
{
	int ignored = symlinkat(victim, at, name);

	(void)ignored;
}

/* Puts a link to the victim wherever a file of root's turns up. */
static void swap_names(const char *folder, const char *victim)
{
	int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (;;) {
		DIR *d = fdopendir(dup(at));
		struct dirent *entry;

		rewinddir(d);
		while ((entry = readdir(d)))
			if (!strncmp(entry->d_name, "out", 3) &&
			    !renameat(at, entry->d_name, at, "gone"))
				put_link(victim, at, entry->d_name);
		(void)closedir(d);
		put_link(victim, at, "out");
	}
}

/* A folder and a link to the victim's, now the one and now the other. */
static void swap_folders(const char *folder, const char *victim)
{
	int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)mkdirat(at, "real", 0755);
	put_link(victim, at, "link");
	for (;;) {
		(void)renameat2(at, "real", at, "sub", RENAME_EXCHANGE);
		(void)renameat(at, "real", at, "sub");
		(void)renameat2(at, "link", at, "sub", RENAME_EXCHANGE);
		(void)renameat2(at, "link", at, "sub", RENAME_EXCHANGE);
	}
}

static void swapped(void (*swap)(const char *folder, const char *victim), const char *victim,
		    const char *name)
{
	const char *theirs = in_top("theirs");
	pid_t child = be_nobody();
	unsigned int written_nr = 0;

	if (!child)
		swap(theirs, victim);
	for (int i = 0; i < TRIES || (!written_nr && i < 100 * TRIES); i++) {
		written_nr += !write_there(name);
		written_nr += !record_there(name);
		victim_is_untouched();
	}
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(written_nr);
}

static void names_are_swapped(void **state)
{
	char victim[128];

	(void)snprintf(victim, sizeof(victim), "%s/victim/secret", top);
	swapped(swap_names, victim, "theirs/out");
}

static void folders_are_swapped(void **state)
{
	char victim[128];

	(void)snprintf(victim, sizeof(victim), "%s/victim", top);
	swapped(swap_folders, victim, "theirs/sub/secret");
}

/* What happens between opening and the end happens in the folder that was opened. */
static void folder_is_swapped_for_another(void **state)
{
	struct file_new f;

	make_folder("work", 0, 0755);
	assert_int_equal(file_new__open(&f, in_top("work/secret")), 0);
	assert_int_equal(rename(in_top("work"), in_top("moved")), 0);
	assert_int_equal(symlink("victim", in_top("work")), 0);
	assert_int_equal(file_write_all(f.fd, "new", 3), 0);
	assert_int_equal(file_new__commit(&f), 0);
	must_hold("moved/secret", "new");
	victim_is_untouched();
	assert_int_equal(file_new__open(&f, in_top("moved/other")), 0);
	assert_int_equal(rename(in_top("moved"), in_top("again")), 0);
	file_new__abandon_all();
	must_hold("again/secret", "new");
	assert_int_equal(unlink(in_top("again/secret")), 0);
	assert_int_equal(rmdir(in_top("again")), 0);
	file_new__done(&f);
}

static void folders_are_made(void **state)
{
	struct file_folder f;
	struct stat st;

	plant_link(in_top("victim"), "theirs/link");
	assert_int_equal(file_folder__make(&f, in_top("theirs/link")), -ELOOP);
	assert_int_equal(file_folder__make(&f, in_top("theirs/link/new")), -ELOOP);
	victim_is_untouched();
	(void)setenv("SUDO_UID", "12345", 1);
	(void)setenv("SUDO_GID", "23456", 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(file_folder__make(&f, in_top("made/")), 0);
		assert_int_equal(fstat(f.fd, &st), 0);
		assert_int_equal(st.st_uid, 12345);
		assert_int_equal(st.st_gid, 23456);
		assert_int_equal(st.st_mode & 07777, 0700);
		assert_true(file_folder__is_safe(&f));
		file_folder__done(&f);
	}
	assert_int_equal(file_folder__make(&f, in_top("victim/secret")), -ENOTDIR);
	assert_int_equal(file_folder__open(&f, in_top("theirs")), 0);
	assert_false(file_folder__is_safe(&f));
	file_folder__done(&f);
}

static void paths_that_name_no_file(void **state)
{
	static const char *const folders[] = {"theirs", "theirs/", "victim/..", "victim/.", "new/"};
	struct file_place p;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		assert_int_equal(write_there(folders[i]), -EISDIR);
	assert_int_equal(write_there("victim/secret/x"), -ENOTDIR);
	assert_int_equal(write_there("none/x"), -ENOENT);
	assert_int_equal(file_place__open(&p, NULL, ""), -ENOENT);
	assert_int_equal(file_place__open(&p, NULL, "/"), -EISDIR);
	assert_int_equal(symlink("self", in_top("self")), 0);
	assert_int_equal(write_there("self"), -ELOOP);
	assert_int_equal(write_there("victim//..///./victim/../new"), 0);
	must_hold("new", "new");
}

int main(void)
{
#define IN_TOP(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		IN_TOP(links_of_others_do_not_count),
		IN_TOP(links_into_folders_for_all),
		IN_TOP(hard_links_to_links),
		IN_TOP(links_of_root_count),
		IN_TOP(links_of_the_caller_count),
		IN_TOP(hard_links),
		IN_TOP(pipes_of_others),
		IN_TOP(pipes),
		IN_TOP(names_are_swapped),
		IN_TOP(folders_are_swapped),
		IN_TOP(folder_is_swapped_for_another),
		IN_TOP(folders_are_made),
		IN_TOP(paths_that_name_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
