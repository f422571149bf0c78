/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * gpuprof's threads beside its main one. Each has a name, visible in /proc/PID/task, and blocks
 * signals, which go to the threads that existed before. Its own faults still reach their handlers
 * (base/shared_mapping.h).
 */
#ifndef GP_BASE_THREAD_H
#define GP_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* Starts a thread with its starter's capabilities. `name` has at most 15 bytes. 0 or -errno. */
int thread_start(pthread_t *ret_thread, const char *name, void *(*work)(void *), void *arg);

/* Starts a thread that drops all capabilities but `capabilities` (bits 1 << CAP_*), as far as its
 * starter has them, before it calls `work`. 0 or -errno; it does not run if it cannot drop them. */
int thread_start_with(pthread_t *ret_thread, const char *name, uint64_t capabilities,
		      void *(*work)(void *), void *arg);

#endif /* GP_BASE_THREAD_H */
