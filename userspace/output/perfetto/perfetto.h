/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A writer of Perfetto's packets, all on one sequence. It interns names as they come. An error
 * sticks: perfetto__flush() returns it. Private to this room.
 */
#ifndef GP_OUTPUT_PERFETTO_PERFETTO_H
#define GP_OUTPUT_PERFETTO_PERFETTO_H

#include "output/format/output.h"

enum perfetto_type {
	PERFETTO_BEGIN = 1,
	PERFETTO_END = 2,
	PERFETTO_INSTANT = 3,
	PERFETTO_COUNTER = 4,
};

/* The top byte of a track's or flow's number: what kind of thing it is for. */
enum perfetto_number {
	PERFETTO_OF_PROCESS = 1,
	PERFETTO_OF_THREAD = 2,
	PERFETTO_OF_DEVICE = 3,
	PERFETTO_OF_STREAM = 4,
	PERFETTO_OF_MEMORY = 5,
	PERFETTO_OF_ASYNC = 6,
	PERFETTO_OF_LAUNCH = 7,
	PERFETTO_OF_BACKWARD = 8,
	PERFETTO_OF_LOSSES = 9,
	PERFETTO_OF_TRIGGERS = 10,
	PERFETTO_OF_WAITS = 11,
	PERFETTO_OF_GC = 12,
};

static inline uint64_t perfetto_number(enum perfetto_number what, uint64_t index)
{
	return (uint64_t)what << 56 | index;
}

/* The arrow from a call to its work. */
static inline uint64_t perfetto_launch_flow(uint32_t process, uint32_t correlation_id)
{
	return perfetto_number(PERFETTO_OF_LAUNCH,
			       (uint64_t)(process & 0xffffff) << 32 | correlation_id);
}

/* A row of the viewer. `uuid` is any number but 0 that no other track has. */
struct perfetto_track {
	uint64_t uuid, parent;
	const char *name;
	bool is_process, is_thread, is_counter; /* at most one; a counter is of bytes */
	int64_t pid;
	uint32_t tid;
	const char *cmdline; /* of a process */
};

enum perfetto_kind { PERFETTO_U64, PERFETTO_I64, PERFETTO_TEXT };

struct perfetto_arg {
	const char *name;
	enum perfetto_kind kind;
	union {
		uint64_t u64;
		int64_t i64;
		const char *text; /* of perfetto__keep(), or as names are */
	};
};

#define PERFETTO_ARGS_MAX  40
#define PERFETTO_FLOWS_MAX 2

/* Category, name and the names of arguments are constants or the timeline's: equal pointers are
 * equal texts for as long as the trace is written. */
struct perfetto_event {
	enum perfetto_type type;
	uint64_t track;
	uint64_t time_ns;
	const char *category; /* NULL with PERFETTO_END and PERFETTO_COUNTER; so is name */
	const char *name;
	int64_t value; /* of a counter */
	uint64_t flows[PERFETTO_FLOWS_MAX];
	size_t flows_nr;
	struct perfetto_arg args[PERFETTO_ARGS_MAX];
	size_t args_nr;
};

struct perfetto;

/* Begins a trace with its first packet: the clocks, and the start of the sequence. NULL: out of
 * memory. */
struct perfetto *perfetto__new(struct sink *s, const struct timeline *t);
void perfetto__free(struct perfetto *p);

/* Append a packet; a track must come before its first event. perfetto__flush() hands all packets to
 * the sink: 0, or the first error. */
void perfetto__track(struct perfetto *p, const struct perfetto_track *track);
void perfetto__event(struct perfetto *p, const struct perfetto_event *event);
int perfetto__flush(struct perfetto *p);

/* Appends a packet of another kind (a Perfetto__TracePacket) to the same sequence. Borrowed for the
 * call. */
void perfetto__send(struct perfetto *p, void *packet);

/* Samples: of threads on a CPU for the viewer's flame graphs, of waiting threads as slices on rows
 * of their own. 0 or -ENOMEM. */
int perfetto_samples(struct perfetto *p, const struct timeline *t);

/* GPUs, and on a row for each stream their work, CUDA events and ranges around the work of
 * annotations. 0 or -ENOMEM. */
int perfetto_gpu(struct perfetto *p, const struct timeline *t);

/* The text as the trace has it, the same pointer for the same text, valid until perfetto__free().
 */
const char *perfetto__keep(struct perfetto *p, const char *text);

/* Arguments beyond PERFETTO_ARGS_MAX are left out. */
void perfetto_u64(struct perfetto_event *e, const char *name, uint64_t value);
void perfetto_i64(struct perfetto_event *e, const char *name, int64_t value);
void perfetto_text(struct perfetto_event *e, const char *name, const char *value);

#endif /* GP_OUTPUT_PERFETTO_PERFETTO_H */
