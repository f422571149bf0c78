/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * inspect/process on children that map files and then take them away or replace them. A child tells
 * over a pipe that it is ready and ends when its other pipe closes, so nothing here waits by time.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/elf/elf.h"
#include "inspect/process/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

/* A child and the ends of its pipes. */
struct child {
	pid_t pid;
	int ready; /* we read */
	int stay;  /* the child waits for its end */
};

struct folder {
	char path[64];
};

static int make_folder(void **state)
{
	static struct folder f;

	(void)snprintf(f.path, sizeof(f.path), "/tmp/gpuprof-test-XXXXXX");
	if (!mkdtemp(f.path))
		return -1;
	*state = &f;
	return 0;
}

static int drop_folder(void **state)
{
	struct folder *f = *state;
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", f->path);
	return system(command);
}

static void copy_file(const char *from, const char *to)
{
	CLEANUP(cleanup_fd) int in = open(from, O_RDONLY | O_CLOEXEC);
	CLEANUP(cleanup_fd) int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	char block[65536];
	ssize_t nr;

	assert_true(in >= 0 && out >= 0);
	while ((nr = read(in, block, sizeof(block))) > 0)
		assert_int_equal(write(out, block, (size_t)nr), nr);
	assert_int_equal(nr, 0);
}

/* Maps the code segment of the file as a loader would: enough to be a library. */
static bool map_code(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 &&
		  mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED;

	if (fd >= 0)
		(void)close(fd);
	return ok;
}

/* Whether the next child gives up its right to be looked at by its own user. */
static bool undumpable;

/* What the next child puts over the path that it has mapped, in a mount namespace of its own. */
static const char *put_over;

static bool cover(const char *path)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount(put_over, path, NULL, MS_BIND, NULL);
}

static void child_main(const char *path, int ready, int stay)
{
	char c = path && !map_code(path) ? 'n' : 'y';

	if (undumpable && prctl(PR_SET_DUMPABLE, 0))
		c = 'n';
	if (put_over && !cover(path))
		c = 'n';
	(void)!write(ready, &c, 1);
	(void)!read(stay, &c, 1);
	_exit(0);
}

static struct child start_child(const char *path)
{
	int up[2], down[2];
	struct child c;
	char word = 0;

	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	assert_int_equal(pipe2(down, O_CLOEXEC), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid) {
		(void)close(up[0]);
		(void)close(down[1]);
		child_main(path, up[1], down[0]);
	}
	(void)close(up[1]);
	(void)close(down[0]);
	c.ready = up[0];
	c.stay = down[1];
	assert_int_equal(read(c.ready, &word, 1), 1);
	assert_int_equal(word, 'y');
	return c;
}

static void end_child(struct child *c)
{
	int status;

	(void)close(c->ready);
	(void)close(c->stay);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_true(WIFEXITED(status));
}

static const struct target_library *library_at(const struct target_process *p, const char *path)
{
	for (size_t i = 0; i < p->libraries_nr; i++)
		if (!strcmp(p->libraries[i].path, path))
			return &p->libraries[i];
	return NULL;
}

static ino_t inode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void reads_itself(void **state)
{
	struct target_process *p;
	struct reason why = {""};
	const struct target_library *libc, *exe;
	char self[4096];
	ssize_t nr = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(nr > 0);
	self[nr] = '\0';
	assert_int_equal(target_process__new(getpid(), &why, &p), 0);
	assert_int_equal(p->pid, getpid());
	assert_int_equal(p->uid, geteuid());
	assert_true(p->start_ticks > 0);
	assert_true(p->start_boot_ns / 10000000 == p->start_ticks || sysconf(_SC_CLK_TCK) != 100);
	assert_string_equal(p->exe, self);
	assert_non_null(strstr(p->cmdline, "test_inspect_process"));
	assert_memory_equal(p->comm, "test_inspect_pr", 16);
	assert_false(p->other_mnt_ns || p->other_pid_ns || p->other_user_ns);
	libc = target_process__library(p, "libc.so.6");
	exe = library_at(p, self);
	assert_non_null(libc);
	assert_non_null(exe);
	assert_false(libc->deleted);
	assert_int_equal(inode_of(libc->open_path), libc->inode);
	assert_null(target_process__library(p, "libtorch_cpu.so"));
	for (size_t i = 1; i < p->libraries_nr; i++)
		assert_true(p->libraries[i - 1].start < p->libraries[i].start);
	target_process__free(p);
}

