/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Whether a process's Python has the markers of garbage collections: CPython built with
 * --with-dtrace does.
 */
#ifndef GP_INSPECT_PROGRAM_PYTHON_GC_H
#define GP_INSPECT_PROGRAM_PYTHON_GC_H

#include "inspect/process/process.h"

#define PYTHON_GC_PROVIDER "python"
#define PYTHON_GC_START	   "gc__start"
#define PYTHON_GC_DONE	   "gc__done"

/* Whether Python's file (see target_python_file()) has both markers. False too if it cannot be
 * read. */
bool target_python_marks_gc(const struct target_library *file);

#endif /* GP_INSPECT_PROGRAM_PYTHON_GC_H */
