/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Tries each kernel feature that a capture needs and undoes it. Each function returns 0 or the
 * -errno of the refusal. Only for inspect/.
 */
#ifndef GP_INSPECT_KERNEL_KERNEL_CHECKS_H
#define GP_INSPECT_KERNEL_KERNEL_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

/* Loads a BPF program of two instructions. */
int kernel_try_program(void);

/* Creates a BPF ring of this many bytes (a power of two). */
int kernel_try_ring(uint32_t bytes);

/* Sets a probe on a function of this program, for this process only: as one link of many probes
 * (Linux 6.6), or as a single perf uprobe. */
int kernel_try_uprobe_multi(void);
int kernel_try_uprobe(void);

/* Opens a software timer event, of a whole CPU or of this thread only. */
int kernel_try_perf_event(bool whole_cpu);

/* Traces a child that it creates. */
int kernel_try_ptrace(void);

#endif /* GP_INSPECT_KERNEL_KERNEL_CHECKS_H */
