/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names of C++ and Rust functions as people read them.
 */
#ifndef GP_BASE_DEMANGLE_H
#define GP_BASE_DEMANGLE_H

#include "base/buf.h"

#include <stdbool.h>

/* Appends what the mangled `name` stands for, C++'s as abi::__cxa_demangle() writes it, Rust's
 * (both kinds) without its hash. False, and nothing appended, if it is no mangled name (they begin
 * with _Z or _R), or one that is longer than 4096 bytes or would become longer than 16384. An
 * allocation failure stays in `out`. */
bool demangle(struct buf *out, const char *name);

/* The same, or the name as it is. */
void demangle_or_keep(struct buf *out, const char *name);

#endif /* GP_BASE_DEMANGLE_H */
