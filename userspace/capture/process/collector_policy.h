/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * When the collector of a process is put in, what it is asked for, and what happens when it leaves.
 * Logs what is missing, and why.
 */
#ifndef GP_CAPTURE_PROCESS_COLLECTOR_POLICY_H
#define GP_CAPTURE_PROCESS_COLLECTOR_POLICY_H

#include "capture/process/process_state.h"

/* All that it may be put in for. */
#define COLLECTOR_POLICY_ALL                                                                       \
	(GP_FEATURE_OPS | GP_FEATURE_SHAPES | GP_FEATURE_TENSORS | GP_FEATURE_STACKS |             \
	 GP_FEATURE_MODULES | GP_FEATURE_CALLS | GP_FEATURE_MEMORY | GP_FEATURE_CUPTI)

/* Puts it in for those of `features` that the capture's options want and the libraries in the
 * process allow. m->collector is NULL afterwards if there are none, or it could not be put in. */
void collector_policy_inject(struct process_set *s, struct traced_process *m, uint32_t features);

/* Stops one collector; its last events are taken meanwhile. `gone`: the process has ended. */
void collector_policy_stop(struct process_set *s, struct collector_client *g, bool gone);

/* Stops it, takes its last events and frees it. `gone`: what it was in is no more. */
void collector_policy_drop(struct process_set *s, struct traced_process *m, bool gone);

/* Takes in one that CUDA has loaded; where one has left, or takes no stacks any more, puts probes
 * in its place. */
void collector_policy_poll(struct process_set *s, struct traced_process *m);

/* Libraries have come into the process: CUDA, perhaps, or where there are no probes PyTorch. */
void collector_policy_follow_libraries(struct process_set *s, struct traced_process *m);

/* Whether there are no probes and the collector, which there should be in their place, could not be
 * put in: with a reason. */
bool collector_policy_was_all(const struct process_set *s, const struct traced_process *m,
			      struct reason *why);

/* How long its libraries need not be looked at again. */
uint64_t collector_policy_drain_deadline_ns(const struct process_set *s,
					    const struct traced_process *m);

/* CUPTI reports calls that uprobes reported, or no longer does: takes probes away or puts them
 * back. While it is not asked to, or has not answered yet, all stays as it is. Needs m->collector.
 */
void collector_policy_follow_cupti(struct process_set *s, struct traced_process *m);

/* The collector reports no allocations any more, as something else is in its way: by uprobes from
 * here on. Needs m->collector. */
void collector_policy_follow_memory(struct process_set *s, struct traced_process *m);

/* The program, which was to bring its collector along, has ended or become another. */
void collector_policy_emit_missing(struct process_set *s, const struct traced_process *m);

/* The same for a recording that ends, of a program that goes on; does not log. */
void collector_policy_note_missing(struct process_set *s, const struct traced_process *m);

#endif /* GP_CAPTURE_PROCESS_COLLECTOR_POLICY_H */
