/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What PyTorch's operators may write to: from the schema texts in its library, "add_.Tensor(
 * Tensor(a!) self, Tensor other, ...) -> Tensor(a!)".
 */
#ifndef GP_PROBE_PLAN_SCHEMAS_H
#define GP_PROBE_PLAN_SCHEMAS_H

#include "base/buf.h"
#include "base/reason.h"

/* Calls fn for each text in the data, from its first byte up to the ") -> ", until fn returns
 * non-zero, which is returned; else 0. Texts are not terminated. */
int schemas_each(const unsigned char *data, size_t bytes,
		 int (*fn)(const char *text, size_t bytes, void *arg), void *arg);

/* One text as a line of gp_ev_schemas, to the end of `out`; nothing if it is no schema. */
void schemas_line(const char *text, size_t bytes, struct buf *out);

/* All of a library's, in lines of gp_ev_schemas, each once. 0 or -errno with a reason. */
int schemas_read(const char *path, struct reason *why, struct buf *out);

#endif /* GP_PROBE_PLAN_SCHEMAS_H */
