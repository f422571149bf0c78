/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the files of the Chrome trace share. Private to this room.
 */
#ifndef GP_OUTPUT_CHROME_CHROME_H
#define GP_OUTPUT_CHROME_CHROME_H

#include "base/hash.h"
#include "output/format/output.h"

#include <string.h>

/* Bytes gathered before they go to the sink. */
#define CHROME_BLOCK_BYTES (1 << 20)

/* A GPU's pid in the trace, for each process that used it: two processes may mean different GPUs
 * by one number, on different machines or by CUDA_VISIBLE_DEVICES. The first to use a number has it
 * for its pid, as in Kineto's traces of one process. */
struct chrome_gpu_rows {
	struct hash pid_of;   /* process << 32 | device -> the pid */
	struct hash users_of; /* device -> how many processes use that number */
	bool of_several;      /* processes */
};

struct chrome {
	struct sink *sink;
	const struct timeline *t;
	struct buf out;
	int64_t shift_ns; /* CLOCK_MONOTONIC to the trace's time */
	uint64_t base_ns; /* of the trace's time, since the epoch */
	uint64_t events;  /* written so far */
	uint32_t process; /* this one alone, TL_NONE: all */
	bool for_tensorboard;
	struct chrome_gpu_rows gpu_rows;
	struct hash flow; /* forward op -> the backward op of its arrow */
};

/* A literal, without counting its bytes at run time. */
#define chrome_lit(b, text) buf__add((b), "" text, sizeof(text) - 1)

/* Whether the trace is to hold this process, or the process of this thread. */
static inline bool chrome_shows(const struct chrome *c, uint32_t process)
{
	return c->process == TL_NONE || c->process == process;
}

static inline bool chrome_shows_thread(const struct chrome *c, uint32_t thread)
{
	return chrome_shows(c, c->t->threads.items[thread].process);
}

/* All before the events: "{" up to and with "traceEvents": [. */
void chrome_header(struct chrome *c);

/* Names of processes and threads as "M" events. */
void chrome_names(struct chrome *c);

/* Begins an event's line. */
void chrome_begin(struct chrome *c);

/* ,"pid":P,"tid":T,"ts":TIME */
void chrome_where(struct chrome *c, uint32_t thread, uint64_t time_ns);

/* "Concrete Inputs" to "Input Dims", if the op's inputs were recorded. */
void chrome_inputs(struct chrome *c, const struct tl_op *op);
/* A time as the trace has it, never negative. */
int64_t chrome_time(const struct chrome *c, uint64_t time_ns);

/* A metadata event up to its arguments. */
void chrome_meta(struct chrome *c, const char *what, int64_t pid, int64_t tid);

/* Hands what has gathered to the sink, if it is much or `all`. 0 or -errno. */
int chrome_drain(struct chrome *c, bool all);

/* Finds and names the rows of devices and streams; API calls and GPU work with their arrows. 0 or
 * -errno. */
int chrome_gpu_names(struct chrome *c);
int chrome_gpu(struct chrome *c);

/* What chrome_gpu_names() has found. */
void chrome_gpu_done(struct chrome *c);

/* The row of GPU work; of a synchronisation with no stream, the one before all others. */
int64_t chrome_gpu_tid(const struct tl_gpu *g);

/* The rows of what CUPTI took, by thread. */
#define CHROME_OVERHEAD_PID (-1)

/* A GPU's pid, once chrome_gpu_names() has found the rows. */
uint64_t chrome_gpu_pid(const struct chrome *c, uint32_t process, uint32_t device);

/* What threads were found doing. 0 or -errno. */
int chrome_samples(struct chrome *c);

/* The arguments of a call of NCCL, each after a comma. */
void chrome_collective(struct chrome *c, const struct tl_api *api);

/* Those that Kineto gives to the kernel of a collective, where it is known whose it is. */
void chrome_collective_kernel(struct chrome *c, const struct tl_gpu *kernel);

/* Marks at who came last to each collective of a job's ranks. 0 or -errno. */
int chrome_ranks(struct chrome *c);

/* Of chrome_gpu(): where on the GPU the work of annotations lies. 0 or -errno. */
int chrome_annotations(struct chrome *c);

/* The key "deviceProperties" with its value. */
void chrome_devices(struct chrome *c);
/* The keys of CUDA's and CUPTI's versions, those that were told. */
void chrome_versions(struct chrome *c);

/* The flow event that goes with this op, if any. */
void chrome_flow_write(struct chrome *c, uint32_t op);

#endif /* GP_OUTPUT_CHROME_CHROME_H */
