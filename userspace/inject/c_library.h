/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What injection needs to know of the process's C library, loader and allocator: the functions to
 * call, the code in which a thread may hold a lock that dlopen needs, and unused bytes of mapped
 * code. All addresses are the process's.
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
	VEC(struct range) named;  /* its named functions */
	VEC(struct range) places; /* the unused ends of code pages */
	uint64_t dlopen_at, dlsym_at, dlclose_at;
	uint64_t dlerror_at;	      /* 0: none */
	uint64_t dlopen_flag;	      /* added to the mode */
	VEC(uint64_t) signal_returns; /* return addresses of signal handlers */
};

/* Reads everything. 0 or -errno with a reason; -ENOSYS if there is no glibc with dlopen (static,
 * musl). The caller calls c_library__done() in any case. */
int c_library__read(const struct target_process *p, const struct memory_map *map,
		    const struct tracee *memory, struct reason *why, struct c_library *ret_library);
void c_library__done(struct c_library *c);

/* Whether one of `nr` sorted ranges contains the address. */
bool ranges_hold(const struct range *ranges, size_t nr, uint64_t address);

#endif /* GP_INJECT_C_LIBRARY_H */
