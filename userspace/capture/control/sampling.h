/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The rate of samples of a capture: capture/policy/sampling_rate.h decides it, here it is measured
 * for and put in force.
 */
#ifndef GP_CAPTURE_CONTROL_SAMPLING_H
#define GP_CAPTURE_CONTROL_SAMPLING_H

#include "capture/control/controller.h"

struct control;
struct sampling;

extern const struct controller_ops sampling_ops;

/* For sampling_ops, which free it. `control` is borrowed. NULL: out of memory. */
struct sampling *sampling__new(struct control *control);

#endif /* GP_CAPTURE_CONTROL_SAMPLING_H */
