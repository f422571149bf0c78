/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Floating-point operations of one operator from what it was called with. A product of a x b is
 * counted as two operations for each term, as everyone does.
 */
#ifndef GP_TIMELINE_BUILD_FLOPS_H
#define GP_TIMELINE_BUILD_FLOPS_H

#include <stddef.h>
#include <stdint.h>

struct flops {
	uint64_t torch; /* as torch.profiler counts with with_flops=True */
	uint64_t own;	/* as we count; only where no operator within it is counted */
};

/* Of an operator of this name with these inputs (in the form of gp_ev_inputs, checked); 0 where
 * there is no formula or something that it needs was not recorded. */
struct flops flops_of(const char *name, const void *inputs, size_t bytes);

/* Whether flops_of() has a formula for it. */
int flops_known(const char *name);

#endif /* GP_TIMELINE_BUILD_FLOPS_H */
