/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * cupti_abi.h against NVIDIA's headers, where a CUDA toolkit is installed: every number (those of
 * cupti_noise.h too), and where
 * every field lies in the oldest and the newest layout of its record. Skipped without them.
 */
#include "collector/cupti_abi.h"
#include "collector/cupti_noise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifdef HAVE_CUPTI

#include <cupti.h>
#include <cupti_activity_deprecated.h>

#define SIZE(type, field) sizeof(((type *)0)->field)
#define FIELD(ours, field, theirs, their_field)                                                    \
	do {                                                                                       \
		assert_int_equal(offsetof(struct ours, field), offsetof(theirs, their_field));     \
		assert_int_equal(SIZE(struct ours, field), SIZE(theirs, their_field));             \
	} while (0)

/* Where the three fields that we keep as one array lie. */
#define TRIPLE(ours, field, theirs, x, y, z)                                                       \
	do {                                                                                       \
		assert_int_equal(offsetof(struct ours, field), offsetof(theirs, x));               \
		assert_int_equal(offsetof(struct ours, field) + 4, offsetof(theirs, y));           \
		assert_int_equal(offsetof(struct ours, field) + 8, offsetof(theirs, z));           \
	} while (0)

#define KERNEL(theirs)                                                                             \
	do {                                                                                       \
		FIELD(cupti_kernel, kind, theirs, kind);                                           \
		FIELD(cupti_kernel, registers_per_thread, theirs, registersPerThread);             \
		FIELD(cupti_kernel, start, theirs, start);                                         \
		FIELD(cupti_kernel, end, theirs, end);                                             \
		FIELD(cupti_kernel, completed, theirs, completed);                                 \
		FIELD(cupti_kernel, device, theirs, deviceId);                                     \
		FIELD(cupti_kernel, context, theirs, contextId);                                   \
		FIELD(cupti_kernel, stream, theirs, streamId);                                     \
		TRIPLE(cupti_kernel, grid, theirs, gridX, gridY, gridZ);                           \
		TRIPLE(cupti_kernel, block, theirs, blockX, blockY, blockZ);                       \
		FIELD(cupti_kernel, static_shared_bytes, theirs, staticSharedMemory);              \
		FIELD(cupti_kernel, dynamic_shared_bytes, theirs, dynamicSharedMemory);            \
		FIELD(cupti_kernel, local_bytes_per_thread, theirs, localMemoryPerThread);         \
		FIELD(cupti_kernel, correlation_id, theirs, correlationId);                        \
		FIELD(cupti_kernel, grid_id, theirs, gridId);                                      \
		FIELD(cupti_kernel, name, theirs, name);                                           \
		FIELD(cupti_kernel, queued, theirs, queued);                                       \
		FIELD(cupti_kernel, submitted, theirs, submitted);                                 \
		FIELD(cupti_kernel, launch_type, theirs, launchType);                              \
		FIELD(cupti_kernel, shared_executed, theirs, sharedMemoryExecuted);                \
		FIELD(cupti_kernel, graph_node, theirs, graphNodeId);                              \
		FIELD(cupti_kernel, graph, theirs, graphId);                                       \
		assert_true(sizeof(theirs) >= sizeof(struct cupti_kernel));                        \
	} while (0)

static void test_kernels(void **state)
{
	KERNEL(CUpti_ActivityKernel5);
	KERNEL(CUpti_ActivityKernel6);
	KERNEL(CUpti_ActivityKernel7);
	KERNEL(CUpti_ActivityKernel8);
	KERNEL(CUpti_ActivityKernel9);
#if CUPTI_API_VERSION >= 130000
	KERNEL(CUpti_ActivityKernel10);
#endif
}

#define COPY_OF_CUDA_11_0(ours, theirs)                                                            \
	do {                                                                                       \
		FIELD(ours, kind, theirs, kind);                                                   \
		FIELD(ours, copy_kind, theirs, copyKind);                                          \
		FIELD(ours, src_kind, theirs, srcKind);                                            \
		FIELD(ours, dst_kind, theirs, dstKind);                                            \
		FIELD(ours, bytes, theirs, bytes);                                                 \
		FIELD(ours, start, theirs, start);                                                 \
		FIELD(ours, end, theirs, end);                                                     \
		FIELD(ours, device, theirs, deviceId);                                             \
		FIELD(ours, context, theirs, contextId);                                           \
		FIELD(ours, stream, theirs, streamId);                                             \
		FIELD(ours, correlation_id, theirs, correlationId);                                \
		FIELD(ours, graph_node, theirs, graphNodeId);                                      \
	} while (0)

#define COPY(ours, theirs)                                                                         \
	do {                                                                                       \
		COPY_OF_CUDA_11_0(ours, theirs);                                                   \
		FIELD(ours, graph, theirs, graphId);                                               \
		assert_true(sizeof(theirs) >= sizeof(struct ours));                                \
	} while (0)

