/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GP_FEATURE_MEMORY: allocations and frees of PyTorch's CPU allocator, written to the ring as
 * gp_ev_memory. libc10 calls New and Delete of c10::ProfiledCPUMemoryReporter through two words of
 * its procedure linkage table. While hooked, those words lead to wrappers of ours. Calls from other
 * libraries are not seen; none of PyTorch's makes them (1.13, 2.6, 2.14). All on the collector's
 * thread, except for memory__forget().
 */
#ifndef GP_COLLECTOR_TORCH_MEMORY_H
#define GP_COLLECTOR_TORCH_MEMORY_H

/* Puts the wrappers in, or checks that they still are. NULL, or why they are not in. */
const char *memory__hook(void);

/* Takes the wrappers out; the words and their protection are as before. A word that somebody else
 * has changed stays as it is. Fine when not hooked. */
void memory__unhook(void);

/* The same in a fork's child, which has a copy of the words. */
void memory__forget(void);

#endif /* GP_COLLECTOR_TORCH_MEMORY_H */
