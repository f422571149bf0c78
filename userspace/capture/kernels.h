/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names of kernels that were launched through the CUDA runtime: a launch names the kernel by the
 * address of its host function, whose symbol in the target's file is the kernel's own name.
 */
#ifndef GP_CAPTURE_KERNELS_H
#define GP_CAPTURE_KERNELS_H

#include "base/hash.h"
#include "base/vec.h"
#include "target/process.h"

struct kernel_symbols;

struct kernels {
	struct hash known; /* hash of process and address -> index into names + 1, 0: none */
	VEC(struct kernel_symbols *) files;
	VEC(const char *) names;
};

/* The mangled name, or NULL: the function has no symbol (a stripped file), or what the target gives
 * for one is none. Files that cannot be read have no symbols. Asked once for each address. The text
 * lives until kernels__done(). */
const char *kernels__name(struct kernels *k, const struct target_process *p, uint64_t function);

void kernels__done(struct kernels *k);

#endif /* GP_CAPTURE_KERNELS_H */