#define PEER_DEVICES(theirs)                                                                       \
	do {                                                                                       \
		FIELD(cupti_peer_copy, src_device, theirs, srcDeviceId);                           \
		FIELD(cupti_peer_copy, src_context, theirs, srcContextId);                         \
		FIELD(cupti_peer_copy, dst_device, theirs, dstDeviceId);                           \
		FIELD(cupti_peer_copy, dst_context, theirs, dstContextId);                         \
	} while (0)

static void test_copies(void **state)
{
	COPY_OF_CUDA_11_0(cupti_copy, CUpti_ActivityMemcpy3);
	COPY(cupti_copy, CUpti_ActivityMemcpy4);
	COPY(cupti_copy, CUpti_ActivityMemcpy5);
	COPY_OF_CUDA_11_0(cupti_peer_copy, CUpti_ActivityMemcpyPtoP2);
	PEER_DEVICES(CUpti_ActivityMemcpyPtoP2);
	COPY(cupti_peer_copy, CUpti_ActivityMemcpyPtoP3);
	COPY(cupti_peer_copy, CUpti_ActivityMemcpyPtoP4);
	PEER_DEVICES(CUpti_ActivityMemcpyPtoP4);
#if CUPTI_API_VERSION >= 130000
	COPY(cupti_copy, CUpti_ActivityMemcpy6);
#endif
	/* Where a record of CUDA 11.0 ends, our next field begins. */
	assert_int_equal(sizeof(CUpti_ActivityMemcpy3), offsetof(struct cupti_copy, graph));
	assert_int_equal(sizeof(CUpti_ActivityMemcpyPtoP2),
			 offsetof(struct cupti_peer_copy, graph));
}

#define SET_OF_CUDA_11_0(theirs)                                                                   \
	do {                                                                                       \
		FIELD(cupti_set, kind, theirs, kind);                                              \
		FIELD(cupti_set, value, theirs, value);                                            \
		FIELD(cupti_set, bytes, theirs, bytes);                                            \
		FIELD(cupti_set, start, theirs, start);                                            \
		FIELD(cupti_set, end, theirs, end);                                                \
		FIELD(cupti_set, device, theirs, deviceId);                                        \
		FIELD(cupti_set, context, theirs, contextId);                                      \
		FIELD(cupti_set, stream, theirs, streamId);                                        \
		FIELD(cupti_set, correlation_id, theirs, correlationId);                           \
		FIELD(cupti_set, memory_kind, theirs, memoryKind);                                 \
		FIELD(cupti_set, graph_node, theirs, graphNodeId);                                 \
	} while (0)

static void test_sets(void **state)
{
	SET_OF_CUDA_11_0(CUpti_ActivityMemset2);
	SET_OF_CUDA_11_0(CUpti_ActivityMemset3);
	SET_OF_CUDA_11_0(CUpti_ActivityMemset4);
	FIELD(cupti_set, graph, CUpti_ActivityMemset3, graphId);
	FIELD(cupti_set, graph, CUpti_ActivityMemset4, graphId);
	assert_int_equal(sizeof(CUpti_ActivityMemset2), offsetof(struct cupti_set, graph));
}

#define SYNC(theirs)                                                                               \
	do {                                                                                       \
		FIELD(cupti_sync, kind, theirs, kind);                                             \
		FIELD(cupti_sync, type, theirs, type);                                             \
		FIELD(cupti_sync, start, theirs, start);                                           \
		FIELD(cupti_sync, end, theirs, end);                                               \
		FIELD(cupti_sync, correlation_id, theirs, correlationId);                          \
		FIELD(cupti_sync, context, theirs, contextId);                                     \
		FIELD(cupti_sync, stream, theirs, streamId);                                       \
		FIELD(cupti_sync, event, theirs, cudaEventId);                                     \
		assert_true(sizeof(theirs) >= offsetof(struct cupti_sync, record_id));             \
	} while (0)

static void test_calls_and_syncs(void **state)
{
	FIELD(cupti_record, kind, CUpti_Activity, kind);
	FIELD(cupti_api_call, cbid, CUpti_ActivityAPI, cbid);
	FIELD(cupti_api_call, start, CUpti_ActivityAPI, start);
	FIELD(cupti_api_call, end, CUpti_ActivityAPI, end);
	FIELD(cupti_api_call, process, CUpti_ActivityAPI, processId);
	FIELD(cupti_api_call, thread, CUpti_ActivityAPI, threadId);
	FIELD(cupti_api_call, correlation_id, CUpti_ActivityAPI, correlationId);
	FIELD(cupti_api_call, result, CUpti_ActivityAPI, returnValue);
	assert_int_equal(sizeof(CUpti_ActivityAPI), sizeof(struct cupti_api_call));
	SYNC(CUpti_ActivitySynchronization);
#if CUPTI_API_VERSION >= 26
	SYNC(CUpti_ActivitySynchronization2);
#endif
	FIELD(cupti_callback_data, site, CUpti_CallbackData, callbackSite);
	FIELD(cupti_callback_data, function_name, CUpti_CallbackData, functionName);
}

