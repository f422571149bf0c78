/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One event on its way into a recording: in the capture's numbers, and behind the names, threads
 * and stacks that it refers to.
 */
#ifndef GP_CAPTURE_EVENTS_EVENT_WRITER_H
#define GP_CAPTURE_EVENTS_EVENT_WRITER_H

#include "capture/process/process_state.h"

/* Counters of a capture's events. */
struct event_counts {
	uint64_t events_nr;
	uint64_t refused_nr;	   /* that made no sense */
	uint64_t nameless_nr;	   /* whose name found no place */
	uint64_t inputs_lost_nr;   /* ops whose inputs found no place */
	uint64_t open_at_start_nr; /* that had begun before the capture */
	uint64_t unwritten_nr;	   /* that found their way into no recording */
	/* From collectors. */
	uint64_t collector_ops_nr;
	uint64_t collector_memory_nr; /* allocations and frees */
	uint64_t collector_gpu_nr;    /* records of CUPTI */
	uint64_t collector_drain_ns;  /* CPU time spent on taking them */
};

struct event_writer {
	/* Borrowed. */
	const struct capture_options *options;
	struct probe_session *probes;
	struct recording_set *recordings;
	struct symbol_tables *symbols;
	struct threads *threads;
	/* Its own. */
	struct event_counts counts;
};

/* Where an event goes: the recording, and what that calls the event's process. */
struct event_place {
	struct segment *to; /* NULL: nowhere */
	uint16_t process;
};

/* Whether it is an annotation of which the end alone was looked at: see GP_FEATURE_CPU_TIME. */
static inline bool event_is_end_alone(const struct gp_ev_op *op)
{
	return op->scope == GP_SCOPE_USER && op->start_ns == op->head.time_ns;
}

/* The recording that the event belongs to, NULL: none. By steps it is that of the step in which it
 * began, otherwise that in which it ended. Of a call whose end is not seen it is the same. */
struct segment *event_writer__segment(const struct event_writer *w, const void *event);

/* Finds where the event goes, and describes its process and thread there. 0 or -errno; *ret_place
 * is set either way. */
int event_writer__place(struct event_writer *w, struct traced_process *m, const void *event,
			struct event_place *ret_place);

/* Writes an event of the process from `source` (SOURCE_KERNEL, SOURCE_COLLECTOR()), other than
 * GP_EV_OP: its kind is known, and it is as long as that at least. What later events refer to is
 * kept, wherever this one goes. 0 or -errno. */
int event_writer__put(struct event_writer *w, const struct event_place *place,
		      struct traced_process *m, uint32_t source, const void *event, size_t bytes);

/* Writes an operator; unless `wanted`, only what it refers to. *ret_op is the operator in the
 * capture's numbers. 0 or -errno. */
int event_writer__put_op(struct event_writer *w, const struct event_place *place,
			 struct traced_process *m, uint32_t source, const void *event, size_t bytes,
			 bool wanted, struct gp_ev_op *ret_op);

#endif /* GP_CAPTURE_EVENTS_EVENT_WRITER_H */
