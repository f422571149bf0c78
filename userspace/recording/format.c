/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What writer and reader must agree on: checksums, the least length of each event, and the names of
 * the counters. The names are part of the format: they never change.
 */
#include "recording/format.h"

#include "recording/recording.h"

#include <zlib.h>

uint32_t format_chunk_crc(const struct format_chunk *c, const void *stored)
{
	uLong crc = crc32(0, (const Bytef *)c, offsetof(struct format_chunk, crc));

	/* zlib takes a NULL buffer as "begin anew", so an empty payload is left out. */
	if (c->stored_bytes)
		crc = crc32(crc, stored, c->stored_bytes);
	return (uint32_t)crc;
}

size_t recording_event_bytes(uint8_t kind)
{
	static const uint16_t bytes[] = {
		[GP_EV_OP] = sizeof(struct gp_ev_op),
		[GP_EV_MEMORY] = sizeof(struct gp_ev_memory),
		[GP_EV_THREAD] = sizeof(struct gp_ev_thread),
		[GP_EV_PROCESS] = sizeof(struct gp_ev_process),
		[GP_EV_MAPS] = sizeof(struct gp_ev_head),
		[GP_EV_NAME] = sizeof(struct gp_ev_name),
		[GP_EV_API] = sizeof(struct gp_ev_api),
		[GP_EV_KERNEL] = sizeof(struct gp_ev_kernel),
		[GP_EV_GPU_MEMORY] = sizeof(struct gp_ev_gpu_memory),
		[GP_EV_SYNC] = sizeof(struct gp_ev_sync),
		[GP_EV_CLOCK] = sizeof(struct gp_ev_clock),
		[GP_EV_PAUSE] = sizeof(struct gp_ev_pause),
		[GP_EV_STEP] = sizeof(struct gp_ev_step),
		[GP_EV_INPUTS] = sizeof(struct gp_ev_inputs),
		[GP_EV_TENSORS] = sizeof(struct gp_ev_tensors),
		[GP_EV_SCHEMAS] = sizeof(struct gp_ev_schemas),
		[GP_EV_STACK] = sizeof(struct gp_ev_stack),
		[GP_EV_FOUND_NAME] = sizeof(struct gp_ev_found_name),
		[GP_EV_UNWIND] = sizeof(struct gp_ev_unwind),
		[GP_EV_NATIVE] = sizeof(struct gp_ev_native),
		[GP_EV_FUNCTION] = sizeof(struct gp_ev_function),
		[GP_EV_COLLECTIVE] = sizeof(struct gp_ev_collective),
		[GP_EV_DEVICE] = offsetof(struct gp_ev_device, clock_khz),
		[GP_EV_OVERHEAD] = sizeof(struct gp_ev_overhead),
		[GP_EV_TRIGGER] = sizeof(struct gp_ev_trigger),
		[GP_EV_THREAD_STACK] = sizeof(struct gp_ev_thread_stack),
		[GP_EV_CUDA_MEMORY] = sizeof(struct gp_ev_cuda_memory),
		[GP_EV_SAMPLE] = sizeof(struct gp_ev_sample),
		[GP_EV_MODULE_CALL] = sizeof(struct gp_ev_module_call),
		[GP_EV_CPU_TIME] = sizeof(struct gp_ev_cpu_time),
		[GP_EV_WINDOW] = sizeof(struct gp_ev_window),
		[GP_EV_CUDA_EVENT] = sizeof(struct gp_ev_cuda_event),
		[GP_EV_PYTHON_GC] = sizeof(struct gp_ev_python_gc),
	};

	return kind < sizeof(bytes) / sizeof(bytes[0]) ? bytes[kind] : 0;
}

bool format_event_passes(uint8_t kind)
{
	return kind == GP_EV_NAME || kind == GP_EV_STACK || kind == GP_EV_FOUND_NAME ||
	       kind == GP_EV_FUNCTION || kind == GP_EV_CPU_TIME;
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
