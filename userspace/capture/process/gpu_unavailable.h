/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Why a process with CUDA has no GPU times. Recordings say so, since whoever reads one later has
 * not seen the log.
 */
#ifndef GP_CAPTURE_PROCESS_GPU_UNAVAILABLE_H
#define GP_CAPTURE_PROCESS_GPU_UNAVAILABLE_H

#include "base/vec.h"
#include "capture/process/process_table.h"
#include "recording/recording.h"

#include <sys/types.h>

struct gpu_lack {
	pid_t pid;
	char why[256];
};

/* All zero is an empty one; the owner calls gpu_unavailable__done(). */
struct gpu_unavailable {
	VEC(struct gpu_lack) items;
};

/* The last reason of a process counts. Where there is no memory, or are very many, it is dropped.
 */
void gpu_unavailable__note(struct gpu_unavailable *l, pid_t pid, const char *why);

/* It has GPU times after all. */
void gpu_unavailable__forget(struct gpu_unavailable *l, pid_t pid);

/* A recording has ended: what the next one is to say is of processes that are still there. */
void gpu_unavailable__poll(struct gpu_unavailable *l, const struct process_table *processes);

/* Tells the recording: a key for each. 0 or -errno. */
int gpu_unavailable__write(const struct gpu_unavailable *l, struct recording_writer *w);

void gpu_unavailable__done(struct gpu_unavailable *l);

#endif /* GP_CAPTURE_PROCESS_GPU_UNAVAILABLE_H */