#define OVERHEAD(theirs)                                                                           \
	do {                                                                                       \
		FIELD(cupti_overhead, kind, theirs, kind);                                         \
		FIELD(cupti_overhead, what, theirs, overheadKind);                                 \
		FIELD(cupti_overhead, object_kind, theirs, objectKind);                            \
		FIELD(cupti_overhead, process, theirs, objectId.pt.processId);                     \
		FIELD(cupti_overhead, thread, theirs, objectId.pt.threadId);                       \
		FIELD(cupti_overhead, start, theirs, start);                                       \
		FIELD(cupti_overhead, end, theirs, end);                                           \
		assert_true(sizeof(theirs) >= sizeof(struct cupti_overhead));                      \
	} while (0)

static void test_overheads(void **state)
{
	OVERHEAD(CUpti_ActivityOverhead);
#if CUPTI_API_VERSION >= 130000
	OVERHEAD(CUpti_ActivityOverhead2);
	OVERHEAD(CUpti_ActivityOverhead3);
#endif
}

static void test_numbers(void **state)
{
	const uint32_t pairs[][2] = {
		{CUPTI_OK, CUPTI_SUCCESS},
		{CUPTI_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER},
		{CUPTI_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED},
		{CUPTI_UNINITIALIZED, CUPTI_ERROR_NOT_INITIALIZED},
		{CUPTI_UNSUPPORTED, CUPTI_ERROR_NOT_SUPPORTED},
		{CUPTI_SECOND_SUBSCRIBER, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED},
		{CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY},
		{CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET},
		{CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER},
		{CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME},
		{CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL},
		{CUPTI_PEER_COPY, CUPTI_ACTIVITY_KIND_MEMCPY2},
		{CUPTI_SYNC, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION},
		{CUPTI_EVENT, CUPTI_ACTIVITY_KIND_CUDA_EVENT},
		{CUPTI_NO_VALUE, CUPTI_SYNCHRONIZATION_INVALID_VALUE},
		{CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD},
		{CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD},
		{CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API},
		{CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API},
		{CUPTI_SITE_ENTER, CUPTI_API_ENTER},
		{CUPTI_SITE_EXIT, CUPTI_API_EXIT},
		{CUPTI_THREAD_DEFAULT, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT},
		{CUPTI_THREAD_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM},
		{CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED},
		{cupti_noisy_runtime[0], CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020},
		{cupti_noisy_runtime[1], CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020},
		{cupti_noisy_runtime[2], CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020},
		{cupti_noisy_driver[0], CUPTI_DRIVER_TRACE_CBID_cuDeviceGetAttribute},
		{cupti_noisy_driver[1], CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent},
		{cupti_noisy_driver[2], CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttribute},
		{cupti_noisy_driver[3],
		 CUPTI_DRIVER_TRACE_CBID_cuOccupancyMaxActiveBlocksPerMultiprocessor},
		{cupti_noisy_driver[4], CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxGetState},
		{cupti_noisy_driver[5], CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttributes},
		{cupti_noisy_driver[6],
		 CUPTI_DRIVER_TRACE_CBID_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags},
		{cupti_noisy_driver[7],
		 CUPTI_DRIVER_TRACE_CBID_cuOccupancyAvailableDynamicSMemPerBlock},
		{cupti_noisy_driver[8], CUPTI_DRIVER_TRACE_CBID_cuOccupancyMaxActiveClusters},
		{cupti_noisy_driver[9], CUPTI_DRIVER_TRACE_CBID_cuGetProcAddress_v2},
		{cupti_noisy_driver[10], CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction},
		{cupti_noisy_driver[11], CUPTI_DRIVER_TRACE_CBID_cuKernelGetAttribute},
#if CUPTI_API_VERSION >= 21
		{cupti_noisy_driver[12], CUPTI_DRIVER_TRACE_CBID_cuKernelGetName},
#endif
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		assert_int_equal(pairs[i][0], pairs[i][1]);
	assert_int_equal(sizeof(cupti_noisy_runtime) / sizeof(cupti_noisy_runtime[0]), 3);
	assert_int_equal(sizeof(cupti_noisy_driver) / sizeof(cupti_noisy_driver[0]), 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernels),	  cmocka_unit_test(test_copies),
		cmocka_unit_test(test_sets),	  cmocka_unit_test(test_calls_and_syncs),
		cmocka_unit_test(test_overheads), cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_no_headers(void **state)
{
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_headers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
