/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Attaching one BPF program to many instructions of one file, for one process: one uprobe_multi
 * link where the kernel has it (Linux 6.6), else one perf event for each instruction. A link is a
 * descriptor: closing it takes the probes away, and so does the death of gpuprof. Both functions
 * work behind the shield (base/killsafe_call.h), so that a kill -9 leaves none in place.
 */
#ifndef GP_PROBE_SESSION_LINK_H
#define GP_PROBE_SESSION_LINK_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors of what is attached. */
struct link_set {
	VEC(int) fds;
};

struct link_site {
	uint64_t offset; /* in the file */
	uint64_t cookie;
	uint32_t function; /* the caller's own */
	bool refused;	   /* told by link_attach(), */
	int error;	   /* and why: -errno */
};

enum link_method { LINK_UPROBE_MULTI = 1, LINK_PERF_EVENT = 2 };

/* Which the kernel has: tries it. GPUPROF_NO_UPROBE_MULTI=1 in the environment answers for it. */
enum link_method link_method_probe(void);

/* The program's expected attach type for the method, to be set before loading. */
unsigned int link_attach_type(enum link_method method);

/* Attaches to all sites that take it. Returns how many did, the descriptors appended to `set`; the
 * others are marked. -errno where no site would fare better: the process or the file has gone
 * (-ESRCH, -ENOENT), or the right to it, or there is no descriptor left. */
int link_attach(struct link_set *set, enum link_method method, int program_fd, pid_t pid,
		const char *path, struct link_site *sites, size_t nr);

/* Takes all away. */
void link_set__done(struct link_set *set);

#endif /* GP_PROBE_SESSION_LINK_H */
