/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Checks that the options fit the mode, and sets it.
 */
#include "cli/core/record_mode.h"

#include "base/log.h"
#include "cli/core/cli.h"

#include <string.h>

#define DEFAULT_HZ	     99	 /* in step with nothing */
#define DEFAULT_OVERHEAD_PCT 1.0 /* for samples, unless --hz is given */

const char *const record_stacks[] = {"python", "native", "both", NULL};
const char *const record_mode_names[] = {"trace", "sample", NULL};

int record_mode_choose(const struct record_mode *m, struct capture_options *o)
{
	bool samples = m->name ? !strcmp(m->name, "sample") : m->samples_by_default && !m->other;

	if (!samples && (m->hz || (m->overhead_of_samples && m->overhead_pct > 0))) {
		log_err("%s goes with --mode sample", m->hz ? "--hz" : "--overhead");
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
	o->overhead_pct = m->overhead_pct;
	if (samples && !m->hz && m->overhead_pct <= 0)
		o->overhead_pct = DEFAULT_OVERHEAD_PCT;
	return CLI_DONE;
}

int record_check_python_gc(const struct capture_options *o, const char *without_ops)
{
	if (!o->python_gc || o->ops)
		return CLI_DONE;
	log_err("--python-gc and %s exclude each other: collections are recorded along with "
		"operators",
		without_ops);
	return CLI_USAGE;
}
