/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Chooses between tracing every operator and sampling: --mode, --hz, --overhead and --stack of the
 * commands that capture.
 */
#ifndef GP_CLI_CORE_RECORD_MODE_H
#define GP_CLI_CORE_RECORD_MODE_H

#include "capture/capture.h"

#include <stdbool.h>

/* "trace", "sample", NULL. */
extern const char *const record_mode_names[];

/* What --stack takes: "python", "native", "both", NULL. */
extern const char *const record_stacks[];

struct record_mode {
	const char *name;	  /* as given; NULL: not */
	long hz;		  /* 0: not given */
	double overhead_pct;	  /* 0: not given */
	bool overhead_of_samples; /* it is for samples alone */
	const char *other;	  /* an option that was given and that samples have nothing for */
	bool samples_by_default;  /* unless there is such an option */
};

/* Sets mode, sample_hz and overhead_pct. CLI_DONE, or CLI_USAGE, which was logged. */
int record_mode_choose(const struct record_mode *m, struct capture_options *o);

/* Refuses --python-gc where the option `without_ops` leaves out operators. CLI_DONE, or CLI_USAGE,
 * which was logged. */
int record_check_python_gc(const struct capture_options *o, const char *without_ops);

#endif /* GP_CLI_CORE_RECORD_MODE_H */
