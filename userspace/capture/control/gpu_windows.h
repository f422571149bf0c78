/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * CUPTI's records in a capture of samples that keeps to a budget: on in windows of time, as often
 * as half of the budget allows, or all the time where that is enough. In between CUPTI stays taken,
 * with its records off.
 */
#ifndef GP_CAPTURE_CONTROL_GPU_WINDOWS_H
#define GP_CAPTURE_CONTROL_GPU_WINDOWS_H

#include "capture/private.h"

struct gpu_windows;

/* NULL: out of memory. */
struct gpu_windows *gpu_windows__new(void);
void gpu_windows__free(struct gpu_windows *w);

/* The capture starts. 0 or -errno. */
int gpu_windows_start(struct capture *c);

/* How long to wait for events, if it is to be at most timeout_ms. */
int gpu_windows_timeout(const struct capture *c, int timeout_ms);

/* Between two drains: opens and closes. */
void gpu_windows_poll(struct capture *c);

/* The recording in progress ends here, and the next one begins. 0 or -errno. */
int gpu_windows_split(struct capture *c, uint64_t now_ns);

/* The recording in progress is read from here on. 0 or -errno. */
int gpu_windows_flush(struct capture *c, uint64_t now_ns);

/* The capture stops at c->end_ns; every event has been taken. 0 or -errno. */
int gpu_windows_end(struct capture *c);

/* The share of the processes' CPU time that it has taken lately. */
double gpu_windows_share(const struct capture *c);

#endif /* GP_CAPTURE_CONTROL_GPU_WINDOWS_H */
