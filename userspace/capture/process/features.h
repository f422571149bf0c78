/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which collection is on, over all processes of a capture.
 */
#ifndef GP_CAPTURE_PROCESS_FEATURES_H
#define GP_CAPTURE_PROCESS_FEATURES_H

#include "capture/process/process_state.h"

/* Has the collectors do these features (enum gp_feature bits) alone, of those that they were put in
 * for, and the kernel's programs work or not. Does not wait. */
void features_set(const struct process_set *s, uint32_t features, bool kernel);

/* Whether all collectors do what they were asked to last. */
bool features_follow(const struct process_set *s);

/* In how many processes the collector has one of these features in force. */
unsigned int features_active_nr(const struct process_set *s, uint32_t features);

/* Whether the first process's collector reports operators or steps, so that its steps can be found
 * without probes. */
bool features_show_steps(const struct process_set *s);

#endif /* GP_CAPTURE_PROCESS_FEATURES_H */
