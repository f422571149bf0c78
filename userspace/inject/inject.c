/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Injects and removes a library. A tracer process does the work; when it ends the kernel releases
 * every traced thread, even one that never stopped for us.
 */
#include "inject/inject.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "common/clock.h"
#include "inject/injected_library.h"
#include "inject/injection_lock.h"
#include "inject/ptrace_error.h"
#include "inject/remote.h"
#include "inject/safe_thread.h"
#include "inject/seccomp.h"
#include "inject/tracer.h"
#include "inspect/access/process_file.h"

#define MEMFD_EXEC 0x10u
#define CODE_BYTES 4096
#define ERRNO_MAX  4096
#define IMAGE_MAX  (64u << 20)
#define PATH_BYTES 128

#define SAFE_POINT_LIMIT_MS 2000
#define CALL_LIMIT_MS	    10000
#define READ_LIMIT_MS	    10000

struct job {
	const struct target_process *p;
	const void *image; /* NULL: remove */
	size_t bytes;
	const struct inject_options *options;
	struct reason *why;
	struct inject_result result;
	bool left;
	uint64_t began_ns;
	struct target_view view;
	struct safe_thread safe;
	struct remote remote;
	struct injected_library library;
	char name[INJECTED_NAME_MAX]; /* "NAME-HASH", "NAME-" to remove */
};

/* Sets the reason of a failed step: an error of remote.h, or the process's own errno. */
static int step_failed(struct job *j, int err, const char *what)
{
	switch (err) {
	case -ESRCH:
		return reason_set(j->why, err, "process %d or its thread %d ended meanwhile",
				  j->p->pid, j->safe.thread.tid);
	case -ETIMEDOUT:
		return reason_set(j->why, err,
				  "%s takes longer than the limit in process %d; its thread %d was "
				  "let go and ends it alone",
				  what, j->p->pid, j->safe.thread.tid);
	default:
		return reason_set(j->why, err, "%s failed in process %d: %s", what, j->p->pid,
				  strerror(-err));
	}
}

/* Stops a safe thread and takes it over. */
static int enter(struct job *j)
{
	uint32_t limit_ms = j->options->safe_point_limit_ms;
	uint32_t call_ms = j->options->call_limit_ms;
	uint64_t now;
	int err = safe_thread_take(&j->view,
				   j->began_ns + (limit_ms ?: SAFE_POINT_LIMIT_MS) * 1000000ull,
				   j->why, &j->safe);

	if (err)
		return err;
	now = clock_now_ns();
	j->result.tid = j->safe.thread.tid;
	j->result.waited_us = (now - j->began_ns) / 1000;
	err = remote_begin(&j->remote, &j->safe.thread, &j->safe.registers, j->safe.place,
			   j->safe.saved, now + (call_ms ?: CALL_LIMIT_MS) * 1000000ull);
	if (!err)
		err = remote_scratch(&j->remote);
	return err ? step_failed(j, err, "mapping scratch memory") : 0;
}

/* Creates the memory file in the process; *ret_fd is its number there, or the process's -errno. 0
 * or an error of remote.h with a reason. */
static int make_memory_file(struct job *j, int *ret_fd)
{
	uint64_t args[6] = {0, MFD_CLOEXEC | MFD_ALLOW_SEALING | MEMFD_EXEC};
	int64_t fd;
	int err = remote_string(&j->remote, 0, j->name, &args[0]);

	if (!err)
		err = remote_system_call(&j->remote, SYS_memfd_create, args, &fd);
	/* The kernel knows MFD_EXEC since Linux 6.3. */
	args[1] &= ~(uint64_t)MEMFD_EXEC;
	if (!err && fd == -EINVAL)
		err = remote_system_call(&j->remote, SYS_memfd_create, args, &fd);
	if (err)
		return step_failed(j, err, "memfd_create");
	*ret_fd = (int)fd;
	return 0;
}

