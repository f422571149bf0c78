/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A process that is or may be profiled: its identity, what is mapped in it, and what it runs. A
 * process is identified by (pid, start time), and every read of /proc checks that it is still the
 * same one.
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
	const char *path;      /* as the target sees it, without " (deleted)" */
	const char *open_path; /* the path by which gpuprof opens this very file, below
				  /proc/PID/root or map_files */
	uint64_t start;	       /* lowest address it is mapped at */
	uint64_t end;
	uint64_t base;	 /* load bias: address = base + ELF virtual address */
	bool base_known; /* false: a guess, as the file could not be read */
	dev_t device;
	ino_t inode;
	bool deleted;
	uint32_t since; /* the caller's change count when it appeared; it has stayed since */
};

/* The process's arguments. The process may have overwritten them with a title. */
struct target_arguments {
	char *text; /* each zero-terminated; the first 4 KiB of all */
	size_t bytes;
};

struct target_process {
	pid_t pid;		/* in gpuprof's own PID namespace */
	uint64_t start_ticks;	/* /proc/PID/stat field 22: with pid the identity */
	uint64_t start_boot_ns; /* the same in nanoseconds since boot */
	pid_t parent;		/* in gpuprof's own PID namespace; 0: none, or not visible there */
	pid_t ns_pid;		/* its pid in its own innermost PID namespace */
	uid_t uid;
	uint64_t stack_start;	 /* set by exec, and inherited by forks; 0: unknown */
	uint64_t signals_caught; /* bit N - 1: signal N has a handler */
	char comm[16];
	char *cmdline; /* the arguments joined by spaces; comm if there are none */
	struct target_arguments arguments;
	char *exe; /* path of the executable as the target sees it */
	bool other_user_ns, other_pid_ns, other_mnt_ns;
	struct target_library *libraries; /* sorted by start */
	size_t libraries_nr;
	uint32_t changes_nr; /* the caller's change count at the last reading */
};

/* Reads everything about the process. 0, or -errno with a reason that names the next step: -ESRCH
 * no such process (or a kernel thread), -EACCES no permission. The caller frees. */
int target_process__new(pid_t pid, struct reason *why, struct target_process **ret_process);
/* Frees the libraries of a process that has ended and keeps its identity. NULL is allowed. */
void target_process__shed(struct target_process *p);
void target_process__free(struct target_process *p);

/* Whether (pid, start time) still exists and is not a zombie; true if that cannot be determined
 * now. */
bool target_process__alive(const struct target_process *p);

/* Whether it has called exec since, by the address of its stack. That misses an exec once in
 * millions, and where addresses are not randomized. */
bool target_process__has_execed(const struct target_process *p);

/* Reads the mappings again; new libraries get p->changes_nr as `since`. 1 if libraries changed, 0
 * if not, or -errno. */
int target_process__update_libraries(struct target_process *p, struct reason *why);

/* Finds the library whose file name (after the last /) begins with prefix ("libtorch_cpu.so"), or
 * NULL. */
const struct target_library *target_process__library(const struct target_process *p,
						     const char *prefix);

/* Returns a variable of /proc/PID/environ in *ret_value, for the caller to free; -ENOENT: it is not
 * set. */
int target_process__environment(const struct target_process *p, const char *name, char **ret_value);
/* Returns the variable as an integer from 0 to INT32_MAX; -1: it is not set or not such a number.
 */
int32_t target_process__environment_number(const struct target_process *p, const char *name);

#endif /* GP_INSPECT_PROCESS_PROCESS_H */
