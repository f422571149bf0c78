/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names of kernels. A launch through the CUDA runtime names the kernel by the address of its host
 * function, whose symbol in the target's file is the kernel's own name; one through the driver by a
 * handle, which came with the name when the program asked for it.
 */
#ifndef GP_CAPTURE_SYMBOLS_KERNELS_H
#define GP_CAPTURE_SYMBOLS_KERNELS_H

#include "base/hash.h"
#include "base/vec.h"
#include "inspect/process/process.h"

struct kernel_symbols;
struct file_users;
struct intern;

struct kernels {
	struct hash known; /* hash of process and address -> index into names + 1, 0: none */
	VEC(struct kernel_symbols *) files;
	VEC(const char *) names;
	struct hash handles; /* hash of process and handle -> index into names + 1 */
	struct intern *texts;
	uint64_t nameless_nr; /* times that a name found no place or could not be read */
};

/* The mangled name, or NULL: the function has no symbol (a stripped file), what the target gives
 * for one is none, or (counted) it cannot be known now. Asked once for each address of which it can
 * be told. The text lives until kernels__done(). */
const char *kernels__name(struct kernels *k, const struct target_process *p, uint64_t function);

/* A recording begins: files that nobody maps, and of which nothing was asked in the two before, are
 * closed. */
void kernels__poll(struct kernels *k, const struct file_users *users);

/* What the driver calls a kernel: its handle, and its mangled name or (where that is "") another
 * handle of it. 0 or -ENOMEM. */
int kernels__learn(struct kernels *k, const struct target_process *p, uint64_t handle,
		   const char *name, uint64_t of);

/* The name of a handle, or NULL: it was made before the capture. As long as kernels__name()'s. */
const char *kernels__handle(const struct kernels *k, const struct target_process *p,
			    uint64_t handle);

void kernels__done(struct kernels *k);

#endif /* GP_CAPTURE_SYMBOLS_KERNELS_H */
