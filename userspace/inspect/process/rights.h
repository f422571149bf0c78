/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Explains which right is missing when the kernel refuses something, and how to get it: for a user
 * on a machine, or for whoever starts the container, in the terms of Docker and Kubernetes.
 */
#ifndef GP_INSPECT_PROCESS_RIGHTS_H
#define GP_INSPECT_PROCESS_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

enum right {
	RIGHT_BPF = 1,	  /* load BPF programs and set probes */
	RIGHT_PERF = 2,	  /* open events of the whole machine */
	RIGHT_PTRACE = 4, /* trace other users' processes */
	RIGHT_SYS = 8,	  /* read /sys/kernel/btf */
};

/* Numbers of linux/capability.h. */
#define RIGHTS_CAP_SYS_PTRACE 19

/* Whether gpuprof has the capability, in its own user namespace. */
bool rights_have(int capability);

/* Whether gpuprof is in the kernel's first PID namespace, so that its pids are the kernel's: 1 yes,
 * 0 no, or -errno. */
int rights_in_first_pid_namespace(void);

/* Whether gpuprof seems to run in a container. */
bool rights_in_container(void);

/* Returns the kernel's lockdown level: "none", "integrity" or "confidentiality"; "" if unknown. The
 * string is static. */
const char *rights_lockdown(void);

/* Writes what is missing for the right and the next step, as "WHAT is missing; STEP". */
void rights_explain(enum right right, char *to, size_t bytes);

#endif /* GP_INSPECT_PROCESS_RIGHTS_H */