/* base + address must be where the running code is. */
static void load_bias_leads_to_symbols(void **state)
{
	struct target_process *p;
	struct elf_file *f;
	struct elf_symbol sym;
	const struct target_library *libc;

	assert_int_equal(target_process__new(getpid(), NULL, &p), 0);
	libc = target_process__library(p, "libc.so.6");
	assert_non_null(libc);
	assert_int_equal(elf_file__open(libc->open_path, NULL, &f), 0);
	assert_int_equal(elf_file__symbol(f, "getppid", &sym), 0);
	assert_int_equal(libc->base + sym.address, (uint64_t)(uintptr_t)getppid);
	assert_true((uint64_t)(uintptr_t)getppid >= libc->start);
	assert_true((uint64_t)(uintptr_t)getppid < libc->end);
	elf_file__free(f);
	target_process__free(p);
}

/* AT_ENTRY of the process: where the kernel says that its program begins. */
static uint64_t entry_of(pid_t pid)
{
	CLEANUP(cleanup_free) char *text = NULL;
	char path[64];
	size_t bytes;

	(void)snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	assert_int_equal(file_read(path, 65536, &text, &bytes), 0);
	for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= bytes; at += sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t a;

		memcpy(&a, text + at, sizeof(a));
		if (a.a_type == AT_ENTRY)
			return a.a_un.a_val;
	}
	fail_msg("no AT_ENTRY");
	return 0;
}

/* A program that answers a line with a line and ends with its input: once it has answered it is
 * loaded whole. */
static pid_t start_program(char *const argv[], int *ret_input)
{
	int down[2], up[2];
	pid_t child;
	char c;

	assert_int_equal(pipe2(down, O_CLOEXEC), 0);
	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		(void)dup2(down[0], 0);
		(void)dup2(up[1], 1);
		execv(argv[0], argv);
		_exit(1);
	}
	(void)close(up[1]);
	(void)close(down[0]);
	assert_int_equal(write(down[1], "x\n", 2), 2);
	do
		assert_int_equal(read(up[0], &c, 1), 1);
	while (c != '\n');
	(void)close(up[0]);
	*ret_input = down[1];
	return child;
}

