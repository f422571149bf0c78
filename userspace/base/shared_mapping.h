/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Memory shared with a process that may be hostile. Its file may lose pages under our hands (cut by
 * its owner, or no memory is left for it), and touching them then is SIGBUS. This is the one place
 * that survives it: the whole mapping becomes zeros of our own, and says that it is lost. So
 * readers need no guard around each access; they check what they read anyway, and look whether the
 * mapping is lost where it matters.
 *
 * The handler of SIGBUS belongs to this file. Threads must not block that signal (thread_start()
 * does not).
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

/* Unmaps it; nobody may use it any more. NULL is allowed. */
void shared_mapping__free(struct shared_mapping *m);

/* The memory, page-aligned; the same address for as long as the mapping lives. */
void *shared_mapping__memory(const struct shared_mapping *m);

/* Whether the file has gone from under it: what is read from now on means nothing. Any thread. */
bool shared_mapping__is_lost(const struct shared_mapping *m);

/* Has fn called, in a signal handler, before a SIGBUS that has nothing to do with such a mapping
 * ends gpuprof. NULL: nothing more. */
void shared_mapping_before_death(void (*fn)(void));

#endif /* GP_BASE_SHARED_MAPPING_H */
