/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What this machine, this user and (if given) this process allow: the lines of `gpuprof doctor`.
 */
#ifndef GP_INSPECT_PROGRAM_CAPABILITIES_H
#define GP_INSPECT_PROGRAM_CAPABILITIES_H

#include "inspect/process/process.h"

enum capability_answer { CAPABILITY_NO = 0, CAPABILITY_YES = 1, CAPABILITY_PARTLY = 2 };

struct capability {
	const char *name; /* "bpf", "btf", "uprobe_multi", "perf_event", "ring_memory", "ptrace",
			     "torch_symbols", "cuda", "cupti", "python_gc", "attach"; and of later
			     rooms "programs", "probes" */
	enum capability_answer answer;
	bool required;	  /* gpuprof attach cannot work here without it */
	char detail[160]; /* what was found */
	char advice[320]; /* what to do about a no, "" for a yes */
};

#define CAPABILITIES_MAX       16
#define CAPABILITIES_LATER_MAX 4

/* Tries each one for real (loads a tiny BPF program, makes a ring, ...) and undoes it. `p` may be
 * NULL: only the machine. `later` are up to CAPABILITIES_LATER_MAX that the caller has found out,
 * and come behind ours. The last one, "attach", is what follows from all. Returns how many were
 * filled in. */
size_t capabilities_check(const struct target_process *p, const struct capability *later,
			  size_t later_nr, struct capability ret_capabilities[CAPABILITIES_MAX]);

/* Yama's rule of who may trace whom (ptrace_scope), 0: none but the kernel's own. */
int capabilities_yama_scope(void);

#endif /* GP_INSPECT_PROGRAM_CAPABILITIES_H */
