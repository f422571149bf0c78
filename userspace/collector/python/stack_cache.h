/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What each thread's innermost op began under, for the kernel's programs to read where they would
 * walk the same stack again: struct gp_stack_top says when that may be believed. A place is the
 * thread's own to write; the kernel's programs run on that very thread, between any two of its
 * instructions.
 */
#ifndef GP_COLLECTOR_PYTHON_STACK_CACHE_H
#define GP_COLLECTOR_PYTHON_STACK_CACHE_H

#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

/* Once per process; a fork's child finds all places empty. 0 or -errno: there are none. */
int stack_cache__init(void);

/* Where the table lies, 0: there is none. */
uint64_t stack_cache__address(void);

/* The calling thread's place, or NULL: another thread has it, or there is no table. */
struct gp_stack_top *stack_cache__claim(void);

/* The calling thread ends. NULL is fine. */
void stack_cache__give_back(struct gp_stack_top *top);

/* Empties all places. No thread may be about to say something. */
void stack_cache__clear(void);

/* Says what `as` says, but for `self`; or, with `as` NULL, nothing. `top` NULL is fine. */
void stack_cache__put(struct gp_stack_top *top, const struct gp_stack_top *as);

#endif /* GP_COLLECTOR_PYTHON_STACK_CACHE_H */
