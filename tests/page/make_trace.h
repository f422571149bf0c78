/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The trace that the browser tests open in a viewer.
 */
#ifndef GP_PAGE_MAKE_TRACE_H
#define GP_PAGE_MAKE_TRACE_H

/* Writes FOLDER/trace.json and FOLDER/trace.json.gz. 0 or -errno, told on stderr. */
int make_trace(const char *folder);

#endif /* GP_PAGE_MAKE_TRACE_H */
