/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Checks what this machine, this user and (if given) this process allow: the lines of `gpuprof
 * doctor`.
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
	char advice[320]; /* what to do about a "no"; "" for a "yes" */
};

#define CAPABILITIES_MAX       16
#define CAPABILITIES_LATER_MAX 4

/* Tries each capability for real (loads a tiny BPF program, creates a ring, ...) and undoes it. `p`
 * NULL: only the machine. `later` holds up to CAPABILITIES_LATER_MAX results of the caller, listed
 * after ours. The last one, "attach", follows from all others. Returns how many were filled in. */
size_t capabilities_check(const struct target_process *p, const struct capability *later,
			  size_t later_nr, struct capability ret_capabilities[CAPABILITIES_MAX]);

/* Returns Yama's ptrace_scope; 0: only the kernel's own rules apply. */
int capabilities_yama_scope(void);

#endif /* GP_INSPECT_PROGRAM_CAPABILITIES_H */
