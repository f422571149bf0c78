/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Opening what a hostile process names: FIFOs, devices, links that lead out of its root, leases,
 * and descriptors that are another file than they were.
 */
#include "inspect/access/process_file.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY	  65534
#define EXCHANGES 20000

static char folder[] = "/tmp/gp-process-file-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* The same seen through the root of a process. */
static const char *in_root(pid_t pid, const char *name)
{
	static char path[300];

	(void)snprintf(path, sizeof(path), "/proc/%d/root%s", pid, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

/* A child whose root is the folder, and which does nothing until it is killed. */
static pid_t start_root_relative(void)
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!chroot(folder) && !chdir("/"))
			(void)!write(ready[1], "r", 1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	return pid;
}

static void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_nothing_but_regular_files(void **state)
{
	struct stat st;
	int fd;

	write_file("plain", "text");
	assert_int_equal(mkfifo(in_folder("fifo"), 0666), 0);
	assert_int_equal(process_file_open(in_folder("fifo"), &st), -ENOEXEC);
	assert_int_equal(process_file_open("/dev/null", &st), -ENOEXEC);
	assert_int_equal(process_file_open(folder, &st), -ENOEXEC);
	assert_int_equal(process_file_stat(in_folder("fifo"), &st), -ENOEXEC);
	assert_int_equal(process_file_open(in_folder("none"), &st), -ENOENT);
	fd = process_file_open(in_folder("plain"), &st);
	assert_true(fd >= 0);
	assert_int_equal(st.st_size, 4);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	(void)close(fd);
}

/* Absolute links and ".." stay in the root of the process, where ours has other files. */
static void test_links_stay_in_the_root(void **state)
{
	pid_t pid = start_root_relative();
	char *text = NULL;
	struct stat st;
	int fd;

	write_file("passwd", "its own");
	assert_int_equal(mkdir(in_folder("etc"), 0755), 0);
	write_file("etc/passwd", "its own, in etc");
	assert_int_equal(symlink("/etc/passwd", in_folder("absolute")), 0);
	assert_int_equal(symlink("../../../../etc/passwd", in_folder("upward")), 0);
	assert_int_equal(symlink("/dev/null", in_folder("device")), 0);
	assert_int_equal(symlink("/proc/self/fd/0", in_folder("magic")), 0);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "/upward" : "/absolute";

		fd = process_file_open(in_root(pid, name), &st);
		assert_true(fd >= 0);
		assert_int_equal(st.st_size, strlen("its own, in etc"));
		(void)close(fd);
		assert_int_equal(process_file_read(pid, name, 100, &text), 0);
		assert_string_equal(text, "its own, in etc");
		free(text);
	}
	assert_int_equal(process_file_open(in_root(pid, "/device"), &st), -ENOENT);
	assert_int_equal(process_file_open(in_root(pid, "/magic"), &st), -ENOENT);
	end(pid);
}

/* openat2(2) fails as where a container's filter does not know it. */
static void refuse_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(100);
}

/* What went wrong, in the order of the looks; 0: nothing. */
static int look_without_openat2(pid_t root_relative)
{
	struct stat st;

	refuse_openat2();
	if (process_file_stat(in_root(root_relative, "/etc/passwd"), &st) ||
	    st.st_size != (off_t)strlen("its own, in etc"))
		return 1;
	if (process_file_stat(in_root(root_relative, "/absolute"), &st) != -ELOOP)
		return 2;
	if (process_file_stat(in_root(root_relative, "/etc/../etc/passwd"), &st) != -ELOOP)
		return 3;
	if (process_file_stat(in_root(root_relative, "/etc/none"), &st) != -ENOENT)
		return 4;
	return 0;
}

static void test_without_openat2(void **state)
{
	pid_t root_relative = start_root_relative(), pid = fork();
	int status = -1;

	if (!pid)
		_exit(look_without_openat2(root_relative));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	end(root_relative);
}

struct exchange {
	char a[256], b[256];
	bool over;
};

