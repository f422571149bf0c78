/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the hit of a probe costs on this machine, measured on a child of our own: with a program
 * that has nothing to do, so the kernel's way to it and back. x86-64.
 */
#ifndef GP_PROBE_SESSION_TRAP_COST_H
#define GP_PROBE_SESSION_TRAP_COST_H

#include "probe/session/link.h"

#include <stdint.h>

struct trap_cost {
	uint64_t ns;	     /* the probed instruction is emulated; 0: not known */
	uint64_t stepped_ns; /* it is single-stepped; 0: not known */
};

/* Measures both, in some 10 ms. The program must do nothing but return for a process that is not
 * captured. The links are appended to `links`: to take them away now would take longer than all the
 * rest, and nobody is left who hits them. What cannot be measured stays 0. */
void trap_cost__measure(struct link_set *links, enum link_method method, int program_fd,
			struct trap_cost *ret_cost);

#endif /* GP_PROBE_SESSION_TRAP_COST_H */
