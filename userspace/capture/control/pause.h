/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Collection switched off and on again during a capture, of the CPU's side and of GPUs by itself.
 */
#ifndef GP_CAPTURE_CONTROL_PAUSE_H
#define GP_CAPTURE_CONTROL_PAUSE_H

#include "capture/private.h"

/* Follows what was asked for; called after each drain. */
void pause_poll(struct capture *c);

/* The capture ends: what is paused is so to the end. 0 or -errno. */
int pause_end(struct capture *c);

/* A recording ends now and another one begins: what is paused is so in both. 0 or -errno. */
int pause_split(struct capture *c, uint64_t now_ns);

/* For how long the CPU's side was off until now. */
uint64_t pause_total_ns(const struct capture *c, uint64_t now_ns);

#endif /* GP_CAPTURE_CONTROL_PAUSE_H */
