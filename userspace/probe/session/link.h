/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Attaches one BPF program to many instructions of one file, for one process: with one uprobe_multi
 * link where the kernel has it (Linux 6.6), else with one perf event per instruction. A link is a
 * descriptor: closing it, or the death of gpuprof, removes the probes. Attaching and closing run as
 * a killsafe call (base/killsafe_call.h), so a SIGKILL leaves no probe in place.
 */
#ifndef GP_PROBE_SESSION_LINK_H
#define GP_PROBE_SESSION_LINK_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors of links or perf events. */
struct link_set {
	VEC(int) fds;
};

struct link_site {
	uint64_t offset; /* in the file */
	uint64_t cookie;
	uint32_t function; /* for the caller's use */
	bool refused;	   /* set by link_attach() */
	int error;	   /* the reason: -errno */
};

enum link_method { LINK_UPROBE_MULTI = 1, LINK_PERF_EVENT = 2 };

/* Tries which method the kernel supports. GPUPROF_NO_UPROBE_MULTI=1 in the environment excludes
 * uprobe_multi. */
enum link_method link_method_probe(void);

/* Returns the expected attach type that the program needs before it is loaded. */
unsigned int link_attach_type(enum link_method method);

/* Attaches to every site that accepts it. Returns how many did, and appends the descriptors to
 * `set`; marks the other sites. -errno where no site can succeed: the process or file is gone
 * (-ESRCH, -ENOENT), permission is missing, or no descriptor is left. */
int link_attach(struct link_set *set, enum link_method method, int program_fd, pid_t pid,
		const char *path, struct link_site *sites, size_t nr);

/* Closes all descriptors. */
void link_set__done(struct link_set *set);

#endif /* GP_PROBE_SESSION_LINK_H */
