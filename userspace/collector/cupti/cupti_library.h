/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds CUPTI for this process: the library that it has already loaded, else the one beside its
 * CUDA. Two different ones in a process do not work, so no other is ever loaded.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_LIBRARY_H
#define GP_COLLECTOR_CUPTI_CUPTI_LIBRARY_H

#include "collector/cupti/cupti_abi.h"

#include <stdbool.h>

/* CUPTI's own version numbers. */
enum cupti_version {
	CUPTI_VERSION_11_0 = 13,
	CUPTI_VERSION_12_2 = 20,
	CUPTI_VERSION_12_4 = 22,
	CUPTI_VERSION_12_6 = 24,
	CUPTI_VERSION_12_9 = 27,
	CUPTI_VERSION_13_0 = 130000,
	CUPTI_VERSION_14_0 = 140000,
};

struct cupti_library {
	void *handle;
	uint32_t version;			 /* enum cupti_version, or a number between */
	int (*driver_version)(int *ret_version); /* a harmless CUDA call; NULL: none */
	struct cupti_functions call;
};

enum cupti_found {
	CUPTI_FOUND = 0,
	CUPTI_ABSENT = 1,  /* no CUDA in this process yet, or no CUPTI beside it */
	CUPTI_STRANGE = 2, /* a version with an unknown or incomplete interface */
};

/* Loads CUPTI and holds it. `starting`: CUDA calls us as it initializes; otherwise CUDA must be in
 * use already. why_text is set unless CUPTI_FOUND, and stays valid. */
enum cupti_found cupti_library__bind(struct cupti_library *l, bool starting, const char **why_text);
/* Releases it. Fine when not bound. */
void cupti_library__release(struct cupti_library *l);

/* Why using it may crash the process or hang it; NULL: no such problem is known. `from_start`: it
 * was in use before CUDA did anything. Sources: PyTorch's issue 75504 (graphs that were captured
 * before the first profiler, CUDA 11); CUPTI's release notes of 13.0 Update 1. */
const char *cupti_library__danger(const struct cupti_library *l, bool from_start);

/* The driver's and the runtime's version, as each reports it (13000: CUDA 13.0). 0: no library of
 * that name is loaded, or it reports none. The runtime of CUDA 11 is not asked, because that would
 * initialize CUDA. */
uint32_t cupti_library__driver_version(void);
uint32_t cupti_library__runtime_version(void);

/* The profiler that may be using CUPTI, judged by the loaded libraries: a text for users. */
const char *cupti_library__other_user(void);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_LIBRARY_H */
