/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GP_FEATURE_OPS: PyTorch's own operator observers, written to the ring as gp_ev_op. Armed and
 * disarmed by the collector's thread; the callbacks run on every thread of the target.
 */
#ifndef GP_COLLECTOR_TORCH_OPS_H
#define GP_COLLECTOR_TORCH_OPS_H

#include "collector/runtime/ring_writer.h"
#include "collector/torch/torch.h"

/* Once per process. 0 or -errno. */
int ops__init(void);

/* What ops are to tell besides, and why they do not: NULL if they do, or it was not asked for. */
struct ops_extras {
	bool shapes;			/* their inputs */
	bool tensors;			/* where the tensors among them lie */
	bool stacks;			/* Python's */
	bool modules;			/* calls of modules */
	bool calls;			/* which Python calls they share; with stacks alone */
	const struct gp_python *python; /* NULL: neither stacks nor modules */
	const char *shapes_why, *tensors_why, *stacks_why;
};

/* Readies what the callbacks need; ops__cover() adds them. Events go to `w`, which must stay until
 * ops__disarm() has returned true. why_text is set unless TORCH_BOUND; what `extras` says is set if
 * it is. */
enum torch_result ops__arm(struct ring_writer *w, struct ops_extras *extras, const char **why_text);

/* Why no stacks are taken any more though they were; NULL: nothing has happened to them. */
const char *ops__stacks_refused(void);

/* After ops__arm(): which are seen from now on; autograd nodes with both. Those that are open
 * meanwhile are whole or not there at all. */
void ops__cover(bool operators, bool annotations);

/* After ops__arm(): tells the thread's CPU time too, where an annotation ends that tells steps, and
 * such an annotation itself also if its beginning was not seen; `ends_alone`: does not look at
 * beginnings. Or no longer. */
void ops__emit_cpu_time(bool emit, bool ends_alone);

/* After ops__arm(): tells of allocations and frees of CPU memory too, or no longer; when it returns
 * nothing is told any more. Call it every turn that it is wanted. NULL, or why they are not told
 * (any more). */
const char *ops__emit_memory(bool emit);

/* Takes the callbacks away and waits for those at work, which is short. Ops still open are counted.
 * False if some thread does not leave its callback: the ring must then stay mapped. Fine when not
 * armed. */
bool ops__disarm(void);

/* Disarmed, and the ring goes: frees what is kept from one arming to the next. */
void ops__release(void);

/* In a fork's child: forgets all, touches nothing of PyTorch. */
void ops__forget(void);

#endif /* GP_COLLECTOR_TORCH_OPS_H */
