/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A capture by steps: a schedule over the steps of the first process, one recording for each cycle.
 * A recording holds more than its window says: what came while the schedule warmed up, and what was
 * read before it was known that a step had ended. timeline/ leaves that out.
 */
#ifndef GP_CAPTURE_CONTROL_SCHEDULE_RUNNER_H
#define GP_CAPTURE_CONTROL_SCHEDULE_RUNNER_H

#include "capture/control/controller.h"

struct control;
struct schedule_runner;

extern const struct controller_ops schedule_runner_ops;

/* For schedule_runner_ops, which free it; by control->options->schedule. `control` is borrowed.
 * NULL: out of memory. */
struct schedule_runner *schedule_runner__new(struct control *control);

#endif /* GP_CAPTURE_CONTROL_SCHEDULE_RUNNER_H */