/* Closes the file in the process, if the thread is still ours. */
static void close_file(struct job *j, int fd)
{
	const uint64_t args[6] = {(uint64_t)fd};
	int64_t result;

	if (j->safe.thread.stopped)
		(void)remote_system_call(&j->remote, SYS_close, args, &result);
}

enum { CALL_OPEN = 1, CALL_SYMBOL, CALL_START, CALL_CLOSE };

static void plan_calls(struct job *j, uint64_t path, uint64_t symbol, struct remote_call calls[])
{
	const struct c_library *c = &j->view.c;

	calls[CALL_OPEN - 1] = (struct remote_call){.fn = c->dlopen_at,
						    .arg0 = path,
						    .arg1 = RTLD_NOW | RTLD_LOCAL | c->dlopen_flag |
							    (j->library.loaded ? RTLD_NOLOAD : 0)};
	calls[CALL_SYMBOL - 1] = (struct remote_call){.if_call = CALL_OPEN,
						      .if_want = true,
						      .fn = c->dlsym_at,
						      .arg0_call = CALL_OPEN,
						      .arg1 = symbol};
	calls[CALL_START - 1] = (struct remote_call){
		.if_call = CALL_SYMBOL, .if_want = true, .fn_call = CALL_SYMBOL};
	/* If the library was loaded already, dlopen's extra reference is dropped. */
	calls[CALL_CLOSE - 1] =
		(struct remote_call){.if_call = CALL_OPEN,
				     .if_want = j->library.loaded,
				     .fn = j->library.loaded ? c->dlclose_at : c->dlerror_at,
				     .arg0_call = j->library.loaded ? CALL_OPEN : 0};
}

static int loader_refused(struct job *j, uint64_t text_at)
{
	char text[200] = "";

	for (size_t i = 0; text_at && i < sizeof(text) - 1; i++)
		if (tracee_read(&j->view.memory, text_at + i, text + i, 1) || !text[i])
			break;
	text[sizeof(text) - 1] = '\0';
	return reason_set(j->why, -ENOEXEC, "the loader of process %d refuses the library%s%s",
			  j->p->pid, *text ? ": " : "", text);
}

/*
 * Writes the path for dlopen: the memory file or, once that is closed, the loaded library's soname,
 * which is the name that it was given. The path contains the image's hash: a later image may get
 * the same descriptor, and the loader takes the same path for the same library.
 */
static void library_path(const struct job *j, int fd, char *ret_path, size_t bytes)
{
	const char *end = strrchr(j->name, '-');
	unsigned long hash = end ? strtoul(end + 9, NULL, 16) : 0;
	size_t at = 0;

	if (fd < 0) {
		(void)snprintf(ret_path, bytes, "%.*s", (int)(end ? end - j->name : 0), j->name);
		return;
	}
	at = (size_t)snprintf(ret_path, bytes, "/proc/self");
	for (int bit = 0; bit < 32; bit++)
		at += (size_t)snprintf(ret_path + at, bytes - at, hash >> bit & 1 ? "/." : "/");
	(void)snprintf(ret_path + at, bytes - at, "/fd/%d", fd);
}

static int load(struct job *j, int fd)
{
	struct remote_call calls[CALL_CLOSE] = {0};
	uint64_t path_at, symbol_at;
	bool no_error = !j->library.loaded && !j->view.c.dlerror_at;
	char path[PATH_BYTES];
	int err;

	library_path(j, fd, path, sizeof(path));
	err = remote_string(&j->remote, 0, path, &path_at);
	if (!err)
		err = remote_string(&j->remote, 1, "InitializeInjection", &symbol_at);
	if (err)
		return step_failed(j, err, "writing to memory");
	plan_calls(j, path_at, symbol_at, calls);
	err = remote_run(&j->remote, calls, no_error ? CALL_START : CALL_CLOSE);
	if (err)
		return step_failed(j, err, "loading the library");
	if (!calls[CALL_OPEN - 1].ret_result)
		return loader_refused(j, calls[CALL_CLOSE - 1].ret_result);
	if (!calls[CALL_START - 1].ret_done)
		return reason_set(j->why, -ENOEXEC, "the library has no InitializeInjection()");
	j->result.returned = (int32_t)calls[CALL_START - 1].ret_result;
	j->result.reused = j->library.loaded;
	return 0;
}

