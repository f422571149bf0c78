/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds which PyTorch, Python, CUDA and CUPTI a process has. Never runs anything of it: versions
 * come from file names, version strings in the mapped files, and PyTorch's version.py beside the
 * library.
 */
#ifndef GP_INSPECT_PROGRAM_VERSIONS_H
#define GP_INSPECT_PROGRAM_VERSIONS_H

#include "inspect/process/process.h"

/* Each is "" if absent, "?" if present with an unknown version. */
struct target_versions {
	char torch[48];
	char python[16];
	char cuda[24];	/* the runtime or driver library that is mapped */
	char cupti[24]; /* mapped, or found beside the CUDA that is mapped */
	bool cupti_mapped;
};

/* Never fails: what cannot be read is "?". */
void target_versions_read(const struct target_process *p, struct target_versions *ret_versions);

/* Finds the version of the mapped NCCL library ("2.17.1") in the text that it prints. False: there
 * is none, or it does not say. */
bool target_nccl_version(const struct target_process *p, char *to, size_t to_bytes);

/* Returns the file that holds the interpreter: libpython, or the executable. Borrowed from `p`;
 * NULL: there is none. */
const struct target_library *target_python_file(const struct target_process *p);

#endif /* GP_INSPECT_PROGRAM_VERSIONS_H */
