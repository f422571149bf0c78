/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Demangles the names of C++ and Rust functions.
 */
#ifndef GP_BASE_DEMANGLE_H
#define GP_BASE_DEMANGLE_H

#include "base/buf.h"

#include <stdbool.h>

/* Appends the demangled name: C++ as abi::__cxa_demangle() writes it, Rust (both schemes) without
 * its hash. Returns false and appends nothing if it is not a mangled name (they begin with _Z or
 * _R), if it is longer than 4096 bytes, or if the result would be longer than 16384. An allocation
 * failure stays in `out`. */
bool demangle(struct buf *out, const char *name);

/* Appends the demangled name, or the name itself if it cannot be demangled. */
void demangle_or_keep(struct buf *out, const char *name);

#endif /* GP_BASE_DEMANGLE_H */