static int fill_and_load(struct job *j, int fd)
{
	int err = 0;

	if (!j->library.loaded) {
		err = injected_library_fill(j->safe.thread.tid, fd, j->name, j->image, j->bytes);
		if (err)
			err = reason_set(j->why, err, "cannot write the library to process %d: %s",
					 j->p->pid, strerror(-err));
	}
	return err ? err : load(j, fd);
}

/* Tests whether the process may map the file as code: 0, the process's -errno, or an error of
 * remote.h in *ret_err. */
static int try_code(struct job *j, int fd, int *ret_err)
{
	const uint64_t map[6] = {0, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, (uint64_t)fd};
	uint64_t unmap[6] = {0, CODE_BYTES};
	int64_t at, done;

	*ret_err = remote_system_call(&j->remote, SYS_mmap, map, &at);
	if (*ret_err || (at < 0 && at > -ERRNO_MAX))
		return *ret_err ? 0 : (int)at;
	unmap[0] = (uint64_t)at;
	*ret_err = remote_system_call(&j->remote, SYS_munmap, unmap, &done);
	return 0;
}

static bool is_refusal(int err)
{
	return err == -EPERM || err == -EACCES || err == -ENOSYS;
}

/* Creates a file in the folder that may hold code, and unlinks it at once. *ret_fd is its number in
 * the process, or the process's -errno. 0 or an error of remote.h. */
static int make_file_in(struct job *j, const char *folder, int *ret_fd)
{
	const uint64_t flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	uint64_t args[6] = {(uint64_t)(int64_t)AT_FDCWD, 0, 0};
	char path[PATH_BYTES];
	int64_t fd = -1, done;
	int err, code = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, j->name);
	err = remote_string(&j->remote, 0, path, &args[1]);
	/* An earlier gpuprof that was killed may have left the name. */
	if (!err)
		err = remote_system_call(&j->remote, SYS_unlinkat, args, &done);
	args[2] = flags;
	args[3] = 0700;
	if (!err)
		err = remote_system_call(&j->remote, SYS_openat, args, &fd);
	args[2] = args[3] = 0;
	if (!err && fd >= 0)
		err = remote_system_call(&j->remote, SYS_unlinkat, args, &done);
	if (!err && fd >= 0)
		code = done ? (int)done : try_code(j, (int)fd, &err);
	if (!err && fd >= 0 && code) {
		close_file(j, (int)fd);
		fd = code;
	}
	*ret_fd = (int)fd;
	return err;
}

/* The process may not map code from a memory file, for the reason `refused`: uses a file in one of
 * its folders. */
static int load_from_folder(struct job *j, int refused, const char *what)
{
	static const char *const folders[] = {"/tmp", "/var/tmp", "/dev/shm", "/run", "."};
	int err = seccomp_check_files(j->p, j->safe.thread.tid, j->why), fd = -1;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !err && fd < 0; i++) {
		err = make_file_in(j, folders[i], &fd);
		(void)snprintf(j->result.folder, sizeof(j->result.folder), "%s", folders[i]);
	}
	if (err)
		return j->why->text[0] ? err : step_failed(j, err, "making a file");
	(void)snprintf(j->result.refusal, sizeof(j->result.refusal), "%s: %s", what,
		       strerror(-refused));
	if (fd < 0)
		return reason_set(
			j->why, -EACCES,
			"process %d is refused code in memory files (%s) and has no folder for a "
			"file with code (in /tmp, /var/tmp, /dev/shm, /run or its working "
			"directory the last refusal was: %s); give it one (Docker: --tmpfs "
			"/tmp:exec; Kubernetes: an emptyDir at /tmp), or use --no-inject",
			j->p->pid, j->result.refusal, strerror(-fd));
	err = fill_and_load(j, fd);
	close_file(j, fd);
	return err;
}

