/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Watches for a slow step, memory that is refused, and a program that hangs. Each is written into
 * the recording in progress.
 */
#ifndef GP_CAPTURE_CONTROL_TRIGGERS_H
#define GP_CAPTURE_CONTROL_TRIGGERS_H

#include "capture/control/controller.h"

struct control;
struct triggers;

extern const struct controller_ops triggers_ops;

/* For triggers_ops, which free it; by control->options->triggers. `control` is borrowed. NULL: out
 * of memory. */
struct triggers *triggers__new(struct control *control);

/* As capture__trigger() and capture__take_trigger(). */
void triggers__fire(struct triggers *t, enum gp_trigger what);
bool triggers__take(struct triggers *t, struct gp_ev_trigger *ret_trigger);

#endif /* GP_CAPTURE_CONTROL_TRIGGERS_H */
