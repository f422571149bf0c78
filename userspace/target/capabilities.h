/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What this machine, this user and (if given) this process allow: the lines of `gpuprof doctor`.
 */
#ifndef GP_TARGET_CAPABILITIES_H
#define GP_TARGET_CAPABILITIES_H

#include "target/process.h"

enum capability_answer { CAPABILITY_NO = 0, CAPABILITY_YES = 1, CAPABILITY_PARTLY = 2 };

struct capability {
	const char *name; /* "bpf", "btf", "uprobe_multi", "perf_event", "ring_memory", "ptrace",
			     "torch_symbols", "cuda", "cupti", "python_gc", "attach" */
	enum capability_answer answer;
	bool required;	  /* gpuprof attach cannot work here without it */
	char detail[160]; /* what was found */
	char advice[200]; /* what to do about a no, "" for a yes */
};

#define CAPABILITIES_MAX 16

/* Tries each one for real (loads a tiny BPF program, makes a ring, ...) and undoes it. `p` may be
 * NULL: only the machine. The last one, "attach", is what follows from the others. Returns how many
 * were filled in. */
size_t capabilities_check(const struct target_process *p,
			  struct capability ret_capabilities[CAPABILITIES_MAX]);

/* Yama's rule of who may trace whom (ptrace_scope), 0: none but the kernel's own. */
int capabilities_yama_scope(void);

#endif /* GP_TARGET_CAPABILITIES_H */
