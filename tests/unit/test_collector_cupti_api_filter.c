/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which of the driver's functions only query something, by their names in CUDA 13.0.
 */
#include "collector/cupti/cupti_api_filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check(const char *const *names, size_t nr, bool asks)
{
	for (size_t i = 0; i < nr; i++)
		if (cupti_only_asks(names[i]) != asks)
			fail_msg("%s", names[i]);
}

static void test_questions(void **state)
{
	static const char *const names[] = {
		"cuKernelGetName",
		"cuKernelGetFunction",
		"cuGetProcAddress_v2",
		"cuDeviceGet",
		"cuDeviceGetAttribute",
		"cuDeviceTotalMem_v2",
		"cuDeviceCanAccessPeer",
		"cuDriverGetVersion",
		"cuOccupancyMaxActiveClusters",
		"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
		"cuStreamIsCapturing_ptsz",
		"cuStreamGetCaptureInfo_v2_ptsz",
		"cuFuncIsLoaded",
		"cuPointerGetAttributes",
		"cuMemGetAllocationGranularity",
		"cuMemPoolGetAttribute",
		"cuGraphMemAllocNodeGetParams",
		"cuModuleGetLoadingMode",
		"cuModuleGetFunctionCount",
		"cuLibraryGetKernelCount",
	};

	check(names, sizeof(names) / sizeof(names[0]), true);
}

static void test_work(void **state)
{
	static const char *const names[] = {
		"cuLaunchKernel",
		"cuLaunchKernelEx_ptsz",
		"cuGraphLaunch",
		"cuInit",
		"cuCtxCreate_v4",
		"cuDevicePrimaryCtxRetain",
		"cuMemAlloc_v2",
		"cuMemFreeAsync_ptsz",
		"cuMemCreate",
		"cuMemMap",
		"cuMemcpyHtoDAsync_v2",
		"cuMemsetD32Async",
		"cuMemSetAccess",
		"cuFuncSetAttribute",
		"cuStreamSynchronize",
		"cuStreamQuery",
		"cuStreamWaitEvent",
		"cuEventRecord",
		"cuEventElapsedTime",
		"cuLibraryLoadData",
		"cuFuncLoad",
		"cuIpcOpenMemHandle_v2",
		"cuMemDiscardBatchAsync",
		"cuLogsDumpToFile",
		"cuCtxDisablePeerAccess",
		"cuVDPAUCtxCreate_v2",
		"cuTargetIssue",
		"",
		/* Queries that have to do some work first. */
		"cuModuleGetFunction",
		"cuModuleGetGlobal_v2",
		"cuLibraryGetKernel",
		"cuLibraryGetModule",
		"cuMemGetInfo_v2",
		"cuIpcGetMemHandle",
	};

	check(names, sizeof(names) / sizeof(names[0]), false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
