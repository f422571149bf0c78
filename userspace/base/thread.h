/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Threads of gpuprof beside its main one. Each has a name, by which /proc/PID/task tells them
 * apart, and no signal goes to any: those are for the threads that there were before. Faults of its
 * own still reach their handlers (base/shared_mapping.h).
 */
#ifndef GP_BASE_THREAD_H
#define GP_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* Starts one that may do what its starter may. `name` has at most 15 bytes. 0 or -errno. */
int thread_start(pthread_t *ret_thread, const char *name, void *(*work)(void *), void *arg);

/* Starts one that holds those of `capabilities` (bits 1 << CAP_*) that its starter has, and no
 * others, before `work` is called. 0 or -errno: where they cannot be given away it does not run. */
int thread_start_with(pthread_t *ret_thread, const char *name, uint64_t capabilities,
		      void *(*work)(void *), void *arg);

#endif /* GP_BASE_THREAD_H */
