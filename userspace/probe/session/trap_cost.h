/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Measures what a probe's hit costs on this machine, with a child process and a program that does
 * nothing: the kernel's path to the program and back. x86-64.
 */
#ifndef GP_PROBE_SESSION_TRAP_COST_H
#define GP_PROBE_SESSION_TRAP_COST_H

#include "probe/session/link.h"

#include <stdint.h>

struct trap_cost {
	uint64_t ns;	     /* for an emulated instruction; 0: unknown */
	uint64_t stepped_ns; /* for a single-stepped one; 0: unknown */
};

/* Measures both, in some 10 ms. The program must return at once for a process that is not captured.
 * Appends the links to `links`: closing them here would take longer than the measurement, and
 * nothing hits them any more. A cost that cannot be measured is 0. */
void trap_cost__measure(struct link_set *links, enum link_method method, int program_fd,
			struct trap_cost *ret_cost);

#endif /* GP_PROBE_SESSION_TRAP_COST_H */