/* Once loaded, the library needs no descriptor: its mappings hold the file. */
static int inject_in_thread(struct job *j)
{
	int fd = j->library.fd, err = 0, code = 0, end = 0;

	if (fd < 0 && !j->library.loaded)
		err = make_memory_file(j, &fd);
	if (!err && !j->library.loaded && is_refusal(fd))
		return load_from_folder(j, fd, "memfd_create");
	if (!err && !j->library.loaded && fd < 0)
		return step_failed(j, fd, "memfd_create");
	if (!err)
		err = fill_and_load(j, fd);
	/* The loader's message does not say what it was refused. */
	if (err == -ENOEXEC && !j->library.loaded && j->safe.thread.stopped)
		code = try_code(j, fd, &end);
	if (fd >= 0)
		close_file(j, fd);
	if (!end && is_refusal(code)) {
		j->why->text[0] = '\0';
		return load_from_folder(j, code, "mmap");
	}
	return err;
}

static int remove_in_thread(struct job *j)
{
	struct remote_call calls[3] = {0};
	struct injected_library now;
	uint64_t path_at;
	char path[PATH_BYTES];
	int err;

	library_path(j, j->library.fd, path, sizeof(path));
	err = remote_string(&j->remote, 0, path, &path_at);
	if (err)
		return step_failed(j, err, "writing to memory");
	calls[0] = (struct remote_call){.fn = j->view.c.dlopen_at,
					.arg0 = path_at,
					.arg1 = RTLD_NOW | RTLD_NOLOAD | j->view.c.dlopen_flag};
	calls[1] = (struct remote_call){
		.if_call = 1, .if_want = true, .fn = j->view.c.dlclose_at, .arg0_call = 1};
	calls[2] = calls[1];
	err = remote_run(&j->remote, calls, 3);
	if (err)
		return step_failed(j, err, "unloading the library");
	if (memory_map__read(j->p->pid, &j->view.map) ||
	    injected_library_find(j->p->pid, &j->view.map, j->library.name, &now))
		return reason_set(j->why, -ESRCH, "process %d has ended", j->p->pid);
	j->left = now.loaded;
	if (j->library.fd >= 0)
		close_file(j, j->library.fd);
	return 0;
}

/* Takes the thread over, works, and releases it. */
static int visit(struct job *j)
{
	uint64_t entered_ns;
	int err = enter(j), end;

	if (err && !j->safe.thread.stopped)
		return err;
	entered_ns = clock_now_ns();
	if (!err)
		err = j->image ? inject_in_thread(j) : remove_in_thread(j);
	if (j->safe.thread.stopped) {
		end = remote_end(&j->remote);
		if (end && !err)
			err = step_failed(j, end, "leaving");
	}
	j->result.held_us = (clock_now_ns() - entered_ns) / 1000;
	return err;
}

static int find_injected_library(struct job *j)
{
	int err = injected_library_find(j->p->pid, &j->view.map, j->name, &j->library);

	if (err)
		return ptrace_error_reason(j->p->pid, err, j->why);
	if (!j->image && !j->library.loaded)
		return reason_set(j->why, -ENOENT, "the library is not in process %d", j->p->pid);
	return 0;
}

static int work(struct job *j)
{
	int CLEANUP(cleanup_fd) lock = -1;
	int err = injection_lock(j->p, j->why, &lock);

	if (!err)
		err = target_view__read(j->p, j->options->thread_name, j->why, &j->view);
	if (!err)
		err = find_injected_library(j);
	if (!err && !j->image && any_thread_is_in(&j->view, j->library.start, j->library.end)) {
		j->left = true;
		return 0;
	}
	if (!err)
		err = visit(j);
	j->result.stops = j->safe.stops;
	return err;
}

