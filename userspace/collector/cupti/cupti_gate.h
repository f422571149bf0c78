/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Who may call CUPTI on our behalf: one thread at a time. That is the collector's thread, until the
 * process ends by exit(); then it is the thread that ends it, which never leaves.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_GATE_H
#define GP_COLLECTOR_CUPTI_CUPTI_GATE_H

#include <stdbool.h>

/* Enters, once nobody else is inside. False: the process is ending, and nobody enters any more. */
bool cupti_gate__enter(void);
void cupti_gate__leave(void);

/* For the thread that ends the process: enters for good, waiting for two seconds at most. False:
 * the collector's thread has not left, or an earlier call has entered; the gate stays shut. */
bool cupti_gate__enter_at_exit(void);
/* Shuts the gate for all others, once the exiting thread is done. */
void cupti_gate__shut(void);

/* Whether a thread waits to enter at exit, so that whoever is inside should hurry. */
bool cupti_gate__is_exiting(void);

/* In a fork's child, where nobody is inside. */
void cupti_gate__forget(void);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_GATE_H */
