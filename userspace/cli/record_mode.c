/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Every operator, or samples.
 */
#include "cli/record_mode.h"

#include "base/log.h"
#include "cli/cli.h"

#include <string.h>

#define DEFAULT_HZ 99 /* in step with nothing */

const char *const record_mode_names[] = {"trace", "sample", NULL};

int record_mode_choose(const struct record_mode *m, struct capture_options *o)
{
	bool samples = m->name ? !strcmp(m->name, "sample") : m->samples_by_default && !m->other;

	if (!samples && m->hz) {
		log_err("--hz goes with --mode sample");
		return CLI_USAGE;
	}
	if (samples && m->other) {
		log_err("%s and --mode sample exclude each other: samples have both stacks and "
			"nothing else",
			m->other);
		return CLI_USAGE;
	}
	o->mode = samples ? CAPTURE_SAMPLE : CAPTURE_TRACE;
	o->sample_hz = m->hz ? (uint32_t)m->hz : DEFAULT_HZ;
	return CLI_DONE;
}

int record_check_python_gc(const struct capture_options *o, const char *without_ops)
{
	if (!o->python_gc || o->ops)
		return CLI_DONE;
	log_err("--python-gc and %s exclude each other: collections are recorded beside operators",
		without_ops);
	return CLI_USAGE;
}
