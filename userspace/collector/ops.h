/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GP_FEATURE_OPS: PyTorch's own operator observers, written to the ring as gp_ev_op. Armed and
 * disarmed by the collector's thread; the callbacks run on every thread of the target.
 */
#ifndef GP_COLLECTOR_OPS_H
#define GP_COLLECTOR_OPS_H

#include "collector/ring_writer.h"
#include "collector/torch.h"

/* Once per process. 0 or -errno. */
int ops__init(void);

/* Why something is not to be had, NULL where it is. */
struct ops_why {
	const char *ops, *shapes, *tensors;
};

/* Adds the callbacks. Events go to `w`, which must stay until ops__disarm() has returned true.
 * `wanted` has bits of enum gp_feature: the ops tell their shapes and tensors, too, if they are
 * wanted and can be had. why->ops is set unless TORCH_BOUND, the others if TORCH_BOUND. */
enum torch_result ops__arm(struct ring_writer *w, uint32_t wanted, struct ops_why *why);

/* Takes the callbacks away and waits for those at work, which is short. Ops still open are counted.
 * False if some thread does not leave its callback: the ring must then stay mapped. Fine when not
 * armed. */
bool ops__disarm(void);

/* In a fork's child: forgets all, touches nothing of PyTorch. */
void ops__forget(void);

#endif /* GP_COLLECTOR_OPS_H */
