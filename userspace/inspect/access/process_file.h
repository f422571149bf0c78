/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The only way to open a file that a traced process names. The process may be hostile: it can
 * replace any file by a FIFO, a device or a symbolic link at any moment. So a path is resolved
 * inside the process's root to a handle (O_PATH), which has no effect on the file; the handle is
 * checked; and only then is the file itself opened, without ever waiting. tests/lint/opens.py
 * refuses every other open in rooms that see such paths.
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

/* Opens a handle (O_PATH) to the regular file at `path`; *ret_st (may be NULL) describes it. It
 * cannot be read from; process_file_handle_path() gives a path of it for system calls. Returns a
 * descriptor that the caller closes, -ENOEXEC if it is not a regular file, or another -errno. */
int process_file_handle(const char *path, struct stat *ret_st);

/* Writes a path that leads to an open descriptor or handle of gpuprof, whatever happens to the
 * file's names. */
void process_file_handle_path(int fd, char ret_path[PROCESS_FILE_PATH_MAX]);

/* Opens the regular file at `path` for reading; *ret_st (may be NULL) describes it. Never waits:
 * -EAGAIN if the process holds a lease on it. Returns a descriptor that the caller closes, or as
 * process_file_handle(). */
int process_file_open(const char *path, struct stat *ret_st);

/* Describes the regular file at `path`. 0 or as process_file_handle(). */
int process_file_stat(const char *path, struct stat *ret_st);

/* Reads at most max_bytes of the regular file `path`, as the process sees it. *ret_text is
 * terminated and the caller's to free. 0 or as process_file_handle(). */
int process_file_read(pid_t pid, const char *path, size_t max_bytes, char **ret_text);

/* Calls fn for each name in the directory `path`, as the process sees it, until fn returns
 * non-zero. Returns 0, fn's result, or -errno. */
int process_folder_each_name(pid_t pid, const char *path, int (*fn)(const char *name, void *arg),
			     void *arg);

/* Where an unnamed file of the process may lie. */
enum process_made {
	PROCESS_MADE_IN_MEMORY, /* it is a memory file (memfd_create(2)) */
	PROCESS_MADE_IN_TMPFS,	/* or an unlinked file in a tmpfs */
	PROCESS_MADE_ANYWHERE,	/* or in any file system, which may block for ever: only where a
				   deadline ends this process */
};

/* Opens, for reading and writing, the file behind descriptor `number` of thread `tid`, if `most`
 * allows where it lies, fits(name, arg) accepts the last name that it had, it does not belong to
 * another user, and no file system has a link to it. It opens nothing else, however the process
 * swaps its descriptors. *ret_st describes the file, whose size may still change unless a seal
 * forbids that; *ret_made says where it lies. Returns a descriptor that the caller closes, -EPROTO
 * if it is another file, or another -errno. */
int process_made_file_open(pid_t tid, const char *number, enum process_made most,
			   bool (*fits)(const char *name, const void *arg), const void *arg,
			   struct stat *ret_st, enum process_made *ret_made);

#endif /* GP_INSPECT_ACCESS_PROCESS_FILE_H */
