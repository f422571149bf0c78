/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds CUPTI for this process: the one it has loaded already, else the one that lies beside its
 * CUDA. A second, different one in a process would be chaos, so it is never just any.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_LIBRARY_H
#define GP_COLLECTOR_CUPTI_CUPTI_LIBRARY_H

#include "collector/cupti/cupti_abi.h"

#include <stdbool.h>

/* As CUPTI counts. */
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
	uint32_t version;			 /* enum cupti_version and between */
	int (*driver_version)(int *ret_version); /* a call of CUDA that needs nothing; NULL: none */
	struct cupti_functions call;
};

enum cupti_found {
	CUPTI_FOUND = 0,
	CUPTI_ABSENT = 1,  /* no CUDA in this process yet, or no CUPTI beside it */
	CUPTI_STRANGE = 2, /* a version whose interface is not known here, or not all of it */
};

/* Loads and holds it. `starting`: CUDA is calling us as it gets ready; else it must be in use
 * already. why_text, which stays, is set unless CUPTI_FOUND. */
enum cupti_found cupti_library__bind(struct cupti_library *l, bool starting, const char **why_text);
/* Lets go. Fine when not bound. */
void cupti_library__release(struct cupti_library *l);

/* Why taking it may crash the process or stop it for ever; NULL: nothing of that kind is known.
 * `from_start`: it was there before CUDA did anything. Sources: PyTorch's issue 75504 (graphs that
 * were captured before the first profiler, CUDA 11); CUPTI's release notes of 13.0 Update 1. */
const char *cupti_library__danger(const struct cupti_library *l, bool from_start);

/* The driver's and the runtime's version, as each tells itself (13000: of CUDA 13.0). 0: it is not
 * there, as a library of that name, or does not tell; the runtime of CUDA 11 is not asked, because
 * it would make CUDA ready. */
uint32_t cupti_library__driver_version(void);
uint32_t cupti_library__runtime_version(void);

/* Who, by the libraries of this process, may be using CUPTI: for people. */
const char *cupti_library__other_user(void);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_LIBRARY_H */
