/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * CUPTI's records in a capture of samples within a budget: on in windows of time, as often as half
 * of the budget allows, or all the time where that is enough. Between windows CUPTI stays attached
 * with its records off.
 */
#ifndef GP_CAPTURE_CONTROL_GPU_WINDOWS_H
#define GP_CAPTURE_CONTROL_GPU_WINDOWS_H

#include "capture/control/controller.h"

struct control;
struct gpu_windows;

extern const struct controller_ops gpu_windows_ops;

/* For gpu_windows_ops, which free it. `control` is borrowed. NULL: out of memory. */
struct gpu_windows *gpu_windows__new(struct control *control);

#endif /* GP_CAPTURE_CONTROL_GPU_WINDOWS_H */
