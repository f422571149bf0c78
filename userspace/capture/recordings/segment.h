/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One of the recordings that a capture writes one after another, and what has been emitted to it.
 * The capture's tables know what a name or stack of a number is; a recording gets that before the
 * first event that refers to it, so each recording is whole by itself.
 */
#ifndef GP_CAPTURE_RECORDINGS_SEGMENT_H
#define GP_CAPTURE_RECORDINGS_SEGMENT_H

#include "base/bits.h"
#include "base/hash.h"
#include "base/reason.h"
#include "capture/policy/sampling_rate.h"
#include "recording/recording.h"

#include <stdbool.h>
#include <stdint.h>

/* Who numbers names, inputs and stacks: the kernel's probes; the collector of a process, by its
 * serial number; we ourselves, where we look at threads from outside. */
#define SOURCE_KERNEL		 0
#define SOURCE_COLLECTOR(serial) (1u + (serial))
#define SOURCE_THREADS		 UINT32_MAX

/* What a source calls one of them, as the key of a hash. */
static inline uint64_t source_key(uint32_t source, uint32_t id)
{
	return (uint64_t)source << 32 | id;
}

struct segment {
	struct recording_writer *writer;
	uint64_t start_ns, start_realtime_ns; /* of its window; 0: it has not begun */
	uint64_t end_ns;		      /* 0: it has not ended */
	struct rate_range rates;	      /* of samples, once it has ended */
	bool broken;			      /* it cannot be written any more */
	uint64_t late_steps_nr; /* by steps: passed before it while gpuprof was not ready */
	struct bits names, frames, stacks, inputs; /* emitted */
	/* A process's serial number -> its number here. The capture's first process is 0. */
	struct hash processes;
	uint32_t processes_nr; /* emitted beside that one */
	struct hash threads;   /* serial number << 32 | tid: emitted */
};

/* Those that are being written. */
struct segments {
	struct segment *current;  /* NULL: nothing is recorded */
	struct segment *draining; /* ended, but its last events may still come; NULL: none */
};

/* An empty recording; see recording_writer__new_in(). 0 or -errno with a reason. */
int segment__new(const struct file_folder *folder, const char *path, struct reason *why,
		 struct segment **ret_segment);
/* Without its end, unless it was finished; without its name it goes. */
void segment__free(struct segment *s);

#endif /* GP_CAPTURE_RECORDINGS_SEGMENT_H */
