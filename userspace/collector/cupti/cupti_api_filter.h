/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which CUDA API calls are not recorded: those that are frequent and do nothing to the GPU. The
 * most frequent are listed by CUPTI's number for them, so that CUPTI itself can leave them out. The
 * driver's other queries are recognized by name.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_API_FILTER_H
#define GP_COLLECTOR_CUPTI_CUPTI_API_FILTER_H

#include <stdbool.h>
#include <stdint.h>

static const uint16_t cupti_filtered_runtime[] = {
	10, /* cudaGetLastError */
	11, /* cudaPeekAtLastError */
	17, /* cudaGetDevice */
};
static const uint16_t cupti_filtered_driver[] = {
	9,   /* cuDeviceGetAttribute */
	304, /* cuCtxGetCurrent */
	310, /* cuPointerGetAttribute */
	374, /* cuOccupancyMaxActiveBlocksPerMultiprocessor */
	392, /* cuDevicePrimaryCtxGetState */
	450, /* cuPointerGetAttributes */
	451, /* cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags */
	543, /* cuOccupancyAvailableDynamicSMemPerBlock */
	676, /* cuOccupancyMaxActiveClusters */
	677, /* cuGetProcAddress_v2 */
	683, /* cuKernelGetFunction */
	686, /* cuKernelGetAttribute */
	719, /* cuKernelGetName: the runtime calls it at each launch while CUPTI is in use */
};

/* Whether a driver function, by CUPTI's name for it, only queries what is known already. */
bool cupti_only_asks(const char *name);

/* Whether a function works on CUDA graphs. Asking whether a stream is being captured does not
 * count. */
bool cupti_is_of_graphs(const char *name);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_API_FILTER_H */
