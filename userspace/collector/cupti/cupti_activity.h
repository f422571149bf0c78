/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Switching CUPTI's activity records on and off, for the whole process.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_ACTIVITY_H
#define GP_COLLECTOR_CUPTI_CUPTI_ACTIVITY_H

#include "collector/cupti/cupti_library.h"

/* Switches on all kinds of records that this CUPTI has, without the API calls that
 * cupti_api_filter.h names. Returns CUPTI's result for kernels, without which the rest is of no
 * use: enum cupti_result. */
int cupti_activity__enable(const struct cupti_library *l);
void cupti_activity__disable(const struct cupti_library *l);

/* Undoes what cupti_activity__enable() asked for besides: CUDA events' device timestamps. */
void cupti_activity__disable_timestamps(const struct cupti_library *l);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_ACTIVITY_H */
