/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sums of samples. All times are estimates, from numbers of samples that each stand for some time,
 * with their standard errors.
 */
#ifndef GP_TIMELINE_ANALYSIS_SAMPLE_TABLE_H
#define GP_TIMELINE_ANALYSIS_SAMPLE_TABLE_H

#include "base/intern.h"
#include "timeline/model/timeline.h"

/* What each row is for. */
enum sample_group {
	SAMPLE_BY_OP = 0,	/* an operator, by the stack */
	SAMPLE_BY_LINE = 1,	/* a line of Python */
	SAMPLE_BY_FUNCTION = 2, /* a function, native or Python's */
	SAMPLE_BY_THREAD = 3,
	SAMPLE_BY_ACTIVITY = 4, /* running, or what the thread waited for */
	SAMPLE_BY_STACK = 5,	/* the innermost frames */
	SAMPLE_BY_PROCESS = 6,
	SAMPLE_GROUP_NR = 7,
};

/* A number of samples, and the time that they stand for. */
struct sample_sum {
	uint64_t nr;
	uint64_t ns;
	double squares;	   /* sum of the squared times that each stands for */
	uint64_t error_ns; /* standard error of ns */
};

struct sample_row {
	const char *name;
	/* Samples of threads on a CPU: with this as the innermost of its kind; and with it anywhere
	 * on the stack, counted once. */
	struct sample_sum self, total;
	struct sample_sum off; /* with it anywhere, of threads that were not on a CPU */
	uint64_t waits_nr;     /* different ones in `off` */
	double looks_squares;  /* sum of squared times that one sample of each wait stood for */
	const uint32_t *stack; /* the recording's, innermost first; NULL unless grouped by stack */
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
	struct tl_part only; /* of these processes only */
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
