/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which program serves which probe, and which programs the options need.
 */
#include "probe/session/programs.h"

#include "gpuprof.skel.h"
#include "probe/plan/cuda_api.h"

#include <bpf/libbpf.h>

struct bpf_program *program_of(const struct gpuprof_bpf *bpf, enum program program)
{
	struct bpf_program *const programs[PROGRAMS_NR] = {
		[PROGRAM_EXIT] = bpf->progs.gp_op_exit,
		[PROGRAM_ENTRY] = bpf->progs.gp_op_entry,
		[PROGRAM_NEW] = bpf->progs.gp_cpu_new,
		[PROGRAM_DELETE] = bpf->progs.gp_cpu_delete,
		[PROGRAM_REPORT] = bpf->progs.gp_report_memory,
		[PROGRAM_LOADER] = bpf->progs.gp_loader,
		[PROGRAM_CATCH] = bpf->progs.gp_catch,
		[PROGRAM_OOM] = bpf->progs.gp_report_oom,
		[PROGRAM_NODE] = bpf->progs.gp_node_entry,
		[PROGRAM_DISPATCH_EXIT] = bpf->progs.gp_dispatch_exit,
		[PROGRAM_DISPATCH] = bpf->progs.gp_dispatch_entry,
		[PROGRAM_UNSEEN] = bpf->progs.gp_dispatch_unseen,
		[PROGRAM_RANGE] = bpf->progs.gp_range,
		[PROGRAM_API_EXIT] = bpf->progs.gp_api_exit,
		[PROGRAM_API_ENTRY] = bpf->progs.gp_api_entry,
		[PROGRAM_NVTX_POP] = bpf->progs.gp_nvtx_pop,
		[PROGRAM_NVTX_PUSH] = bpf->progs.gp_nvtx_push,
		[PROGRAM_NVTX_TOOL_POP] = bpf->progs.gp_nvtx_tool_pop,
		[PROGRAM_NVTX_TOOL_PUSH] = bpf->progs.gp_nvtx_tool_push,
		[PROGRAM_CODE_FREED] = bpf->progs.gp_code_freed,
		[PROGRAM_CPU_OOM] = bpf->progs.gp_cpu_oom,
	};

	return programs[program];
}

enum program program_for(const struct probe_function *fn, const struct probe_site *site)
{
	switch (fn->kind) {
	case PROBE_ALLOC:
		return PROGRAM_NEW;
	case PROBE_FREE:
		return PROGRAM_DELETE;
	case PROBE_REPORT:
		return PROGRAM_REPORT;
	case PROBE_LOADER:
		return PROGRAM_LOADER;
	case PROBE_CATCH:
		return PROGRAM_CATCH;
	case PROBE_OOM:
		return PROGRAM_OOM;
	case PROBE_CPU_OOM:
		return PROGRAM_CPU_OOM;
	case PROBE_NODE:
		return site->is_exit ? PROGRAM_EXIT : PROGRAM_NODE;
	case PROBE_DISPATCH:
		return site->is_exit ? PROGRAM_DISPATCH_EXIT : PROGRAM_DISPATCH;
	case PROBE_UNSEEN:
		return PROGRAM_UNSEEN;
	case PROBE_RANGE:
		return PROGRAM_RANGE;
	case PROBE_NVTX_PUSH:
		return PROGRAM_NVTX_PUSH;
	case PROBE_NVTX_POP:
		return PROGRAM_NVTX_POP;
	case PROBE_NVTX_TOOL_PUSH:
		return PROGRAM_NVTX_TOOL_PUSH;
	case PROBE_NVTX_TOOL_POP:
		return PROGRAM_NVTX_TOOL_POP;
	case PROBE_API:
		return site->is_exit ? PROGRAM_API_EXIT : PROGRAM_API_ENTRY;
	default:
		return site->is_exit ? PROGRAM_EXIT : PROGRAM_ENTRY;
	}
}

uint32_t program_group(const struct probe_options *options, const struct probe_function *fn)
{
	switch (fn->kind) {
	case PROBE_OP:
	case PROBE_NODE:
	case PROBE_CATCH:
	case PROBE_DISPATCH:
	case PROBE_UNSEEN:
	case PROBE_RANGE:
		return PROBE_GROUP_OPS;
	case PROBE_ALLOC:
	case PROBE_FREE:
		return PROBE_GROUP_MEMORY;
	case PROBE_API:
		/* The collector reports neither CUDA memory nor NCCL calls. */
		if (options->gpu && (cuda_api_is_nccl(fn->layout) ||
				     (options->memory && cuda_api_is_memory(fn->layout))))
			return GROUP_OTHER;
		return PROBE_GROUP_API;
	default:
		return GROUP_OTHER;
	}
}

bool program_is_asked_for(const struct probe_options *options, enum probe_kind kind)
{
	switch (kind) {
	case PROBE_NODE:
		return options->ops && !options->ops_alone;
	case PROBE_ALLOC:
	case PROBE_FREE:
	case PROBE_REPORT:
	case PROBE_OOM:
	case PROBE_CPU_OOM:
		return options->memory;
	case PROBE_OP:
	case PROBE_CATCH:
	case PROBE_DISPATCH:
	case PROBE_UNSEEN:
		return options->ops;
	case PROBE_RANGE:
	case PROBE_NVTX_TOOL_PUSH:
	case PROBE_NVTX_TOOL_POP:
	case PROBE_NVTX_PUSH:
	case PROBE_NVTX_POP:
		return options->ops && !options->ops_alone;
	default:
		return true;
	}
}

bool program_is_wanted(const struct probe_options *options, const struct refused_programs *refused,
		       enum probe_kind kind)
{
	return !(refused->kinds & 1u << kind) && program_is_asked_for(options, kind);
}

int programs_choose(const struct probe_options *options, const struct refused_programs *refused,
		    struct gpuprof_bpf *bpf)
{
	/* The cost of a hit is always measured with the entry program. */
	bool wanted[PROGRAMS_NR] = {
		[PROGRAM_ENTRY] = true,
		[PROGRAM_CODE_FREED] = options->stacks & GP_STACK_WANT_PYTHON,
	};
	int err = 0;

	for (enum probe_kind kind = PROBE_OP; kind <= PROBE_KIND_LAST; kind++)
		for (uint8_t is_exit = 0; is_exit <= 1 && program_is_wanted(options, refused, kind);
		     is_exit++)
			wanted[program_for(&(struct probe_function){.kind = kind},
					   &(struct probe_site){.is_exit = is_exit})] = true;
	for (enum program i = 0; i < PROGRAMS_NR && !err; i++)
		err = bpf_program__set_autoload(program_of(bpf, i), wanted[i]);
	return err;
}
