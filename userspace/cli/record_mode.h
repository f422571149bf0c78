/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Every operator, or samples: --mode and --hz of the commands that capture.
 */
#ifndef GP_CLI_RECORD_MODE_H
#define GP_CLI_RECORD_MODE_H

#include "capture/capture.h"

#include <stdbool.h>
#include <stddef.h>

/* "trace", "sample", NULL. */
extern const char *const record_mode_names[];

/* Rows of an option table whose arguments are in a `type` with the fields `mode` (text) and `hz`
 * (number). `about_trace`: a literal, what --mode's help is to say of "trace". */
#define RECORD_MODE_OPTIONS(type, about_trace)                                                     \
	{.name = "mode",                                                                           \
	 .kind = OPTION_TEXT,                                                                      \
	 .offset = offsetof(type, mode),                                                           \
	 .value_name = "trace|sample",                                                             \
	 .choices = record_mode_names,                                                             \
	 .help = about_trace " sample: what threads are found doing, so many times a second, "     \
			     "with what they wait for. Costs far less; times are estimates."},     \
	{                                                                                          \
		.name = "hz", .kind = OPTION_NUMBER, .offset = offsetof(type, hz),                 \
		.value_name = "N", .min = 1, .max = 10000,                                         \
		.help = "With --mode sample: samples a second of each CPU. Default: 99."           \
	}

struct record_mode {
	const char *name;	 /* as given; NULL: not */
	long hz;		 /* 0: not given */
	const char *other;	 /* an option that was given and that samples have nothing for */
	bool samples_by_default; /* unless there is such an option */
};

/* Sets mode and sample_hz. CLI_DONE, or CLI_USAGE, which was logged. */
int record_mode_choose(const struct record_mode *m, struct capture_options *o);

#endif /* GP_CLI_RECORD_MODE_H */
