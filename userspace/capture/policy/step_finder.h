/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Steps of one process while it runs, from the stream of its finished ops: the same rules as
 * timeline/build/steps.c, but what has been decided stays decided. Annotations that PyTorch makes
 * are believed once one has come three times; where there are none, a cycle of ops that no other
 * one called, once it has been seen to go on. Memory is bounded.
 */
#ifndef GP_CAPTURE_POLICY_STEP_FINDER_H
#define GP_CAPTURE_POLICY_STEP_FINDER_H

#include "common/step_annotations.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

struct step_finder;

/* NULL: out of memory. */
struct step_finder *step_finder__new(void);
void step_finder__free(struct step_finder *f);

/* One finished op. `name` is its name. Returns true if it ends a step and with it begins the next,
 * at *ret_time_ns: also the first time that this is known. -ENOMEM is told by `failed`. */
bool step_finder__op(struct step_finder *f, const struct gp_ev_op *op, const char *name,
		     uint64_t *ret_time_ns);
bool step_finder__failed(const struct step_finder *f);

/* Annotations are enough to see the steps; false too while nothing is decided. */
bool step_finder__by_annotations(const struct step_finder *f);

/* The annotation that decides, "" for a cycle, NULL while nothing is decided. */
const char *step_finder__marker(const struct step_finder *f);

/* Operators in the cycle; 0: there is none. */
uint32_t step_finder__cycle(const struct step_finder *f);

#endif /* GP_CAPTURE_POLICY_STEP_FINDER_H */
