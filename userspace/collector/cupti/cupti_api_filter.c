/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The driver's names are words, each with a capital: what only asks says so with one of a few.
 */
#include "collector/cupti/cupti_api_filter.h"

#include "collector/runtime/compat.h"

#include <stddef.h>
#include <string.h>

/* "Total": of memory; "Is": "IsCapturing", "IsLoaded"; "Can": "CanAccessPeer". */
static const char *const asking[] = {"Get", "Is", "Can", "Occupancy", "Total"};

/* These take their time: code is loaded when it is asked for, memory is mapped or made ready for
 * others, the operating system is asked how much is free. */
static const char *const working[] = {
	"cuExternalMemoryGetMappedBuffer",
	"cuExternalMemoryGetMappedMipmappedArray",
	"cuIpcGetEventHandle",
	"cuIpcGetMemHandle",
	"cuLibraryGetGlobal",
	"cuLibraryGetKernel",
	"cuLibraryGetManaged",
	"cuLibraryGetModule",
	"cuLibraryGetUnifiedFunction",
	"cuMemGetHandleForAddressRange",
	"cuMemGetInfo",
	"cuModuleGetFunction",
	"cuModuleGetGlobal",
};

static bool begins_word(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool goes_on(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool has_word(const char *name, const char *word)
{
	size_t bytes = strlen(word);

	for (const char *at = name; *at; at++)
		if (begins_word(*at) && !strncmp(at, word, bytes) && !goes_on(at[bytes]))
			return true;
	return false;
}

/* Whether it is that function, in any of its versions: "cuMemGetInfo_v2". */
static bool is_version_of(const char *name, const char *function)
{
	size_t bytes = strlen(function);

	return !strncmp(name, function, bytes) && (!name[bytes] || name[bytes] == '_');
}

bool cupti_only_asks(const char *name)
{
	bool asks = false;

	for (size_t i = 0; i < sizeof(asking) / sizeof(asking[0]); i++)
		asks |= has_word(name, asking[i]);
	for (size_t i = 0; asks && i < sizeof(working) / sizeof(working[0]); i++)
		asks = !is_version_of(name, working[i]);
	return asks;
}

bool cupti_is_of_graphs(const char *name)
{
	return strstr(name, "Graph") || strstr(name, "BeginCapture") || strstr(name, "EndCapture");
}
