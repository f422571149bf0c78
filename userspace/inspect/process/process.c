/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads a process and its mappings from /proc/PID, which may become another process's at any
 * moment: the start time is read first and compared again at the end.
 */
#include "inspect/process/process.h"

#include "base/accounts.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/access/status.h"
#include "inspect/process/libraries.h"
#include "inspect/process/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CMDLINE_BYTES_MAX 4096
#define ENVIRON_BYTES_MAX (16u << 20)
#define SMALL_BYTES_MAX	  65536
/* Flags in field 9 of stat, as in the kernel's linux/sched.h: PF_KTHREAD, PF_EXITING. */
#define KERNEL_THREAD 0x00200000UL
#define EXITING	      0x00000004UL

/* The fields of /proc/PID/stat that are used. */
struct stat_line {
	char state;
	int parent;
	unsigned long flags;
	unsigned long long start_ticks, stack_start;
};

static int read_proc(pid_t pid, const char *file, size_t max_bytes, char **ret_text)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return file_read(path, max_bytes, ret_text, NULL);
}

static int read_stat(pid_t pid, struct stat_line *ret_stat)
{
	CLEANUP(cleanup_free) char *text = NULL;
	struct stat_line s;
	char *after;
	int err = read_proc(pid, "stat", SMALL_BYTES_MAX, &text);

	if (err)
		return err;
	/* The name in parentheses may contain anything, even ')'. */
	after = strrchr(text, ')');
	if (!after || sscanf(after + 1,
			     " %c %d %*d %*d %*d %*d %lu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			     "%*d %*d %llu %*u %*d %*u %*u %*u %llu",
			     &s.state, &s.parent, &s.flags, &s.start_ticks, &s.stack_start) != 5)
		return -EBADMSG;
	*ret_stat = s;
	return 0;
}

/* Whether the process is ending: it has no memory, files or program any more, often long before it
 * is a zombie. */
static bool is_dead(const struct stat_line *s)
{
	return s->state == 'Z' || s->state == 'X' || s->state == 'x' || s->flags & EXITING;
}

static int refuse_missing(pid_t pid, int err, struct reason *why)
{
	if (!kill(pid, 0) || errno == EPERM)
		return reason_set(why, -EACCES,
				  "cannot inspect process %d: /proc hides it; run gpuprof as root "
				  "(sudo)",
				  pid);
	if (err == -ENOENT || err == -ESRCH)
		return reason_set(why, -ESRCH,
				  "no such process: %d; 'gpuprof list' shows what can be profiled",
				  pid);
	return reason_set(why, err, "cannot read /proc/%d/stat: %s", pid, strerror(-err));
}

static int read_identity(struct target_process *p, struct reason *why)
{
	struct stat_line s;
	int err = read_stat(p->pid, &s);

	if (err)
		return refuse_missing(p->pid, err, why);
	if (s.flags & KERNEL_THREAD)
		return reason_set(why, -ESRCH,
				  "process %d is a kernel thread: it has no code that can be "
				  "profiled",
				  p->pid);
	if (is_dead(&s))
		return reason_set(why, -ESRCH,
				  "process %d has ended (a zombie that its parent has not waited "
				  "for)",
				  p->pid);
	p->parent = s.parent;
	p->stack_start = s.stack_start;
	p->start_ticks = s.start_ticks;
	p->start_boot_ns = s.start_ticks * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
	return 0;
}

static int read_status(struct target_process *p, struct reason *why)
{
	CLEANUP(cleanup_free) char *text = NULL;
	int err = status_read(p->pid, 0, &text);
	long tgid, uid, ns_pid;

	if (err)
		return refuse_missing(p->pid, err, why);
	if (!status_number(text, "Tgid", 0, &tgid) || !status_number(text, "Uid", 1, &uid))
		return reason_set(why, -EBADMSG, "cannot understand /proc/%d/status", p->pid);
	if (tgid != p->pid)
		return reason_set(why, -ESRCH, "%d is a thread of process %ld; use --pid %ld",
				  p->pid, tgid, tgid);
	p->uid = (uid_t)uid;
	p->ns_pid = status_number(text, "NSpid", STATUS_LAST, &ns_pid) ? (pid_t)ns_pid : p->pid;
	p->signals_caught = status_mask(text, "SigCgt");
	return 0;
}

