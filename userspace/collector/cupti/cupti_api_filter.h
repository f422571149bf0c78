/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a call of the CUDA API is, by CUPTI's number or name for it. Those that do nothing to the
 * GPU and come often are not told: by number those that come so often that CUPTI is asked not to
 * tell them; the driver's others by name.
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
	719, /* cuKernelGetName: by the runtime at each launch, because CUPTI is there */
};

/* Whether a function of the driver, by the name that CUPTI gives it, only asks for something that
 * is known already. */
bool cupti_only_asks(const char *name);

/* Whether a function has to do with CUDA graphs; that one asks whether a stream is being captured
 * says nothing. */
bool cupti_is_of_graphs(const char *name);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_API_FILTER_H */