static void *exchange_files(void *arg)
{
	struct exchange *x = arg;

	while (!__atomic_load_n(&x->over, __ATOMIC_RELAXED))
		(void)syscall(SYS_renameat2, AT_FDCWD, x->a, AT_FDCWD, x->b, 2);
	return NULL;
}

/* However the two change places, the FIFO is never opened: nobody writes to it, so that would wait
 * for ever. */
static void test_exchanged_meanwhile(void **state)
{
	struct exchange x = {.over = false};
	int opened = 0, refused = 0;
	pthread_t thread;

	write_file("file", "text");
	assert_int_equal(mkfifo(in_folder("pipe"), 0666), 0);
	(void)snprintf(x.a, sizeof(x.a), "%s", in_folder("file"));
	(void)snprintf(x.b, sizeof(x.b), "%s", in_folder("pipe"));
	assert_int_equal(pthread_create(&thread, NULL, exchange_files, &x), 0);
	for (int i = 0; i < EXCHANGES || !opened || !refused; i++) {
		int fd = process_file_open(in_root(getpid(), x.a), NULL);

		assert_true(fd >= 0 || fd == -ENOEXEC);
		opened += fd >= 0;
		refused += fd < 0;
		if (fd >= 0)
			(void)close(fd);
	}
	__atomic_store_n(&x.over, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A lease on its own file lets a process hold up whoever opens it, for as long as
 * /proc/sys/fs/lease-break-time says. */
static void test_a_lease_is_not_waited_for(void **state)
{
	int fd;

	write_file("leased", "text");
	fd = open(in_folder("leased"), O_RDWR);
	(void)signal(SIGIO, SIG_IGN);
	if (fcntl(fd, F_SETLEASE, F_WRLCK))
		fail_msg("this file system has no leases");
	assert_int_equal(process_file_open(in_folder("leased"), NULL), -EAGAIN);
	(void)close(fd);
}

static bool is_wanted(const char *name, const void *arg)
{
	return !strcmp(name, arg);
}

static int open_made(pid_t pid, int number, enum process_made most)
{
	enum process_made made;
	char text[16];
	struct stat st;
	int fd;

	(void)snprintf(text, sizeof(text), "%d", number);
	fd = process_made_file_open(pid, text, most, is_wanted, "wanted", &st, &made);
	if (fd >= 0)
		assert_true(made <= most);
	return fd;
}

static int open_number(pid_t pid, int number)
{
	return open_made(pid, number, PROCESS_MADE_IN_MEMORY);
}

static void test_memory_files(void **state)
{
	int fd = memfd_create("wanted", MFD_ALLOW_SEALING), other = memfd_create("unwanted", 0);
	int shm = open("/dev/shm", O_TMPFILE | O_RDWR, 0600), file, mine;

	mine = open_number(getpid(), fd);
	assert_true(mine >= 0);
	assert_int_equal(write(mine, "x", 1), 1);
	(void)close(mine);
	assert_int_equal(open_number(getpid(), other), -EPROTO);
	/* A file of another tmpfs, by whatever name. */
	assert_true(shm >= 0);
	assert_int_equal(open_number(getpid(), shm), -EPROTO);
	file = open("/dev/shm/memfd:wanted", O_RDWR | O_CREAT, 0600);
	assert_true(file >= 0);
	assert_int_equal(unlink("/dev/shm/memfd:wanted"), 0);
	assert_int_equal(open_number(getpid(), file), -EPROTO);
	assert_int_equal(open_number(getpid(), 0), -EPROTO);
	/* Another user's. */
	assert_int_equal(fchown(fd, NOBODY, NOBODY), 0);
	assert_int_equal(open_number(getpid(), fd), -EPROTO);
	(void)close(fd);
	assert_int_equal(open_number(getpid(), fd), -ENOENT);
	(void)close(other);
	(void)close(shm);
	(void)close(file);
}

/* A file "wanted" in the folder `at`, which has its name no more if `gone`. */
static int make_in(const char *at, bool gone)
{
	char path[PATH_MAX];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/wanted", at);
	(void)unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	if (gone)
		assert_int_equal(unlink(path), 0);
	return fd;
}

static void remove_in(const char *at)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/wanted", at);
	(void)unlink(path);
	(void)rmdir(at);
}

static bool opens(int fd, enum process_made most)
{
	int mine = open_made(getpid(), fd, most);

	if (mine >= 0)
		assert_int_equal(write(mine, "x", 1), 1);
	else
		assert_int_equal(mine, -EPROTO);
	(void)close(mine);
	return mine >= 0;
}

static void test_files_without_a_name(void **state)
{
	char at[] = "/dev/shm/gp-made-XXXXXX";
	int memory = memfd_create("wanted", MFD_ALLOW_SEALING), named, gone, other;

	assert_non_null(mkdtemp(at));
	gone = make_in(at, true);
	assert_false(opens(gone, PROCESS_MADE_IN_MEMORY));
	assert_true(opens(gone, PROCESS_MADE_IN_TMPFS));
	assert_true(opens(gone, PROCESS_MADE_ANYWHERE));
	assert_true(opens(memory, PROCESS_MADE_IN_TMPFS));
	/* One that others find. */
	named = make_in(at, false);
	assert_false(opens(named, PROCESS_MADE_ANYWHERE));
	/* It has another name by now, or is another user's. */
	other = open(at, O_TMPFILE | O_RDWR, 0600);
	assert_true(other >= 0);
	assert_false(opens(other, PROCESS_MADE_ANYWHERE));
	assert_int_equal(fchown(gone, NOBODY, NOBODY), 0);
	assert_false(opens(gone, PROCESS_MADE_ANYWHERE));
	(void)close(other);
	/* Elsewhere than in a tmpfs. */
	other = make_in("/proc/self/cwd", true);
	assert_false(opens(other, PROCESS_MADE_IN_TMPFS));
	assert_true(opens(other, PROCESS_MADE_ANYWHERE));
	(void)close(other);
	(void)close(memory);
	(void)close(named);
	(void)close(gone);
	remove_in(at);
}

struct swap {
	int number, wanted, decoy;
	bool over;
};

static void *swap_descriptors(void *arg)
{
	struct swap *s = arg;

	while (!__atomic_load_n(&s->over, __ATOMIC_RELAXED)) {
		(void)dup2(s->decoy, s->number);
		(void)dup2(s->wanted, s->number);
	}
	return NULL;
}

/* Never the other one, whose owner has only a handle to it. */
static void test_descriptors_swapped_meanwhile(void **state)
{
	struct swap s = {.number = 200, .wanted = memfd_create("wanted", 0)};
	int opened = 0, refused = 0;
	pthread_t thread;
	struct stat st;
	FILE *f = fopen("/dev/shm/gp-decoy", "w");

	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
	s.decoy = open("/dev/shm/gp-decoy", O_PATH);
	assert_true(s.decoy >= 0);
	assert_int_equal(dup2(s.wanted, s.number), s.number);
	assert_int_equal(pthread_create(&thread, NULL, swap_descriptors, &s), 0);
	for (int i = 0; i < EXCHANGES || !opened || !refused; i++) {
		int fd = open_number(getpid(), s.number);

		assert_true(fd >= 0 || fd == -EPROTO);
		opened += fd >= 0;
		refused += fd < 0;
		if (fd < 0)
			continue;
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_nlink, 0);
		(void)close(fd);
	}
	__atomic_store_n(&s.over, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(unlink("/dev/shm/gp-decoy"), 0);
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[300];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_but_regular_files),
		cmocka_unit_test(test_links_stay_in_the_root),
		cmocka_unit_test(test_without_openat2),
		cmocka_unit_test(test_exchanged_meanwhile),
		cmocka_unit_test(test_a_lease_is_not_waited_for),
		cmocka_unit_test(test_memory_files),
		cmocka_unit_test(test_files_without_a_name),
		cmocka_unit_test(test_descriptors_swapped_meanwhile),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
