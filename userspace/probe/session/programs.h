/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which program serves which probe, and which programs the options need.
 */
#ifndef GP_PROBE_SESSION_PROGRAMS_H
#define GP_PROBE_SESSION_PROGRAMS_H

struct bpf_program;
struct gpuprof_bpf;

#include "base/vec.h"
#include "probe/plan/plan.h"
#include "probe/session/session.h"

#include <stdbool.h>
#include <stdint.h>

/* The programs, in the order in which they are attached: exits before entries, so that an op whose
 * start is seen is also seen to end. */
enum program {
	PROGRAM_EXIT = 0,
	PROGRAM_ENTRY = 1,
	PROGRAM_NEW = 2,
	PROGRAM_DELETE = 3,
	PROGRAM_REPORT = 4,
	PROGRAM_LOADER = 5,
	PROGRAM_CATCH = 6,
	PROGRAM_OOM = 7,
	PROGRAM_NODE = 8,
	PROGRAM_DISPATCH_EXIT = 9,
	PROGRAM_DISPATCH = 10,
	PROGRAM_UNSEEN = 11,
	PROGRAM_RANGE = 12,
	PROGRAM_API_EXIT = 13,
	PROGRAM_API_ENTRY = 14,
	PROGRAM_NVTX_POP = 15,
	PROGRAM_NVTX_PUSH = 16,
	PROGRAM_NVTX_TOOL_POP = 17,
	PROGRAM_NVTX_TOOL_PUSH = 18,
	PROGRAM_CODE_FREED = 19, /* in no plan: see session_python.c */
	PROGRAM_CPU_OOM = 20,
	PROGRAMS_NR = 21,
};

/* Beside enum probe_group: probes of what the collector never reports. */
#define GROUP_OTHER 4

/* The programs that the kernel refuses and that the session can do without. */
struct refused_programs {
	VEC(const char *) names; /* static texts */
	uint32_t kinds;		 /* 1 << enum probe_kind: the probes that need them */
	bool no_tick;		 /* the kernel refuses sampling within the scheduler's tick */
};

/* Borrowed from the skeleton. */
struct bpf_program *program_of(const struct gpuprof_bpf *bpf, enum program program);

/* The program that runs at this site of the function. */
enum program program_for(const struct probe_function *fn, const struct probe_site *site);

/* The group of a function's probes: one bit of enum probe_group, or GROUP_OTHER. */
uint32_t program_group(const struct probe_options *options, const struct probe_function *fn);

/* Whether the options ask for probes of this kind. */
bool program_is_asked_for(const struct probe_options *options, enum probe_kind kind);

/* Whether they do and the kernel accepts the programs that it takes. */
bool program_is_wanted(const struct probe_options *options, const struct refused_programs *refused,
		       enum probe_kind kind);

/* Before loading: turns off the programs that no probe will use. 0 or -errno. */
int programs_choose(const struct probe_options *options, const struct refused_programs *refused,
		    struct gpuprof_bpf *bpf);

#endif /* GP_PROBE_SESSION_PROGRAMS_H */
