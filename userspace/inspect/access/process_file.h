/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The only way to open a file that a profiled process names. Such a process may be hostile: it can
 * put a FIFO, a device or a symbolic link in the place of any file, at any moment. So a path is
 * resolved inside the process's root, to a handle (O_PATH) which does nothing to the file; the
 * handle is checked; and only what it stands for is opened, without ever waiting.
 * tests/lint/opens.py refuses every other open in rooms that see such paths.
 *
 * Paths: what follows "/proc/PID/root" is resolved inside that root, symbolic links too. Every
 * other path is gpuprof's own ("/proc/PID/map_files/...", "/usr/lib/debug/...") and is resolved as
 * usual.
 */
#ifndef GP_INSPECT_ACCESS_PROCESS_FILE_H
#define GP_INSPECT_ACCESS_PROCESS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#define PROCESS_FILE_PATH_MAX 32

/* A handle (O_PATH) to the regular file at `path`; *ret_st (may be NULL) describes it. It cannot be
 * read from; process_file_handle_path() names it for system calls that take a path. Returns a
 * descriptor that the caller closes, -ENOEXEC if it is no regular file, or another -errno. */
int process_file_handle(const char *path, struct stat *ret_st);

/* The path that stands for an open descriptor or handle of gpuprof's own, whatever happens to the
 * names that it was found by. */
void process_file_handle_path(int fd, char ret_path[PROCESS_FILE_PATH_MAX]);

/* Opens the regular file at `path` for reading; *ret_st (may be NULL) describes it. Never waits:
 * -EAGAIN where a lease of the process's stands in the way. Returns a descriptor that the caller
 * closes, or as process_file_handle(). */
int process_file_open(const char *path, struct stat *ret_st);

/* Describes the regular file at `path`. 0 or as process_file_handle(). */
int process_file_stat(const char *path, struct stat *ret_st);

/* Reads at most max_bytes of the regular file `path`, as the process sees it. *ret_text is
 * terminated and the caller's to free. 0 or as process_file_handle(). */
int process_file_read(pid_t pid, const char *path, size_t max_bytes, char **ret_text);

/* Calls fn for each name in the directory `path`, as the process sees it, until it returns
 * non-zero. 0, what fn returned, or -errno. */
int process_folder_each_name(pid_t pid, const char *path, int (*fn)(const char *name, void *arg),
			     void *arg);

/* Where a file without a name may lie that a process has made. */
enum process_made {
	PROCESS_MADE_IN_MEMORY, /* it is a memory file (memfd_create(2)) */
	PROCESS_MADE_IN_TMPFS,	/* or a file in a tmpfs whose name has been taken away */
	PROCESS_MADE_ANYWHERE,	/* or in any file system, which may keep us waiting for ever: only
				 * where a deadline ends this process */
};

/* Opens for reading and writing what descriptor `number` of thread `tid` stands for, if it is a
 * file as `most` says whose name, the last one that it had, fits(name, arg), no other user's, and
 * with no link in any file system. Nothing else is opened, however the process swaps its
 * descriptors. *ret_st describes it; its size may still change unless a seal forbids that.
 * *ret_made: what it is. Returns a descriptor that the caller closes, -EPROTO if it is another
 * file, or another -errno. */
int process_made_file_open(pid_t tid, const char *number, enum process_made most,
			   bool (*fits)(const char *name, const void *arg), const void *arg,
			   struct stat *ret_st, enum process_made *ret_made);

#endif /* GP_INSPECT_ACCESS_PROCESS_FILE_H */
