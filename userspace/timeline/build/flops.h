/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Floating-point operations of one operator, computed from its inputs. A multiply-add counts as two
 * operations.
 */
#ifndef GP_TIMELINE_BUILD_FLOPS_H
#define GP_TIMELINE_BUILD_FLOPS_H

#include <stddef.h>
#include <stdint.h>

struct flops {
	uint64_t torch; /* as torch.profiler counts with with_flops=True */
	uint64_t own;	/* as gpuprof counts; used only if no operator within it counts */
};

/* Computes those of an operator with this name and these inputs (in the form of gp_ev_inputs,
 * checked). 0 if there is no formula, or an input that it needs was not recorded. */
struct flops flops_of(const char *name, const void *inputs, size_t bytes);

/* Whether flops_of() has a formula for it. */
int flops_known(const char *name);

#endif /* GP_TIMELINE_BUILD_FLOPS_H */
