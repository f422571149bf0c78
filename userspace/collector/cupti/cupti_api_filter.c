/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The driver's names are made of words, each with a capital. One of a few words shows that a
 * function only queries something.
 */
#include "collector/cupti/cupti_api_filter.h"

#include "collector/runtime/compat.h"

#include <stddef.h>
#include <string.h>

/* As in "TotalMem", "IsCapturing", "IsLoaded" and "CanAccessPeer". */
static const char *const asking[] = {"Get", "Is", "Can", "Occupancy", "Total"};

/* Queries that do work: they load code, map memory, share it with other processes, or ask the
 * operating system how much is free. */
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

/* Whether the name is that of the function in any version, such as "cuMemGetInfo_v2". */
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
