/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A process that is or may be profiled: who it is, what is mapped in it, what runs in it. A process
 * is (pid, start time); every look into /proc checks that it is still the same one.
 */
#ifndef GP_INSPECT_PROCESS_PROCESS_H
#define GP_INSPECT_PROCESS_PROCESS_H

#include "base/reason.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One file-backed library or executable mapped in the process. Strings belong to the process. */
struct target_library {
	const char *path; /* as the target sees it, without " (deleted)" */
	const char
		*open_path; /* how gpuprof opens the very file: below /proc/PID/root or map_files */
	uint64_t start;	    /* lowest address it is mapped at */
	uint64_t end;
	uint64_t base;	 /* load bias: address = base + ELF virtual address */
	bool base_known; /* else it is a guess, as the file could not be read */
	dev_t device;
	ino_t inode;
	bool deleted;
	uint32_t
		since; /* the caller's count of changes when it was here, and has been ever since */
};

/* What the process has as its arguments: the process may have written a title over them. */
struct target_arguments {
	char *text; /* each ends with a zero; only the first 4 KiB of all */
	size_t bytes;
};

struct target_process {
	pid_t pid;		/* in gpuprof's own PID namespace */
	uint64_t start_ticks;	/* /proc/PID/stat field 22: with pid the identity */
	uint64_t start_boot_ns; /* the same in nanoseconds since boot */
	pid_t parent;		/* in gpuprof's own PID namespace; 0: none, or not in there */
	pid_t ns_pid;		/* its pid in its own innermost PID namespace */
	uid_t uid;
	uint64_t stack_start;	 /* where exec put it: a fork has its parent's; 0: not known */
	uint64_t signals_caught; /* bit N - 1: signal N has a handler */
	char comm[16];
	char *cmdline; /* the arguments joined by spaces; comm if there are none */
	struct target_arguments arguments;
	char *exe; /* path of the executable as the target sees it */
	bool other_user_ns, other_pid_ns, other_mnt_ns;
	struct target_library *libraries; /* sorted by start */
	size_t libraries_nr;
	uint32_t changes_nr; /* the caller's count of changes when they were looked at */
};

/* Reads all of it. Returns 0 or -errno with a reason naming the next step: -ESRCH no such process
 * (or a kernel thread), -EACCES no right to look. The caller frees. */
int target_process__new(pid_t pid, struct reason *why, struct target_process **ret_process);
/* Of one that has ended: its libraries go, who it was stays. NULL is allowed. */
void target_process__shed(struct target_process *p);
void target_process__free(struct target_process *p);

/* Whether (pid, start time) still is this process and it has not become a zombie; true where that
 * cannot be told just now. */
bool target_process__alive(const struct target_process *p);

/* Whether it runs another program by now, as far as its stack's address tells: one time in
 * millions, or where addresses are not randomized, it lies where it lay. */
bool target_process__has_execed(const struct target_process *p);

/* Reads the mappings anew; those that are new get p->changes_nr as `since`. Returns 1 if libraries
 * changed, 0 if not, or -errno. */
int target_process__update_libraries(struct target_process *p, struct reason *why);

/* The library whose file name (after the last /) begins with prefix ("libtorch_cpu.so"), or NULL.
 */
const struct target_library *target_process__library(const struct target_process *p,
						     const char *prefix);

/* The text of /proc/PID/environ's variable in *ret_value (to be freed), or -ENOENT. */
int target_process__environment(const struct target_process *p, const char *name, char **ret_value);
/* The same as a whole number from 0 to INT32_MAX. -1: there is none, or it is no such number. */
int32_t target_process__environment_number(const struct target_process *p, const char *name);

#endif /* GP_INSPECT_PROCESS_PROCESS_H */
