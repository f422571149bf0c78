/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The catalogue of CUDA runtime, driver and NCCL functions that are probed. All are C functions,
 * which no exception crosses.
 */
#ifndef GP_PROBE_PLAN_CUDA_API_H
#define GP_PROBE_PLAN_CUDA_API_H

#include <stdbool.h>
#include <stdint.h>

/* The common beginning of their names. */
#define CUDA_API_PREFIX "cu"
#define NCCL_PREFIX	"nccl"

/* Finds a function; *ret_layout: enum gp_api_layout with GP_API_IS_DRIVER. A variant for per-thread
 * default streams ("_ptsz", "_ptds") counts as the function without the suffix. */
bool cuda_api_find(const char *symbol, uint8_t *ret_layout);

/* Whether the layout is of calls that allocate or free memory. */
bool cuda_api_is_memory(uint8_t layout);

/* Whether the layout is of NCCL's calls, which CUPTI does not report. */
bool cuda_api_is_nccl(uint8_t layout);

/* Whether the event depends on the call's result. */
bool cuda_api_needs_result(uint8_t layout);

#endif /* GP_PROBE_PLAN_CUDA_API_H */
