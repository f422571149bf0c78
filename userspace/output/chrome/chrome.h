/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The parts of the Chrome trace, and what they share: the state of one trace (struct chrome) and
 * the pieces that every event has. Private to this room.
 */
#ifndef GP_OUTPUT_CHROME_CHROME_H
#define GP_OUTPUT_CHROME_CHROME_H

#include "base/hash.h"
#include "base/json_writer.h"
#include "output/format/output.h"

#include <string.h>

/* Bytes gathered before they go to the sink. */
#define CHROME_BLOCK_BYTES (1 << 20)

/* The pids of GPUs. Two processes may mean different GPUs by one number (on different machines, or
 * by CUDA_VISIBLE_DEVICES), so each pair of process and number has a pid. The first process to use
 * a number has it for its pid, as in Kineto's traces of one process. */
struct chrome_gpu_rows {
	struct hash pid_of;   /* process << 32 | device -> the pid */
	struct hash users_of; /* device -> how many processes use that number */
	bool of_several;      /* processes */
};

struct chrome {
	struct sink *sink;
	const struct timeline *t;
	struct buf out;
	struct json_writer json; /* writes to `out` */
	int64_t shift_ns;	 /* CLOCK_MONOTONIC to the trace's time */
	uint64_t base_ns;	 /* of the trace's time, since the epoch */
	uint32_t process;	 /* this one alone, TL_NONE: all */
	bool for_tensorboard;
	struct chrome_gpu_rows gpu_rows;
	struct hash flow; /* forward op -> the backward op of its arrow */
};

/* Whether the trace is to hold this process, or the process of this thread. */
static inline bool chrome_shows(const struct chrome *c, uint32_t process)
{
	return c->process == TL_NONE || c->process == process;
}

static inline bool chrome_shows_thread(const struct chrome *c, uint32_t thread)
{
	return chrome_shows(c, c->t->threads.items[thread].process);
}

/* ---- what every event has: chrome_writer.c ---- */

/* A time as the trace has it, never negative. */
int64_t chrome_time(const struct chrome *c, uint64_t time_ns);

/* Begins an event on a line of its own: a JSON object, which the caller ends. */
void chrome_begin(struct chrome *c);

/* The same with the keys "ph", "cat" and "name". */
void chrome_begin_event(struct chrome *c, const char *phase, const char *category,
			const char *name);

/* The keys "pid", "tid" and "ts": of a thread, or of any row. */
void chrome_where(struct chrome *c, uint32_t thread, uint64_t time_ns);
void chrome_where_row(struct chrome *c, int64_t pid, int64_t tid, uint64_t time_ns);

/* The key "dur". */
void chrome_duration(struct chrome *c, uint64_t start_ns, uint64_t end_ns);

/* The key "args": an object, which the caller ends. */
void chrome_begin_args(struct chrome *c);

/* Ends the arguments and the event. */
void chrome_end_args(struct chrome *c);

/* One of an arrow's two events up to its category; the caller says where it is. Begins at "s" and
 * ends at "f". */
void chrome_begin_arrow(struct chrome *c, const char *phase, uint64_t id);

/* Metadata events: a name for a row, or a number to sort it by. */
void chrome_meta_text(struct chrome *c, const char *what, int64_t pid, int64_t tid,
		      const char *text);
void chrome_meta_number(struct chrome *c, const char *what, int64_t pid, int64_t tid, int64_t n);

/* Hands what has gathered to the sink, if it is much or `all`. 0 or -errno. */
int chrome_drain(struct chrome *c, bool all);

/* ---- the parts of a trace ---- */

/* Begins the document: its keys up to the array of events, and sets the trace's time. */
void chrome_header(struct chrome *c);

/* Names the rows of processes and threads. */
void chrome_names(struct chrome *c);

/* Adds an op's inputs to its arguments ("Concrete Inputs" to "Input Dims"), if they were
 * recorded. */
void chrome_inputs(struct chrome *c, const struct tl_op *op);

/* Finds and names the rows of devices and streams. 0 or -errno. chrome_gpu_done() frees what it
 * has found. */
int chrome_gpu_names(struct chrome *c);
void chrome_gpu_done(struct chrome *c);

/* A GPU's pid, once chrome_gpu_names() has found the rows. */
uint64_t chrome_gpu_pid(const struct chrome *c, uint32_t process, uint32_t device);

/* A stream as the trace shows it; -1: there is none, or it is not known. */
int64_t chrome_gpu_stream(uint32_t stream);

/* The row of GPU work; of a synchronization with no stream, the one before all others. */
int64_t chrome_gpu_tid(const struct tl_gpu *g);

/* The pid of the rows that show CUPTI's overhead, by thread. */
#define CHROME_OVERHEAD_PID (-1)

/* API calls and GPU work, with their arrows, CUDA events and overhead. 0 or -errno. */
int chrome_gpu(struct chrome *c);

/* A range around the GPU work of each annotation. 0 or -errno. */
int chrome_annotations(struct chrome *c);

/* Samples: where threads were, and how long they waited. 0 or -errno. */
int chrome_samples(struct chrome *c);

/* Adds the arguments of a call to NCCL. */
void chrome_collective(struct chrome *c, const struct tl_api *api);

/* Adds the arguments that Kineto gives to the kernel of a collective, if its call is known. */
void chrome_collective_kernel(struct chrome *c, const struct tl_gpu *kernel);

/* Marks who came last to each collective of a job's ranks. 0 or -errno. */
int chrome_ranks(struct chrome *c);

/* The key "deviceProperties" with its value. */
void chrome_devices(struct chrome *c);

/* The keys of CUDA's and CUPTI's versions, as far as they were reported. */
void chrome_versions(struct chrome *c);

/* The events of the arrows between an op and its forward or backward op, if it has any. */
void chrome_flow_write(struct chrome *c, uint32_t op);

#endif /* GP_OUTPUT_CHROME_CHROME_H */
