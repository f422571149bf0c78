/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a process's operators may write, for its recordings.
 */
#ifndef GP_CAPTURE_PROCESS_SCHEMAS_H
#define GP_CAPTURE_PROCESS_SCHEMAS_H

#include "base/reason.h"
#include "capture/process/traced_process.h"

/* Reads the schemas of the process's operators into m->schemas, as events. 0 or -ENOMEM; what else
 * goes wrong is in `why`. */
int traced_process__read_schemas(struct traced_process *m, struct reason *why);

#endif /* GP_CAPTURE_PROCESS_SCHEMAS_H */
