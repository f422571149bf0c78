/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Timelines made by hand, for the tests of the memory outputs. Any failure to allocate aborts.
 */
#ifndef GP_UNIT_MEMORY_EXAMPLE_H
#define GP_UNIT_MEMORY_EXAMPLE_H

#include "timeline/model/timeline.h"

/* An empty timeline of one process (pid 4242) with one thread, one second long. */
void example__init(struct timeline *t);
void example__done(struct timeline *t);

/* Each returns the position of what was added. Names are borrowed. */
uint32_t example__process(struct timeline *t, int32_t pid, const char *comm);
uint32_t example__thread(struct timeline *t, uint32_t process);
uint32_t example__op(struct timeline *t, const char *name, uint32_t parent, uint32_t scope);
uint32_t example__alloc(struct timeline *t, uint64_t time_us, int64_t bytes, uint32_t op);
uint32_t example__alloc_on(struct timeline *t, uint64_t time_us, int64_t bytes, uint32_t op,
			   uint32_t thread, int16_t type, int16_t index);
/* Frees an allocation by its position. */
uint32_t example__free(struct timeline *t, uint64_t time_us, uint32_t allocation);
/* A request that is refused. */
void example__refuse(struct timeline *t, uint64_t time_us, int64_t bytes, uint32_t op, int16_t type,
		     int16_t index);

/* A change of categories, of the first process; time 0: before the capture. */
void example__change(struct timeline *t, uint64_t time_us, enum tl_change change, int64_t bytes,
		     enum tl_category from, enum tl_category to, uint8_t device);

void example__loss(struct timeline *t, const char *name, uint64_t count);

#endif /* GP_UNIT_MEMORY_EXAMPLE_H */