/* The interpreter of Debian 12 is linked to a fixed address, cat is not: both must come out. */
static void load_bias_of_programs(void **state)
{
	static char *const programs[][4] = {
		{"/usr/bin/python3", "-uBc", "print(input()); import sys; sys.stdin.read()"},
		{"/bin/cat", "-u"},
	};

	for (size_t i = 0; i < 2; i++) {
		const struct target_library *exe;
		struct target_process *p;
		Elf64_Ehdr header;
		int input, status;
		pid_t child = start_program(programs[i], &input);

		assert_int_equal(target_process__new(child, NULL, &p), 0);
		exe = library_at(p, p->exe);
		assert_non_null(exe);
		CLEANUP(cleanup_fd) int fd = open(exe->open_path, O_RDONLY | O_CLOEXEC);
		assert_int_equal(read(fd, &header, sizeof(header)), sizeof(header));
		assert_int_equal(exe->base + header.e_entry, entry_of(child));
		target_process__free(p);
		(void)close(input);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

static void opens_deleted_file(void **state)
{
	const struct folder *folder = *state;
	char path[128];
	struct target_process *p;
	const struct target_library *l;
	struct elf_file *f;
	struct child c;

	(void)snprintf(path, sizeof(path), "%s/libgone.so", folder->path);
	copy_file("/proc/self/exe", path);
	c = start_child(path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(target_process__new(c.pid, NULL, &p), 0);
	l = library_at(p, path);
	assert_non_null(l);
	assert_true(l->deleted);
	assert_non_null(strstr(l->open_path, "/map_files/"));
	if (!geteuid()) {
		assert_int_equal(elf_file__open(l->open_path, NULL, &f), 0);
		elf_file__free(f);
	}
	target_process__free(p);
	end_child(&c);
}

static void does_not_open_the_replacement(void **state)
{
	const struct folder *folder = *state;
	char path[128], other[128];
	struct target_process *p;
	const struct target_library *l;
	struct child c;

	(void)snprintf(path, sizeof(path), "%s/libold.so", folder->path);
	(void)snprintf(other, sizeof(other), "%s/libnew.so", folder->path);
	copy_file("/proc/self/exe", path);
	copy_file("/proc/self/exe", other);
	c = start_child(path);
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(target_process__new(c.pid, NULL, &p), 0);
	l = library_at(p, path);
	assert_non_null(l);
	assert_int_not_equal(l->inode, inode_of(path));
	assert_non_null(strstr(l->open_path, "/map_files/"));
	if (!geteuid())
		assert_int_equal(inode_of(l->open_path), l->inode);
	target_process__free(p);
	end_child(&c);
}

/* The path in the maps is that of another file now, and nothing there says "deleted". */
static void does_not_open_what_covers_it(void **state)
{
	const struct folder *folder = *state;
	char path[128], other[128];
	struct target_process *p;
	const struct target_library *l;
	struct child c;

	assert_int_equal(geteuid(), 0); /* mounting takes root, as all of `make check` does */
	(void)snprintf(path, sizeof(path), "%s/libbelow.so", folder->path);
	(void)snprintf(other, sizeof(other), "%s/libabove.so", folder->path);
	copy_file("/proc/self/exe", path);
	copy_file("/proc/self/exe", other);
	put_over = other;
	c = start_child(path);
	put_over = NULL;
	assert_int_equal(target_process__new(c.pid, NULL, &p), 0);
	assert_true(p->other_mnt_ns);
	assert_false(p->other_pid_ns || p->other_user_ns);
	l = library_at(p, path);
	assert_non_null(l);
	assert_false(l->deleted);
	assert_int_equal(l->inode, inode_of(path));
	assert_non_null(strstr(l->open_path, "/map_files/"));
	assert_int_equal(inode_of(l->open_path), l->inode);
	target_process__free(p);
	end_child(&c);
}

static void hostile_names(void **state)
{
	static const char *const names[] = {"libx.so\n7f0000000000-7f0000001000 r-xp 0 0:0 1 /y",
					    "libx.so (deleted)",
					    "libx.so (deleted) (deleted)",
					    "lib x  .so ",
					    "lib\\x.so",
					    "lib\xff\x1b[31m.so"};
	const struct folder *folder = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *path;
		struct target_process *p;
		const struct target_library *l;
		struct child c;

		/* The name has a slash in it: only its last part is the file's. */
		if (strchr(names[i], '/')) {
			assert_true(asprintf(&path,
					     "%s/libx.so\n7f0000000000-7f0000001000 r-xp 0 "
					     "0:0 1 ",
					     folder->path) > 0);
			assert_int_equal(mkdir(path, 0755), 0);
			free(path);
		}
		assert_true(asprintf(&path, "%s/%s", folder->path, names[i]) > 0);
		copy_file("/proc/self/exe", path);
		c = start_child(path);
		assert_int_equal(target_process__new(c.pid, NULL, &p), 0);
		l = library_at(p, path);
		assert_non_null(l);
		assert_false(l->deleted);
		assert_int_equal(inode_of(l->open_path), inode_of(path));
		target_process__free(p);
		end_child(&c);
		assert_int_equal(unlink(path), 0);
		free(path);
	}
}

static void sees_new_libraries(void **state)
{
	const struct folder *folder = *state;
	char path[128];
	struct target_process *p;

	(void)snprintf(path, sizeof(path), "%s/liblate.so", folder->path);
	copy_file("/proc/self/exe", path);
	assert_int_equal(target_process__new(getpid(), NULL, &p), 0);
	assert_null(library_at(p, path));
	assert_true(map_code(path));
	assert_int_equal(target_process__update_libraries(p, NULL), 1);
	assert_non_null(library_at(p, path));
	assert_non_null(target_process__library(p, "liblate.so"));
	assert_int_equal(target_process__update_libraries(p, NULL), 0);
	target_process__free(p);
}

static void refuses_what_is_no_process(void **state)
{
	struct target_process *p = NULL;
	struct reason why = {""};
	struct child c = start_child(NULL);
	siginfo_t info;

	assert_int_equal(target_process__new(0, &why, &p), -ESRCH);
	assert_int_equal(target_process__new(-5, &why, &p), -ESRCH);
	assert_int_equal(target_process__new(0x7ffffff0, &why, &p), -ESRCH);
	assert_non_null(strstr(why.text, "gpuprof list"));
	assert_int_equal(target_process__new(c.pid, &why, &p), 0);
	assert_true(target_process__alive(p));
	(void)close(c.stay);
	/* Ended and not waited for: a zombie. */
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT), 0);
	assert_false(target_process__alive(p));
	assert_int_equal(target_process__update_libraries(p, &why), -ESRCH);
	target_process__free(p);
	p = NULL;
	assert_int_equal(target_process__new(c.pid, &why, &p), -ESRCH);
	assert_non_null(strstr(why.text, "zombie"));
	assert_null(p);
	assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);
	(void)close(c.ready);
}

