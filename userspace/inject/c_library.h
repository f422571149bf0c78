/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What injection must know of the target's C library, loader and allocator: the functions to call,
 * the code in which a thread may hold a lock that dlopen needs, and bytes of mapped code that no
 * code uses. All addresses are the target's.
 */
#ifndef GP_INJECT_C_LIBRARY_H
#define GP_INJECT_C_LIBRARY_H

#include "base/reason.h"
#include "base/vec.h"
#include "inject/memory_map.h"
#include "inject/tracee.h"
#include "inspect/process/process.h"

struct range {
	uint64_t start, end;
};

struct c_library {
	VEC(struct range) unsafe; /* sorted by start, not overlapping */
	VEC(struct range) own;	  /* the code of the C library and its loader */
	VEC(struct range) named;  /* the functions in it that have names */
	VEC(struct range) places; /* the unused ends of pages of code */
	uint64_t dlopen_at, dlsym_at, dlclose_at;
	uint64_t dlerror_at;	      /* 0: none */
	uint64_t dlopen_flag;	      /* to be added to the mode */
	VEC(uint64_t) signal_returns; /* what signal handlers return to */
};

/* Reads it. -ENOSYS if there is no glibc with dlopen (static, musl). 0 or -errno with a reason; the
 * caller calls c_library__done() either way. */
int c_library__read(const struct target_process *p, const struct memory_map *map,
		    const struct tracee *memory, struct reason *why, struct c_library *ret_library);
void c_library__done(struct c_library *c);

/* Whether an address lies in one of `nr` sorted ranges. */
bool ranges_hold(const struct range *ranges, size_t nr, uint64_t address);

#endif /* GP_INJECT_C_LIBRARY_H */
