/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kinds of records in the order in which they are switched on. Kernels come first: then none of
 * 104 processes died whose threads create graphs; with CUPTI_RUNTIME first, 3 of 170 died.
 */
#include "collector/cupti/cupti_activity.h"

#include "collector/cupti/cupti_api_filter.h"
#include "collector/runtime/compat.h"

static const uint32_t kinds[] = {CUPTI_KERNEL, CUPTI_RUNTIME, CUPTI_DRIVER,
				 CUPTI_MEMCPY, CUPTI_MEMSET,  CUPTI_PEER_COPY,
				 CUPTI_SYNC,   CUPTI_EVENT,   CUPTI_OVERHEAD};

/* The time at which the GPU reached the record of an event: Kineto asks for it from CUDA 13 on. */
static void set_event_timestamps(const struct cupti_library *l, uint8_t enable)
{
	if (l->version >= CUPTI_VERSION_13_0 &&
	    l->call.cuptiActivityEnableCudaEventDeviceTimestamps)
		(void)l->call.cuptiActivityEnableCudaEventDeviceTimestamps(enable);
}

static void filter_api_calls(const struct cupti_functions *call)
{
	for (size_t i = 0; i < sizeof(cupti_filtered_runtime) / sizeof(cupti_filtered_runtime[0]);
	     i++)
		if (call->cuptiActivityEnableRuntimeApi)
			(void)call->cuptiActivityEnableRuntimeApi(cupti_filtered_runtime[i], 0);
	for (size_t i = 0; i < sizeof(cupti_filtered_driver) / sizeof(cupti_filtered_driver[0]);
	     i++)
		if (call->cuptiActivityEnableDriverApi)
			(void)call->cuptiActivityEnableDriverApi(cupti_filtered_driver[i], 0);
}

int cupti_activity__enable(const struct cupti_library *l)
{
	int kernels = CUPTI_UNSUPPORTED;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int result = l->call.cuptiActivityEnable(kinds[i]);

		if (kinds[i] == CUPTI_KERNEL)
			kernels = result;
	}
	filter_api_calls(&l->call);
	set_event_timestamps(l, 1);
	return kernels;
}

void cupti_activity__disable(const struct cupti_library *l)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		(void)l->call.cuptiActivityDisable(kinds[i]);
}

void cupti_activity__disable_timestamps(const struct cupti_library *l)
{
	set_event_timestamps(l, 0);
}
