/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which right is missing when the kernel refuses something, and who can give it: the user on a
 * machine, or whoever starts the container, in the words of Docker and of Kubernetes.
 */
#ifndef GP_INSPECT_PROCESS_RIGHTS_H
#define GP_INSPECT_PROCESS_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

enum right {
	RIGHT_BPF = 1,	  /* to load BPF programs and to set probes */
	RIGHT_PERF = 2,	  /* to open events of the whole machine */
	RIGHT_PTRACE = 4, /* to trace processes of others */
	RIGHT_SYS = 8,	  /* to see /sys/kernel/btf */
};

/* Numbers of linux/capability.h. */
#define RIGHTS_CAP_SYS_PTRACE 19

/* Whether gpuprof has the capability, in its own user namespace. */
bool rights_have(int capability);

/* Whether gpuprof sees the kernel's own pids: 1: it is in the first PID namespace; 0: it is not; or
 * -errno. */
int rights_in_first_pid_namespace(void);

/* Whether gpuprof runs in a container, as far as that shows. */
bool rights_in_container(void);

/* "none", "integrity" or "confidentiality"; "" where the kernel does not tell. The string is
 * static. */
const char *rights_lockdown(void);

/* What is missing for the right and the next step, as "WHAT is missing; STEP", into `to`. */
void rights_explain(enum right right, char *to, size_t bytes);

#endif /* GP_INSPECT_PROCESS_RIGHTS_H */
