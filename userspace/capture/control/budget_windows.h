/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A capture within a budget: collection is on in windows alone, of whole steps of the first process
 * where annotations mark them, else of some time. In between the collectors report the ends of
 * those annotations, or nothing where that is over the budget, and no probe is placed.
 * capture/policy/budget.h decides when.
 */
#ifndef GP_CAPTURE_CONTROL_BUDGET_WINDOWS_H
#define GP_CAPTURE_CONTROL_BUDGET_WINDOWS_H

#include "capture/control/controller.h"

struct control;
struct budget_windows;

extern const struct controller_ops budget_windows_ops;

/* For budget_windows_ops, which free it. `control` is borrowed. NULL: out of memory. */
struct budget_windows *budget_windows__new(struct control *control);

#endif /* GP_CAPTURE_CONTROL_BUDGET_WINDOWS_H */
