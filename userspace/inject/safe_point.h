/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Whether a stopped thread may call dlopen now: none of the functions that it is in holds a lock of
 * the allocator, the loader or the thread library. For a thread that waits in a system call, every
 * word of its stack is checked, which can only err towards "no". If a word points into such a
 * function, and for all other threads, the stack is unwound exactly.
 */
#ifndef GP_INJECT_SAFE_POINT_H
#define GP_INJECT_SAFE_POINT_H

#include "inject/c_library.h"
#include "inject/memory_map.h"
#include "inject/tracee.h"
#include "inject/unwind.h"

enum safety {
	SAFE = 0,
	UNSAFE_CODE = 1,     /* in the allocator, the loader, ... */
	UNSAFE_STACK = 2,    /* a stack that cannot be unwound */
	UNSAFE_THREAD = 3,   /* no thread of the C library (no thread control block) */
	UNSAFE_SEQUENCE = 4, /* in a restartable sequence */
	UNSAFE_MODE = 5,     /* 32-bit code */
};

/* Describes it: "in the allocator, the loader or ...". */
const char *safety_text(enum safety s);

/* For a thread in STOP_INTERRUPT; `ns_tid` is its id in its own PID namespace. */
enum safety safe_point_check(const struct tracee *t, struct unwinder *u,
			     const struct memory_map *map, const struct c_library *c, pid_t ns_tid,
			     const struct user_regs_struct *r);

/* Whether the thread runs in, or will return to, code in [start, end). Errs towards yes. */
bool thread_is_in(const struct tracee *t, struct unwinder *u, const struct memory_map *map,
		  const struct c_library *c, const struct user_regs_struct *r, uint64_t start,
		  uint64_t end);

struct range_list {
	VEC(struct range) ranges; /* sorted by start, not overlapping */
};

enum whereabouts {
	WHERE_OUTSIDE = 0, /* neither runs nor returns to this code, nor holds locks */
	WHERE_WITHIN = 1,  /* runs or returns to it, or this cannot be determined */
	WHERE_WAITING = 2, /* as before, in a function that waits; or it waits and this cannot be
			      determined */
	/* Started in this code, or in an allocator's: one of the library's own threads. */
	WHERE_OWN = 3,
};

/* Where a stopped thread is with respect to the code of some libraries. */
enum whereabouts thread_whereabouts(const struct tracee *t, struct unwinder *u,
				    const struct memory_map *map, const struct c_library *c,
				    const struct user_regs_struct *r,
				    const struct range_list *libraries,
				    const struct range_list *waiting);

#endif /* GP_INJECT_SAFE_POINT_H */