static void another_start_time_is_another_process(void **state)
{
	struct target_process *p;

	assert_int_equal(target_process__new(getpid(), NULL, &p), 0);
	p->start_ticks++;
	assert_false(target_process__alive(p));
	p->start_ticks--;
	assert_true(target_process__alive(p));
	target_process__free(p);
}

/* Root becomes nobody to look; another user looks at an undumpable process of its own. */
static void refuses_without_rights(void **state)
{
	struct target_process *p;
	struct reason why = {""};
	struct child c;
	pid_t looker;
	int status;

	undumpable = true;
	c = start_child(NULL);
	undumpable = false;
	looker = fork();
	if (!looker) {
		if (!geteuid() && setresuid(65534, 65534, 65534))
			_exit(10);
		if (target_process__new(c.pid, &why, &p) != -EACCES)
			_exit(11);
		_exit(strstr(why.text, "sudo") ? 0 : 12);
	}
	assert_int_equal(waitpid(looker, &status, 0), looker);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	end_child(&c);
}

static void finds_environment(void **state)
{
	struct target_process *p;
	char *value = NULL;
	pid_t child;
	int up[2], down[2], status;
	char c;

	/* The variables of an exec are what /proc shows. */
	assert_int_equal(pipe(up), 0);
	assert_int_equal(pipe(down), 0);
	child = fork();
	if (!child) {
		(void)dup2(down[0], 0);
		(void)dup2(up[1], 1);
		(void)close(down[1]);
		(void)close(up[0]);
		execle("/bin/sh", "sh", "-c", "echo; read x", (char *)NULL,
		       (char *[]){"AB=1", "A=two words", "EMPTY=", NULL});
		_exit(1);
	}
	(void)close(up[1]);
	(void)close(down[0]);
	assert_int_equal(read(up[0], &c, 1), 1);
	assert_int_equal(target_process__new(child, NULL, &p), 0);
	assert_int_equal(target_process__environment(p, "A", &value), 0);
	assert_string_equal(value, "two words");
	free(TAKE(value));
	assert_int_equal(target_process__environment(p, "EMPTY", &value), 0);
	assert_string_equal(value, "");
	free(TAKE(value));
	assert_int_equal(target_process__environment(p, "B", &value), -ENOENT);
	(void)close(down[1]);
	(void)close(up[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(target_process__environment(p, "A", &value), -ENOENT);
	target_process__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_itself),
		cmocka_unit_test(load_bias_leads_to_symbols),
		cmocka_unit_test(load_bias_of_programs),
		cmocka_unit_test_setup_teardown(opens_deleted_file, make_folder, drop_folder),
		cmocka_unit_test_setup_teardown(does_not_open_the_replacement, make_folder,
						drop_folder),
		cmocka_unit_test_setup_teardown(does_not_open_what_covers_it, make_folder,
						drop_folder),
		cmocka_unit_test_setup_teardown(hostile_names, make_folder, drop_folder),
		cmocka_unit_test_setup_teardown(sees_new_libraries, make_folder, drop_folder),
		cmocka_unit_test(refuses_what_is_no_process),
		cmocka_unit_test(another_start_time_is_another_process),
		cmocka_unit_test(refuses_without_rights),
		cmocka_unit_test(finds_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
