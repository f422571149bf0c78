/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What writer and reader must agree on: checksums and the names of the counters. These names are
 * part of the format and never change.
 */
#include "recording/format.h"

#include "recording/event_kinds.h"
#include "recording/recording.h"

#include <zlib.h>

uint32_t format_chunk_crc(const struct format_chunk *c, const void *stored)
{
	uLong crc = crc32(0, (const Bytef *)c, offsetof(struct format_chunk, crc));

	/* zlib takes a NULL buffer to mean "start over", so an empty payload is left out. */
	if (c->stored_bytes)
		crc = crc32(crc, stored, c->stored_bytes);
	return (uint32_t)crc;
}

size_t recording_event_bytes(uint8_t kind)
{
	return event_kinds[kind].bytes;
}

const char *recording_loss_name(enum gp_loss loss)
{
	static const char *const names[GP_LOSS_NR] = {
		[GP_LOSS_RING_FULL] = "ring_full",
		[GP_LOSS_DEPTH] = "depth",
		[GP_LOSS_THREAD] = "thread",
		[GP_LOSS_OPEN_AT_START] = "open_at_start",
		[GP_LOSS_OPEN_AT_END] = "open_at_end",
		[GP_LOSS_EXCEPTION] = "exception",
		[GP_LOSS_FREE_UNKNOWN] = "free_unknown",
		[GP_LOSS_PROBE] = "probe",
		[GP_LOSS_RECORD] = "record",
		[GP_LOSS_COLLECTOR_FULL] = "collector_full",
		[GP_LOSS_NAMES] = "names",
		[GP_LOSS_COLLECTOR_LEFT] = "collector_left",
		[GP_LOSS_STACK_INCOMPLETE] = "stack_incomplete",
		[GP_LOSS_STACK_ROOM] = "stack_room",
		[GP_LOSS_GPU_TIME] = "cupti_time",
		[GP_LOSS_GPU_CLOCK] = "cupti_clock",
		[GP_LOSS_GPU_DROPPED] = "cupti_dropped",
		[GP_LOSS_CHILD_LATE] = "child_late",
		[GP_LOSS_CHILD_MISSED] = "child_missed",
		[GP_LOSS_BOXED_UNSEEN] = "boxed_unseen",
		[GP_LOSS_SCRIPT_UNSEEN] = "script_unseen",
		[GP_LOSS_API_END] = "api_end",
		[GP_LOSS_UNWIND_TABLE] = "unwind_table",
		[GP_LOSS_UNWIND_RULE] = "unwind_rule",
		[GP_LOSS_UNWIND_HARD] = "unwind_hard",
		[GP_LOSS_UNWIND_MEMORY] = "unwind_memory",
		[GP_LOSS_UNWRITTEN] = "unwritten",
		[GP_LOSS_MODULES] = "modules",
		[GP_LOSS_SAMPLE_MISSED] = "sample_missed",
		[GP_LOSS_SAMPLE_MOVED] = "sample_moved",
		[GP_LOSS_KERNEL_STACK] = "kernel_stack",
		[GP_LOSS_LINES] = "lines",
	};

	return (unsigned int)loss < GP_LOSS_NR ? names[loss] : "?";
}
