/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a recording says of a process: who it is, its operators' schemas, its GPUs and their clock.
 */
#ifndef GP_CAPTURE_PROCESS_PROCESS_RECORD_H
#define GP_CAPTURE_PROCESS_PROCESS_RECORD_H

#include "capture/process/traced_process.h"
#include "capture/recordings/segment.h"

/* Describes the process to the recording, also if that has been done. 0, and what the recording's
 * events are to call it; -ENOSPC: it has too many; or -errno. */
int process_record__describe(const struct traced_process *m, struct segment *to,
			     uint16_t *ret_number);

/* The same, but only if it has not been done. */
static inline int process_record__emit(const struct traced_process *m, struct segment *to,
				       uint16_t *ret_number)
{
	const uint64_t *known = hash__find(&to->processes, m->serial);

	if (!known)
		return process_record__describe(m, to, ret_number);
	*ret_number = (uint16_t)*known;
	return 0;
}

#endif /* GP_CAPTURE_PROCESS_PROCESS_RECORD_H */