/* Reads at most max bytes of a /proc file; a shorter file is no error. */
static ssize_t read_start(pid_t pid, const char *file, char *to, size_t max)
{
	char path[64];
	ssize_t nr;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	CLEANUP(cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	nr = read(fd, to, max);
	return nr < 0 ? -errno : nr;
}

static int read_names(struct target_process *p)
{
	char text[CMDLINE_BYTES_MAX + 1];
	ssize_t nr = read_start(p->pid, "comm", p->comm, sizeof(p->comm) - 1);

	if (nr < 0)
		nr = 0;
	/* Drops the kernel's newline; the name may contain others. */
	if (nr && p->comm[nr - 1] == '\n')
		nr--;
	p->comm[nr] = '\0';
	nr = read_start(p->pid, "cmdline", text, CMDLINE_BYTES_MAX);
	if (nr < 0)
		nr = 0;
	while (nr && !text[nr - 1])
		nr--;
	text[nr] = '\0';
	p->arguments.bytes = nr ? (size_t)nr + 1 : 0;
	p->arguments.text = malloc((size_t)nr + 1);
	if (!p->arguments.text)
		return -ENOMEM;
	memcpy(p->arguments.text, text, (size_t)nr + 1);
	for (ssize_t i = 0; i < nr; i++)
		if (!text[i])
			text[i] = ' ';
	p->cmdline = strdup(nr ? text : p->comm);
	return p->cmdline ? 0 : -ENOMEM;
}

static int read_exe(struct target_process *p)
{
	static const char deleted[] = " (deleted)";
	char link[64], path[PATH_MAX], root[PATH_MAX];
	ssize_t nr;

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", p->pid);
	nr = readlink(link, path, sizeof(path) - 1);
	if (nr < 0)
		return -errno;
	path[nr] = '\0';
	if (nr >= (ssize_t)sizeof(deleted) && !strcmp(path + nr - (sizeof(deleted) - 1), deleted))
		path[nr - (ssize_t)(sizeof(deleted) - 1)] = '\0';
	root_of_process(p->pid, root, sizeof(root));
	p->exe = strdup(path_below_root(path, root));
	return p->exe ? 0 : -ENOMEM;
}

static bool other_namespace(pid_t pid, const char *kind)
{
	char theirs[64], ours[64];
	struct stat a, b;

	(void)snprintf(theirs, sizeof(theirs), "/proc/%d/ns/%s", pid, kind);
	(void)snprintf(ours, sizeof(ours), "/proc/self/ns/%s", kind);
	if (stat(theirs, &a) || stat(ours, &b))
		return false;
	return a.st_ino != b.st_ino || a.st_dev != b.st_dev;
}

static int refuse_rights(const struct target_process *p, int err, struct reason *why)
{
	char owner[33] = "?";

	if (err != -EACCES && err != -EPERM)
		return reason_set(why, err, "cannot inspect process %d: %s", p->pid,
				  strerror(-err));
	if (!geteuid()) {
		char text[320];

		rights_explain(RIGHT_PTRACE, text, sizeof(text));
		return reason_set(why, -EACCES, "cannot inspect process %d: %s", p->pid, text);
	}
	if (p->uid == geteuid())
		return reason_set(why, -EACCES,
				  "cannot inspect process %d: it does not let its own user "
				  "look; run gpuprof as root (sudo)",
				  p->pid);
	(void)account_user_name(&account_sources_here, p->uid, owner, sizeof(owner));
	return reason_set(why, -EACCES,
			  "cannot inspect process %d: it belongs to user '%s'; run gpuprof as "
			  "root (sudo) or as that user",
			  p->pid, owner);
}

static int read_all(struct target_process *p, struct reason *why)
{
	struct reason inner = {""};
	int err = read_identity(p, why);

	if (err)
		return err;
	err = read_status(p, why);
	if (err)
		return err;
	err = read_names(p);
	if (!err)
		err = read_exe(p);
	if (!err)
		err = libraries_read(p->pid, NULL, 0, 0, &inner, &p->libraries, &p->libraries_nr);
	if (err && !target_process__alive(p))
		return reason_set(why, -ESRCH, "process %d has ended meanwhile", p->pid);
	if (err)
		return refuse_rights(p, err, why);
	p->other_user_ns = other_namespace(p->pid, "user");
	p->other_pid_ns = other_namespace(p->pid, "pid");
	p->other_mnt_ns = other_namespace(p->pid, "mnt");
	if (!target_process__alive(p))
		return reason_set(why, -ESRCH, "process %d has ended meanwhile", p->pid);
	return 0;
}

int target_process__new(pid_t pid, struct reason *why, struct target_process **ret_process)
{
	struct target_process *p;
	int err;

	if (pid <= 0)
		return reason_set(why, -ESRCH, "no such process: %d is no process id", pid);
	p = calloc(1, sizeof(*p));
	if (!p)
		return reason_set(why, -ENOMEM, "out of memory");
	p->pid = pid;
	err = read_all(p, why);
	if (err) {
		target_process__free(p);
		return err;
	}
	*ret_process = p;
	return 0;
}

void target_process__shed(struct target_process *p)
{
	if (!p)
		return;
	libraries_free(p->libraries, p->libraries_nr);
	p->libraries = NULL;
	p->libraries_nr = 0;
}

void target_process__free(struct target_process *p)
{
	if (!p)
		return;
	target_process__shed(p);
	free(p->cmdline);
	free(p->arguments.text);
	free(p->exe);
	free(p);
}

bool target_process__alive(const struct target_process *p)
{
	struct stat_line s;
	int err = read_stat(p->pid, &s);

	/* Any other error, such as no descriptor left, says nothing about the process. */
	if (err)
		return err != -ENOENT && err != -ESRCH;
	return s.start_ticks == p->start_ticks && !is_dead(&s);
}

bool target_process__has_execed(const struct target_process *p)
{
	struct stat_line s;

	return !read_stat(p->pid, &s) && s.start_ticks == p->start_ticks && !is_dead(&s) &&
	       s.stack_start != p->stack_start;
}

int target_process__update_libraries(struct target_process *p, struct reason *why)
{
	struct target_library *libraries;
	size_t nr;
	int err = libraries_read(p->pid, p->libraries, p->libraries_nr, p->changes_nr, why,
				 &libraries, &nr);
	bool same;

	if (!target_process__alive(p)) {
		if (!err)
			libraries_free(libraries, nr);
		return reason_set(why, -ESRCH, "process %d has ended", p->pid);
	}
	if (err)
		return err;
	same = libraries_equal(p->libraries, p->libraries_nr, libraries, nr);
	if (same) {
		libraries_free(libraries, nr);
		return 0;
	}
	libraries_free(p->libraries, p->libraries_nr);
	p->libraries = libraries;
	p->libraries_nr = nr;
	return 1;
}

const struct target_library *target_process__library(const struct target_process *p,
						     const char *prefix)
{
	for (size_t i = 0; i < p->libraries_nr; i++) {
		const char *slash = strrchr(p->libraries[i].path, '/');

		if (slash && !strncmp(slash + 1, prefix, strlen(prefix)))
			return &p->libraries[i];
	}
	return NULL;
}

int target_process__environment(const struct target_process *p, const char *name, char **ret_value)
{
	CLEANUP(cleanup_free) char *text = NULL;
	size_t bytes = strlen(name), nr = 0;
	char path[64], *value;
	int err;

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", p->pid);
	err = file_read(path, ENVIRON_BYTES_MAX, &text, &nr);
	if (err)
		return err;
	if (!target_process__alive(p))
		return -ESRCH;
	for (size_t at = 0; at < nr; at += strlen(text + at) + 1) {
		if (strncmp(text + at, name, bytes) || text[at + bytes] != '=')
			continue;
		value = strdup(text + at + bytes + 1);
		if (!value)
			return -ENOMEM;
		*ret_value = value;
		return 0;
	}
	return -ENOENT;
}

int32_t target_process__environment_number(const struct target_process *p, const char *name)
{
	CLEANUP(cleanup_free) char *text = NULL;
	char *end;
	long n;

	if (target_process__environment(p, name, &text))
		return -1;
	n = strtol(text, &end, 10);
	return end != text && !*end && n >= 0 && n <= INT32_MAX ? (int32_t)n : -1;
}
