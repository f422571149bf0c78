/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The functions of the CUDA runtime and driver and of NCCL that are probed. All are C functions,
 * which no exception crosses.
 */
#ifndef GP_PROBE_PLAN_CUDA_API_H
#define GP_PROBE_PLAN_CUDA_API_H

#include <stdbool.h>
#include <stdint.h>

/* What the names of all of them begin with. */
#define CUDA_API_PREFIX "cu"
#define NCCL_PREFIX	"nccl"

/* Whether it is one; *ret_layout: enum gp_api_layout with GP_API_IS_DRIVER. Variants for a default
 * stream per thread ("_ptsz", "_ptds") are what their name without that is. */
bool cuda_api_find(const char *symbol, uint8_t *ret_layout);

/* Whether a layout is of calls that give memory or take it back. */
bool cuda_api_is_memory(uint8_t layout);

/* Whether a layout is of NCCL's calls, which CUPTI does not tell. */
bool cuda_api_is_nccl(uint8_t layout);

/* Whether what the call tells depends on what it returns. */
bool cuda_api_needs_result(uint8_t layout);

#endif /* GP_PROBE_PLAN_CUDA_API_H */
