/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * key_averages(): ops added up by name, as torch.profiler does it. Pure; formatting
 * is output/'s.
 */
#ifndef GP_TIMELINE_ANALYSIS_TABLE_H
#define GP_TIMELINE_ANALYSIS_TABLE_H

#include "timeline/analysis/peak.h"
#include "timeline/build/compensate.h"
#include "timeline/build/op_gaps.h"
#include "timeline/model/timeline.h"
#include "timeline/read/estimate.h"

enum table_device { TABLE_CPU = 0, TABLE_CUDA = 1 };

struct table_row {
	const char *name;     /* the timeline's, which must outlive the table */
	const char *overload; /* NULL unless grouped by it */
	const char *shapes;   /* of the inputs, "[[2, 3], []]"; NULL unless grouped by them */
	int64_t part;	      /* rank or PID of its processes, -1: none, or not grouped by it */
	enum table_device device;
	uint64_t calls;
	uint64_t bounded_calls; /* of these: an exception left them, their end is a bound */
	uint64_t self_cpu_ns, cpu_total_ns;
	uint64_t self_cuda_ns, cuda_total_ns;
	int64_t self_cpu_bytes, cpu_bytes;
	int64_t self_cuda_bytes, cuda_bytes;
	uint64_t flops;	    /* as torch.profiler's column has it */
	uint64_t all_flops; /* ours, of these ops and what they called */
	/* Of the first op, innermost first, at most table_options.by_stack frames; the recording's.
	 * NULL unless grouped by it. */
	const uint32_t *stack;
	size_t stack_nr;
	bool is_forward_stack; /* of the forward op, because these are backward ops */
	bool is_async;
	bool is_user_annotation;
	bool has_parent;   /* of the first op, as torch.profiler decides what is top-level */
	uint32_t first_op; /* of the timeline, TL_NONE for [memory] rows */
	uint32_t depth;	   /* in the tree of modules */
	/* Of the whole, where the table has estimates: all else is of the windows alone. */
	struct estimate estimates[ESTIMATES_NR];
};

/* What else tells rows apart. */
enum table_parts { TABLE_WHOLE = 0, TABLE_BY_RANK = 1, TABLE_BY_PROCESS = 2 };

struct table_options {
	bool by_overload;
	bool by_shape;
	enum table_parts parts;
	struct tl_part only; /* what happened in those processes */
	uint32_t by_stack;   /* a row for each so many innermost frames; 0: stacks do not count */
	const char *sort;    /* torch.profiler's keys, NULL: order of first appearance */
	bool by_module; /* a row for each nn.Module, none for operators; nothing else groups then */
	bool tree;	/* by_module: one for each place of a module in the others, each under the
			 * one that calls it; not sorted */
	bool between;	/* the time between operators, a row for each pair of places it lies
			 * between: the two frames of its stack; nothing else groups then */
	bool top_level; /* only rows whose first op has no parent */
	bool compensate; /* CPU times of ops less what callbacks took in them; not with `between` */
};

struct table {
	VEC(struct table_row) rows;
	uint64_t self_cpu_total_ns; /* the divisor of the CPU percentages: sum over all rows */
	uint64_t self_cuda_total_ns;
	const struct recording *recording; /* whose frames the stacks name */
	bool has_memory;		   /* memory was captured */
	bool has_stacks;		   /* rows are grouped by stack */
	struct tl_gaps gaps;		   /* whose frames the rows show */
	bool has_modules;		   /* rows are modules */
	bool is_tree;			   /* and in the order of a tree */
	enum table_parts parts;		   /* what else tells rows apart */
	uint32_t longest_name;		   /* in characters, over all rows, also those left out */
	bool has_cuda_time;		   /* any row has self CUDA time, also those left out */
	bool has_cuda_memory;
	struct compensation compensation; /* its ops are there while rows are added */
	bool has_estimates;		  /* of a capture within a budget */
	/* What they are from; only with has_estimates. */
	struct table_windows {
		size_t nr;
		uint64_t steps_nr, all_steps_nr; /* both 0: windows are by time */
		double share_of_time;
		uint64_t ns;	    /* how long they were, together */
		uint64_t inside_ns; /* of that, what watching cost in the processes, as told then */
		struct estimate self_cpu_total_ns; /* of all rows */
	} windows;
	bool has_flops;		  /* they were wanted */
	uint64_t least_flops;	  /* above zero, over all rows, also those left out; 0: none, or
				   * they were not wanted */
	uint64_t least_all_flops; /* the same of all_flops */
	struct gpu_flops gpu;	  /* of the whole capture; only with has_flops */
};

/* -EINVAL with a reason: listing the valid keys if sort is unknown, or because the recording does
 * not tell what is to be compensated for; else 0 or -ENOMEM. */
int table__new(const struct timeline *t, const struct table_options *options, struct reason *why,
	       struct table **ret_table);
void table__free(struct table *table);

/* For CLEANUP. */
static inline void cleanup_table(struct table **p)
{
	table__free(*p);
}

/* Sums of bytes: a damaged recording can make them overflow. */
static inline int64_t table_plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Whether it is a sort key; the keys in order, NULL-terminated. */
bool table_sort_key_known(const char *key);

/* Whether any row has something by the key, which is known. */
bool table_has_any_of(const struct table *table, const char *key);
extern const char *const table_sort_keys[];

#endif /* GP_TIMELINE_ANALYSIS_TABLE_H */
