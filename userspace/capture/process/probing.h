/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Probing one traced process: its libraries, its Python, where its code lies.
 */
#ifndef GP_CAPTURE_PROCESS_PROBING_H
#define GP_CAPTURE_PROCESS_PROBING_H

#include "capture/process/process_state.h"

/* Probes what the process's collector does not report. How many probes more, or -errno with a
 * reason. */
int probing_attach(struct process_set *s, struct traced_process *m, struct reason *why);

/* Finds the Python of a process that has just been taken in, before the collector is put in, which
 * is to know. 0, or -errno with a reason: it is to be refused. */
int probing_find_python_early(struct process_set *s, struct traced_process *m, struct reason *why);

/* Has the kernel walk the stacks of a process that has been probed. 0 or -errno with a reason. */
int probing_walk_python(struct process_set *s, struct traced_process *m, struct reason *why);

/* Both for a program that is being started, which comes to its Python by and by. Logs what is
 * wrong. */
void probing_find_python_later(struct process_set *s, struct traced_process *m);

/* Where native stacks are wanted: where code lies in the process now. */
void probing_follow_code(struct process_set *s, struct traced_process *m);

/* Reads which libraries are mapped. 1 if they have changed since they were probed, 0 if not, or
 * -errno with a reason. */
int probing_update_libraries(struct process_set *s, struct traced_process *m, struct reason *why);

/* The same, if what is mapped has changed since the last look. */
void probing_follow_maps(struct process_set *s, struct traced_process *m);

#endif /* GP_CAPTURE_PROCESS_PROBING_H */
