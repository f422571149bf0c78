/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GP_FEATURE_MEMORY: allocations and frees of PyTorch's CPU allocator, written to the ring as
 * gp_ev_memory. libc10's own calls of c10::ProfiledCPUMemoryReporter's New and Delete go through
 * two words of its procedure linkage table; while hooked those lead through wrappers of ours. None
 * of PyTorch's other libraries calls them (1.13, 2.6, 2.14); calls of somebody else's are not seen.
 * On the collector's thread, but for what a fork's child forgets.
 */
#ifndef GP_COLLECTOR_TORCH_MEMORY_H
#define GP_COLLECTOR_TORCH_MEMORY_H

/* Puts the wrappers in; if they are in, looks whether they still are. NULL, or why not: then none
 * is in. */
const char *memory__hook(void);

/* Takes them out again: the words and their protection are as before. A word that somebody else has
 * changed meanwhile stays as it is. Fine when not hooked. */
void memory__unhook(void);

/* In a fork's child, which has a copy of the words: the same. */
void memory__forget(void);

#endif /* GP_COLLECTOR_TORCH_MEMORY_H */
