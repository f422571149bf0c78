/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A recording made by hand, for tests: events go through the real writer into a temporary file and
 * come back through the real reader. Whatever fails, fails the test that runs.
 */
#ifndef GP_UNIT_EVENTS_H
#define GP_UNIT_EVENTS_H

#include "timeline/model/timeline.h"

struct events;

/* Empty; process 0 is pid 4242, "python". */
struct events *events__new(void);
void events__free(struct events *e);

/* For cmocka: *state is such a one. */
int events_setup(void **state);
int events_teardown(void **state);

void events__process(struct events *e, uint32_t index, int32_t pid, const char *comm);
/* The same of a rank of a job; -1: of none. */
void events__rank(struct events *e, uint32_t index, int32_t pid, const char *comm, int32_t rank);
void events__meta(struct events *e, const char *key, const char *value);
void events__loss(struct events *e, const char *name, uint64_t count);
void events__window(struct events *e, uint64_t start_ns, uint64_t end_ns, uint64_t realtime_ns);
void events__thread(struct events *e, uint32_t tid, const char *comm);

/* An op with what matters most; the others are as if unknown. parent 0: none. */
struct event_op {
	const char *name;
	const char *overload; /* NULL: "" */
	uint64_t start_ns, end_ns;
	uint64_t instance, parent;
	uint16_t process;
	uint32_t tid;
	uint8_t flags;
	uint32_t scope;
	int64_t sequence_nr; /* given as one more: 0 is none */
	uint64_t forward_thread;
	uint32_t thread_number;
	uint32_t stack_id;
	uint32_t same_calls; /* as in struct gp_ev_op_inputs; not 0: the event is one */
};
void events__op(struct events *e, struct event_op op);

/* One call of a module of this type, of process 0 and thread 100; the rest is filled in. */
void events__module_call(struct events *e, const char *type, const struct gp_ev_module_call *call);

/* A Python frame, and a stack of frames, innermost first. */
void events__frame(struct events *e, uint32_t id, const char *file, const char *function,
		   uint32_t line);
void events__stack(struct events *e, uint32_t id, const uint32_t *frames, size_t nr);
void events__stack_flags(struct events *e, uint32_t id, uint32_t flags, const uint32_t *frames,
			 size_t nr);

/* A native frame of a function; `op`: which operator, or node, it is one of, NULL: none. */
void events__native_frame(struct events *e, uint32_t id, const char *module, const char *function,
			  const char *op, uint32_t scope);

struct event_sample {
	uint64_t start_ns, end_ns; /* end_ns 0: as start_ns */
	uint64_t weight_ns;
	uint32_t nr; /* 0: 1 */
	uint32_t tid;
	uint32_t stack_id;
	uint32_t syscall;
	uint8_t flags;
};
void events__sample(struct events *e, struct event_sample s);

struct event_memory {
	uint64_t time_ns, instance, address;
	int64_t bytes;
	uint16_t process;
	uint32_t tid;
	uint8_t flags;
	int16_t device_type;
	uint64_t allocated_bytes, reserved_bytes;
};
void events__memory(struct events *e, struct event_memory m);

/* Of one API call: by CUPTI if `cupti`, else by a uprobe; end_ns 0: only its entry was seen. */
struct event_api {
	const char *name;
	uint64_t start_ns, end_ns;
	uint64_t instance;
	uint32_t correlation_id;
	uint32_t cbid;
	uint16_t process;
	uint32_t tid;
	bool cupti, driver;
};
void events__api(struct events *e, struct event_api a);

/* Kernel, copy, memset or synchronisation. Its context is one more than its device. */
struct event_gpu {
	const char *name; /* of a kernel: mangled or not */
	uint64_t start_ns, end_ns;
	uint32_t correlation_id;
	uint32_t device, stream;
	uint16_t process;
	enum tl_gpu_kind kind;
	uint64_t bytes;
	uint8_t copy_kind, src_kind, dst_kind; /* CUPTI's; src_kind is a memset's */
	uint32_t what;			       /* of a synchronisation */
	uint32_t graph;
	uint64_t graph_node;
};
void events__gpu(struct events *e, struct event_gpu g);

/* Any event, as it is. */
void events__raw(struct events *e, const void *event, size_t bytes);

/* Closes the recording and builds its timeline, which lives as long as `e`. */
const struct timeline *events__timeline(struct events *e);

/* The count of a loss; fails the test if there is none of this name. */
uint64_t loss_of(const struct timeline *t, const char *name);

/* The n-th op of this name in the timeline's order, as an index; TL_NONE if there is none. */
uint32_t find_op(const struct timeline *t, const char *name, unsigned int nth);

/* That op, and its parent's name ("" if it has none); fails the test if there is no such op. */
const struct tl_op *op_named(const struct timeline *t, const char *name, unsigned int nth);
const char *parent_name(const struct timeline *t, const char *name, unsigned int nth);

/* Fails the test unless all that timeline.h promises about ops and memory holds. */
void check_timeline(const struct timeline *t);

#endif /* GP_UNIT_EVENTS_H */
