/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How far a capture is. Every room reads it; capture.c starts and stops it.
 */
#ifndef GP_CAPTURE_CORE_RUN_H
#define GP_CAPTURE_CORE_RUN_H

#include <stdbool.h>
#include <stdint.h>

struct capture_run {
	bool started, stopped;
	uint64_t start_ns, end_ns; /* 0: not yet */
	int failed;		   /* the first error that ends the capture */
};

/* The capture cannot go on; the first error counts. 0 is no error. */
static inline void capture_run__fail(struct capture_run *run, int err)
{
	if (!run->failed)
		run->failed = err;
}

#endif /* GP_CAPTURE_CORE_RUN_H */