/* The tracer's results. */
struct outcome {
	struct reason why;
	struct inject_result result;
	bool left;
};

static int trace(void *shared, void *arg)
{
	struct outcome *o = shared;
	struct job *j = arg;
	int err;

	j->why = &o->why;
	j->began_ns = clock_now_ns();
	j->view.memory.mem_fd = -1;
	err = work(j);
	o->result = j->result;
	o->left = j->left;
	return err;
}

static int check_target(const struct target_process *p, struct reason *why)
{
	unsigned char ident[EI_NIDENT] = {0};
	char path[32];

#ifndef __x86_64__
	return reason_set(why, -ENOSYS, "injection works on x86-64 only; use --no-inject");
#endif
	if (!target_process__alive(p))
		return reason_set(why, -ESRCH, "process %d has ended", p->pid);
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", p->pid);
	CLEANUP(cleanup_fd) int fd = process_file_open(path, NULL);

	if (fd < 0)
		return ptrace_error_reason(p->pid, fd, why);
	if (read(fd, ident, sizeof(ident)) == sizeof(ident) && ident[EI_CLASS] != ELFCLASS64)
		return reason_set(why, -ENOSYS, "process %d is a 32-bit process; use --no-inject",
				  p->pid);
	return 0;
}

/* Returns the time limit: for finding a safe moment, for the calls, and for reading the process. */
static uint32_t total_ms(const struct inject_options *o)
{
	uint64_t ms = (uint64_t)(o->safe_point_limit_ms ?: SAFE_POINT_LIMIT_MS) +
		      (o->call_limit_ms ?: CALL_LIMIT_MS) + READ_LIMIT_MS;

	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

static int run_job(struct job *j, struct outcome *o, struct reason *why)
{
	int err = check_target(j->p, why);

	if (err)
		return err;
	err = tracer_run(trace, j, o, sizeof(*o), total_ms(j->options), &j->options->meanwhile);
	if (err && !target_process__alive(j->p))
		return reason_set(why, -ESRCH, "process %d has ended", j->p->pid);
	if (err && o->why.text[0])
		return reason_set(why, err, "%s", o->why.text);
	if (err == -ETIMEDOUT)
		return reason_set(why, err,
				  "process %d could not be read in time (its memory, or a "
				  "file it has mapped, does not answer); it runs on; use "
				  "--no-inject",
				  j->p->pid);
	if (err)
		return reason_set(why, err, "cannot trace process %d from a process of its own: %s",
				  j->p->pid, strerror(-err));
	return 0;
}

int inject_library(const struct target_process *p, const void *image, size_t bytes,
		   const struct inject_options *options, struct reason *why,
		   struct inject_result *ret_result)
{
	struct job j = {.p = p, .image = image, .bytes = bytes, .options = options};
	struct outcome o = {0};
	int err;

	if (bytes < sizeof(Elf64_Ehdr) || bytes > IMAGE_MAX || memcmp(image, ELFMAG, SELFMAG))
		return reason_set(why, -ENOEXEC, "'%s' is not a shared library", options->name);
	injected_library_name(options->name, image, bytes, j.name);
	err = run_job(&j, &o, why);
	if (!err)
		*ret_result = o.result;
	return err;
}

int inject_remove(const struct target_process *p, const struct inject_options *options,
		  struct reason *why, struct inject_result *ret_result, bool *ret_left)
{
	struct job j = {.p = p, .options = options};
	struct outcome o = {0};
	int err;

	(void)snprintf(j.name, sizeof(j.name), "%.24s-", options->name);
	err = run_job(&j, &o, why);
	if (err)
		return err;
	*ret_result = o.result;
	*ret_left = o.left;
	return 0;
}
