/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which collection is on, over all processes of a capture.
 */
#ifndef GP_CAPTURE_COLLECTOR_FEATURES_H
#define GP_CAPTURE_COLLECTOR_FEATURES_H

#include "capture/private.h"

/* Has the collectors do these features (enum gp_feature bits) alone, of those that they were put in
 * for, and the kernel's programs work or not. Does not wait. */
void set_features(struct capture *c, uint32_t features, bool kernel);

/* Whether all collectors do what they were asked to last. */
bool collect_follows(const struct capture *c);

#endif /* GP_CAPTURE_COLLECTOR_FEATURES_H */
