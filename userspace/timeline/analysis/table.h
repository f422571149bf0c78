/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * key_averages(): sums of ops by name, as in torch.profiler. Pure; output/ formats it.
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
	uint64_t bounded_calls; /* of these, calls that an exception left: their end is a bound */
	uint64_t self_cpu_ns, cpu_total_ns;
	uint64_t self_cuda_ns, cuda_total_ns;
	int64_t self_cpu_bytes, cpu_bytes;
	int64_t self_cuda_bytes, cuda_bytes;
	uint64_t flops;	    /* as in torch.profiler's column */
	uint64_t all_flops; /* gpuprof's count, of these ops and what they called */
	/* The stack of the first op, innermost first, at most table_options.by_stack frames; the
	 * recording's. NULL unless grouped by stack. */
	const uint32_t *stack;
	size_t stack_nr;
	bool is_forward_stack; /* the stack is of the forward op, as these are backward ops */
	bool is_async;
	bool is_user_annotation;
	bool has_parent;   /* of the first op, by which torch.profiler decides what is top-level */
	uint32_t first_op; /* of the timeline, TL_NONE for [memory] rows */
	uint32_t depth;	   /* in the tree of modules */
	/* Estimates for the whole, where the table has them: everything else is of the windows
	 * alone. */
	struct estimate estimates[ESTIMATES_NR];
};

/* What else distinguishes rows. */
enum table_parts { TABLE_WHOLE = 0, TABLE_BY_RANK = 1, TABLE_BY_PROCESS = 2 };

struct table_options {
	bool by_overload;
	bool by_shape;
	enum table_parts parts;
	struct tl_part only; /* of these processes only */
	uint32_t by_stack;   /* group by this many innermost frames; 0: not by stack */
	const char *sort;    /* a key of torch.profiler; NULL: by first appearance */
	bool by_module; /* one row per nn.Module, none for operators; excludes other grouping */
	bool tree;    /* with by_module: one row for each place of a module in the others, below the
			 one that calls it; not sorted */
	bool between; /* the time between operators: one row for each pair of places, the two frames
			 of its stack; excludes other grouping */
	bool top_level;	 /* only rows whose first op has no parent */
	bool compensate; /* CPU times of ops without what callbacks in them took; not with `between`
			  */
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
	bool is_tree;			   /* and in tree order */
	enum table_parts parts;		   /* what else distinguishes rows */
	uint32_t longest_name;		   /* in characters, over all rows, including hidden ones */
	bool has_cuda_time;		   /* any row, including hidden ones, has self CUDA time */
	bool has_cuda_memory;
	struct compensation compensation; /* its ops exist while rows are added */
	bool has_estimates;		  /* the capture was within a budget */
	/* What the estimates are from; only with has_estimates. */
	struct table_windows {
		size_t nr;
		uint64_t steps_nr, all_steps_nr; /* both 0: windows are by time */
		double share_of_time;
		uint64_t ns;	    /* their summed duration */
		uint64_t inside_ns; /* of that, the cost of observing within the processes, as
				       measured then */
		struct estimate self_cpu_total_ns; /* of all rows */
	} windows;
	bool has_flops;	      /* requested */
	uint64_t least_flops; /* the least above zero over all rows, including hidden ones; 0: none,
				 or not requested */
	uint64_t least_all_flops; /* the same of all_flops */
	struct gpu_flops gpu;	  /* of the whole capture; only with has_flops */
};

/* Builds a table. -EINVAL with a reason if the sort key is unknown (the reason lists the valid
 * ones), or if the recording lacks what compensation needs; else 0 or -ENOMEM. */
int table__new(const struct timeline *t, const struct table_options *options, struct reason *why,
	       struct table **ret_table);
void table__free(struct table *table);

/* For CLEANUP. */
static inline void cleanup_table(struct table **p)
{
	table__free(*p);
}

/* Adds bytes, saturating: a damaged recording could overflow the sum. */
static inline int64_t table_plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Whether `key` is a sort key; and all keys in order, NULL-terminated. */
bool table_sort_key_known(const char *key);

/* Whether a sort key is `name`, one of table_sort_keys, or would be with "cuda" in place of another
 * word for the device. */
bool table_sort_key_is(const char *key, const char *name);

/* Whether any row has a value for the key, which is valid. */
bool table_has_any_of(const struct table *table, const char *key);
extern const char *const table_sort_keys[];

#endif /* GP_TIMELINE_ANALYSIS_TABLE_H */
