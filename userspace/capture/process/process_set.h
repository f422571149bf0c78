/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The traced processes of a capture: taken in, probed, and watched until they end.
 */
#ifndef GP_CAPTURE_PROCESS_PROCESS_SET_H
#define GP_CAPTURE_PROCESS_PROCESS_SET_H

#include "capture/process/process_state.h"

/* Takes a process in and probes it. 0 or -errno with a reason: -EEXIST if it is in already. */
int process_set__join(struct process_set *s, pid_t pid, bool is_child, struct reason *why);

/* What the process has started and is still there joins, if the options say so. */
void process_set__join_children(struct process_set *s, pid_t pid);

/* The kernel reports a fork, an exec or an exit of a process that is in it. */
void process_set__note_event(struct process_set *s, struct traced_process *m,
			     const struct gp_ev_process *ev);

/* Looks for what has become of the processes and acts on it. Returns how many of those are still
 * there that were added, not started by others. */
int process_set__poll(struct process_set *s);

/* The capture starts: what collectors report from now on counts. */
void process_set__begin(struct process_set *s);

/* How long to wait for events, if it is to be at most timeout_ms: nothing wakes gpuprof when a
 * collector's ring fills. */
int process_set__timeout_ms(const struct process_set *s, int timeout_ms);

/* Asks all collectors to report nothing more, and does not wait. */
void process_set__silence(struct process_set *s);

/* Whether no collector reports anything any more but what is CUPTI's. */
bool process_set__is_silent(const struct process_set *s);

/* Stops all collectors; their last events are taken meanwhile. */
void process_set__stop(struct process_set *s);

/* Takes the collectors out and frees. Events must not be taken any more. */
void process_set__done(struct process_set *s);

#endif /* GP_CAPTURE_PROCESS_PROCESS_SET_H */
