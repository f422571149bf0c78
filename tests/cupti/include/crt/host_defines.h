/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Stands in for a header of CUDA's compiler, which no wheel of CUPTI or of the runtime brings: the
 * words before and after types, as a plain C compiler needs them.
 */
#ifndef GP_CUPTI_CRT_HOST_DEFINES_H
#define GP_CUPTI_CRT_HOST_DEFINES_H

#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cuda_builtin_vector_align8(tag, members)                                                 \
	struct __attribute__((aligned(8))) tag {                                                   \
		members                                                                            \
	}
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define __align__(bytes)	 __attribute__((aligned(bytes)))
#define __host__
#define __device__
#define __global__
#define __constant__
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDART_DEVICE
#define CUDART_CB

#endif /* GP_CUPTI_CRT_HOST_DEFINES_H */
