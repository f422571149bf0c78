/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The Python stack of each thread's innermost op, for the BPF programs, which would otherwise walk
 * the same stack again. struct gp_stack_top says when an entry is valid. Each thread writes its own
 * entry only, and the BPF programs run on that same thread between two of its instructions.
 */
#ifndef GP_COLLECTOR_PYTHON_STACK_CACHE_H
#define GP_COLLECTOR_PYTHON_STACK_CACHE_H

#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

/* Makes the table, once per process; a fork's child finds it empty. 0, or -errno if there is none.
 */
int stack_cache__init(void);

/* The table's address; 0: there is none. */
uint64_t stack_cache__address(void);

/* The calling thread's entry; NULL: another thread has it, or there is no table. */
struct gp_stack_top *stack_cache__claim(void);

/* Frees the entry of the calling thread, which ends. NULL is fine. */
void stack_cache__give_back(struct gp_stack_top *top);

/* Empties the table, while no thread can be writing to it. */
void stack_cache__clear(void);

/* Writes `as` to the entry, except for `self`; `as` NULL invalidates it. `top` NULL is fine. */
void stack_cache__put(struct gp_stack_top *top, const struct gp_stack_top *as);

#endif /* GP_COLLECTOR_PYTHON_STACK_CACHE_H */
