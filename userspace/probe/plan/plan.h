/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Plans which instructions of a function to probe. Entry: the first instruction at which the return
 * address is still on top of the stack (or at a known distance) and the arguments are intact,
 * preferably one that the kernel emulates. Exit: the cheapest set of instructions inside the
 * function such that every normal return passes exactly one and nothing else does; never a return
 * probe, because an exception that crosses one kills the process. Plans are cached on disk, see
 * plan_cache.h.
 */
#ifndef GP_PROBE_PLAN_PLAN_H
#define GP_PROBE_PLAN_PLAN_H

struct intern;

#include "base/reason.h"
#include "base/vec.h"
#include "inspect/elf/elf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The kind of a probed function; decides the BPF program and the meaning of the cookie's id. */
enum probe_kind {
	PROBE_OP = 1,	  /* at::_ops::NAME::call: entry and exits */
	PROBE_NODE = 2,	  /* torch::autograd::Engine::evaluate_function: entry and exits */
	PROBE_ALLOC = 3,  /* c10::ProfiledCPUMemoryReporter::New: entry */
	PROBE_FREE = 4,	  /* c10::ProfiledCPUMemoryReporter::Delete: entry */
	PROBE_LOADER = 5, /* the loader's _dl_debug_state: entry */
	PROBE_REPORT = 6, /* c10::reportMemoryUsageToProfiler: entry */
	PROBE_CATCH = 7,  /* the C++ runtime's __cxa_begin_catch: entry */
	PROBE_OOM = 8,	  /* c10::reportOutOfMemoryToProfiler: entry */
	/* A function that calls an operator without its at::_ops::NAME::call, such as the
	 * dispatcher's boxed call: probed where it asks for callbacks, and at its exits. */
	PROBE_DISPATCH = 9,
	PROBE_UNSEEN = 10, /* such a function whose exits do not show when the operator ended: that
			      one place */
	PROBE_RANGE = 11,  /* a function that begins a range of record_function(): entry */
	PROBE_API = 12,	   /* a function of the CUDA API: entry, and exits where possible */
	PROBE_NVTX_PUSH = 13, /* nvtxRangePushA: entry */
	PROBE_NVTX_POP = 14,  /* nvtxRangePop: entry */
	/* The collector's own NVTX functions, to which the ones above forward, and the only ones if
	 * those have no symbol: entry. */
	PROBE_NVTX_TOOL_PUSH = 15,
	PROBE_NVTX_TOOL_POP = 16,
	PROBE_CPU_OOM = 17, /* c10::ProfiledCPUMemoryReporter::OutOfMemory: entry */
	PROBE_KIND_LAST = PROBE_CPU_OOM,
};

/* The largest probe_site.sp_delta that a cookie can hold. */
#define PROBE_SP_DELTA_MAX 0x3fff

/* One instruction to probe. */
struct probe_site {
	uint64_t offset;   /* in the file */
	uint32_t function; /* index into probe_plan.functions */
	int16_t sp_delta;  /* entry sites only: stack pointer at function entry minus that at the
			      site, in bytes */
	uint8_t is_exit;
	uint8_t emulated; /* the kernel emulates the instruction: cheap */
};

/* How an operator's name was found. */
enum probe_named {
	PROBE_NAMED_SCHEMA = 0, /* by the library's schema text */
	PROBE_NAMED_ENDING = 1, /* by the end of another schema text, as linkers merge strings */
	PROBE_NAMED_SYMBOL = 2, /* not found: taken from the symbol, overload unknown */
};

/* The texts belong to the plan. */
struct probe_function {
	const char *symbol;   /* mangled */
	const char *name;     /* as torch.profiler prints it: "aten::add" */
	const char *overload; /* "Tensor", or "" */
	const char *why;      /* why it has no site, "" if it has */
	uint8_t kind;	      /* enum probe_kind */
	uint8_t placed;	      /* it has sites; 0: see `why` */
	uint8_t named;	      /* enum probe_named */
	uint8_t layout;	      /* PROBE_API: enum gp_api_layout */
	/* The code in the file that the plan was made from. */
	uint32_t code_bytes;
	uint64_t code_offset;
};

/* A class of autograd nodes, recognised by its virtual table. */
struct probe_node {
	uint64_t table;	  /* ELF address that an object's first word points to */
	const char *name; /* as Node::name() returns it: "AddmmBackward0" */
};

struct probe_plan {
	struct stat file; /* the file that it was made from, by its handle */
	VEC(struct probe_function) functions;
	VEC(struct probe_site) sites;
	VEC(struct probe_node) nodes;
	struct intern *texts;
	uint32_t not_placed_nr;
	uint32_t single_stepped_nr; /* sites that the kernel single-steps */
	bool old_strings;	    /* std::string as before GCC 5: one pointer to the text */
};

/* Plans every catalogue function that the file defines. `cache_dir` NULL: no cache. 0 (a plan,
 * perhaps without functions) or -errno with a reason. The caller frees it with probe_plan__free().
 */
int probe_plan__new(const char *path, const char *cache_dir, struct reason *why,
		    struct probe_plan **ret_plan);
void probe_plan__free(struct probe_plan *plan);

#endif /* GP_PROBE_PLAN_PLAN_H */
