/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Collection switched off and on again by the user, the CPU's side and GPUs each by itself.
 */
#ifndef GP_CAPTURE_CONTROL_PAUSE_H
#define GP_CAPTURE_CONTROL_PAUSE_H

#include "capture/control/controller.h"

struct control;
struct pause;

extern const struct controller_ops pause_ops;

/* For pause_ops, which free it. `control` is borrowed. NULL: out of memory. */
struct pause *pause__new(struct control *control);

#endif /* GP_CAPTURE_CONTROL_PAUSE_H */
