/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One recording after another while events flow, whenever that is asked for.
 */
#ifndef GP_CAPTURE_CONTROL_ROTATION_H
#define GP_CAPTURE_CONTROL_ROTATION_H

#include "capture/control/controller.h"

struct control;
struct rotation;

extern const struct controller_ops rotation_ops;

/* For rotation_ops, which free it. Both are borrowed. NULL: out of memory. */
struct rotation *rotation__new(struct control *control, struct controllers *controllers);

/* The next poll ends the recording in progress and begins the next one, as soon as the one before
 * has ended. */
void rotation__request(struct rotation *r);

#endif /* GP_CAPTURE_CONTROL_ROTATION_H */
