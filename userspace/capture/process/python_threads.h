/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Where the threads of a capture's processes are in Python, read from outside while they run or
 * wait.
 */
#ifndef GP_CAPTURE_PROCESS_PYTHON_THREADS_H
#define GP_CAPTURE_PROCESS_PYTHON_THREADS_H

#include "capture/process/process_state.h"

/* Writes an event and a stack for each thread of a process whose Python is known (Python stacks are
 * wanted). What moves while it is read is left out or marked. 0 or -errno. */
int python_threads_write(struct process_set *s, uint64_t now_ns);

#endif /* GP_CAPTURE_PROCESS_PYTHON_THREADS_H */
