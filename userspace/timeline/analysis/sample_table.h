/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Samples added up. All times are estimates: so many samples, each standing for so much time. Their
 * standard errors come with them.
 */
#ifndef GP_TIMELINE_ANALYSIS_SAMPLE_TABLE_H
#define GP_TIMELINE_ANALYSIS_SAMPLE_TABLE_H

#include "base/intern.h"
#include "timeline/model/timeline.h"

/* What a row stands for. */
enum sample_group {
	SAMPLE_BY_OP = 0,	/* an operator, by the stack */
	SAMPLE_BY_LINE = 1,	/* a line of Python */
	SAMPLE_BY_FUNCTION = 2, /* a function, native or Python's */
	SAMPLE_BY_THREAD = 3,
	SAMPLE_BY_ACTIVITY = 4, /* running, or what was waited for */
	SAMPLE_BY_STACK = 5,	/* the innermost frames */
	SAMPLE_BY_PROCESS = 6,
	SAMPLE_GROUP_NR = 7,
};

/* A number of samples, and what they stand for. */
struct sample_sum {
	uint64_t nr;
	uint64_t ns;
	double squares;	   /* sum of what each of them stands for, squared */
	uint64_t error_ns; /* standard error of ns */
};

struct sample_row {
	const char *name;
	/* Of threads on a CPU: with this as the innermost of its kind, and with it anywhere on the
	 * stack, once a sample. */
	struct sample_sum self, total;
	struct sample_sum off; /* with it anywhere, of threads that were on no CPU */
	uint64_t waits_nr;     /* different ones in `off` */
	double looks_squares;  /* what one look at each of those stood for, squared */
	const uint32_t *stack; /* the recording's, innermost first; NULL unless grouped by it */
	size_t stack_nr;
	uint64_t last; /* the sample that was added last, plus one */
};

struct sample_table {
	VEC(struct sample_row) rows;
	struct sample_sum all; /* of threads on a CPU */
	struct intern *texts;
	const struct recording *recording;
};

struct sample_table_options {
	enum sample_group group;
	uint32_t frames;     /* of SAMPLE_BY_STACK, at least 1 */
	struct tl_part only; /* of those processes */
	bool by_total;	     /* sorted by total instead of self */
	bool by_off;	     /* sorted by off */
};

/* 0 or -ENOMEM. The timeline must outlive it. */
int sample_table__new(const struct timeline *t, const struct sample_table_options *options,
		      struct sample_table **ret_table);
void sample_table__free(struct sample_table *table);

/* For CLEANUP. */
static inline void cleanup_sample_table(struct sample_table **p)
{
	sample_table__free(*p);
}

#endif /* GP_TIMELINE_ANALYSIS_SAMPLE_TABLE_H */
