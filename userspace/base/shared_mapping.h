/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Memory shared with a process that may be hostile. Its file can lose pages at any time: its owner
 * truncates it, or no memory is left for it. Touching such a page raises SIGBUS. Only this file
 * handles that: it replaces the whole mapping by private zeros and marks it as lost. So readers
 * need no guard around each access. They validate what they read anyway, and check whether the
 * mapping is lost where it matters.
 *
 * The SIGBUS handler belongs to this file. Threads must not block that signal (thread_start() does
 * not).
 */
#ifndef GP_BASE_SHARED_MAPPING_H
#define GP_BASE_SHARED_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

struct shared_mapping;

/* Maps the first `bytes` of the file for reading and writing, shared. The caller frees. 0 or
 * -errno.
 */
int shared_mapping__new(int fd, size_t bytes, struct shared_mapping **ret_mapping);

/* Unmaps and frees it; no pointer into it may be used any more. NULL is allowed. */
void shared_mapping__free(struct shared_mapping *m);

/* Returns the memory, page-aligned, at the same address for as long as the mapping lives. */
void *shared_mapping__memory(const struct shared_mapping *m);

/* Whether the mapping has lost its file: what is read from now on means nothing. Any thread. */
bool shared_mapping__is_lost(const struct shared_mapping *m);

/* Sets the function to call, in a signal handler, before a SIGBUS from anywhere else ends gpuprof.
 * NULL: none. */
void shared_mapping_before_death(void (*fn)(void));

#endif /* GP_BASE_SHARED_MAPPING_H */
