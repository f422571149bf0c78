/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Discovers the processes that the daemon captures. It reads /proc once a second. The older a
 * process is, the more rarely it is inspected again: inspecting costs time, and few processes load
 * PyTorch late. A process is reported after PyTorch or CUDA was seen in it twice: its libraries
 * have loaded by then, and short-lived processes are left alone.
 */
#ifndef GP_DAEMON_PROCESS_DISCOVERY_H
#define GP_DAEMON_PROCESS_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_discovery_options {
	const char *name;   /* only those with this pattern in the command line; NULL: all */
	const char *cgroup; /* only those in this control group; NULL: all */
	const pid_t *pids;  /* only these, whatever is in them */
	size_t pids_nr;
};

struct process_discovery;

/* Borrows what the options point to. NULL: out of memory. */
struct process_discovery *process_discovery__new(const struct process_discovery_options *options);
void process_discovery__free(struct process_discovery *f);

/* Scans /proc if a scan is due. 0 or -errno. */
int process_discovery__poll(struct process_discovery *f, uint64_t now_ns);

/* Finds the next process to capture; false: there is none now. The caller reports the outcome to
 * process_discovery__took(). */
bool process_discovery__next(struct process_discovery *f, uint64_t now_ns, pid_t *ret_pid);

/* Notes that the process is captured, or (err < 0) cannot be. In that case it is returned again
 * later, at most twice. */
void process_discovery__took(struct process_discovery *f, pid_t pid, int err, uint64_t now_ns);

/* Notes that the capture has ended: all captured processes have to be captured again. */
void process_discovery__forget(struct process_discovery *f);

/* The number of captured processes that still run. */
size_t process_discovery__taken(const struct process_discovery *f);

/* Whether this process is captured. */
bool process_discovery__has(const struct process_discovery *f, pid_t pid);

#endif /* GP_DAEMON_PROCESS_DISCOVERY_H */
