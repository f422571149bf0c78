/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GP_FEATURE_OPS and GP_FEATURE_STEPS: PyTorch's own operator observers, written to the ring as
 * gp_ev_op. The collector's thread arms and disarms them; the callbacks run on every thread of the
 * process.
 */
#ifndef GP_COLLECTOR_TORCH_OPS_H
#define GP_COLLECTOR_TORCH_OPS_H

#include "collector/runtime/ring_writer.h"
#include "collector/torch/torch.h"

/* Call it before the others; may be repeated. 0 or -errno. */
int ops__init(void);

/* What to record of ops besides, and why it is not recorded. A reason is NULL if it is, or if it
 * was not asked for. */
struct ops_extras {
	bool shapes;			/* their inputs */
	bool tensors;			/* where the tensors among them are stored */
	bool stacks;			/* Python stacks */
	bool modules;			/* module calls */
	bool calls;			/* which Python calls ops share; only with stacks */
	const struct gp_python *python; /* NULL: neither stacks nor modules */
	const char *shapes_why, *tensors_why, *stacks_why;
};

/* Prepares everything that the callbacks need; ops__cover() adds them. Events go to `w`, which must
 * stay until ops__disarm() has returned true. With TORCH_BOUND the reasons in `extras` are set,
 * else why_text is. */
enum torch_result ops__arm(struct ring_writer *w, struct ops_extras *extras, const char **why_text);

/* Why stacks are no longer taken; NULL: they are, or were not wanted. */
const char *ops__stacks_refused(void);

/* After ops__arm(): selects what is recorded from now on. Autograd nodes need both. An op that is
 * open at the change is recorded whole or not at all. */
void ops__cover(bool operators, bool annotations);

/* After ops__arm(): switches CPU time on or off. While on, the end of a step annotation
 * (common/step_annotations.h) writes the thread's CPU time, and the annotation itself even if its
 * beginning was not seen. `ends_alone`: beginnings of annotations are ignored. */
void ops__emit_cpu_time(bool emit, bool ends_alone);

/* After ops__arm(): switches events of CPU allocations and frees on or off. Once switched off, none
 * is written after the return. Call it each turn while they are wanted, to check the hook. NULL, or
 * why there are none (any more). */
const char *ops__emit_memory(bool emit);

/* Removes the callbacks and waits for those that are running, which takes little time. Counts ops
 * that are still open. False if a thread does not leave its callback: then the ring must stay
 * mapped. Fine when not armed. */
bool ops__disarm(void);

/* After ops__disarm(), before the ring is closed: frees what is kept between armings. */
void ops__release(void);

/* Forgets everything in a fork's child, without touching PyTorch. */
void ops__forget(void);

#endif /* GP_COLLECTOR_TORCH_OPS_H */
