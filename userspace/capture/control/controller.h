/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A controller decides when something is collected, or which recording it goes into: a schedule,
 * budget windows, pauses, windows of GPU records, triggers, rotation, the sampling rate. A capture
 * has a list of them and knows none by name.
 */
#ifndef GP_CAPTURE_CONTROL_CONTROLLER_H
#define GP_CAPTURE_CONTROL_CONTROLLER_H

#include "base/reason.h"
#include "capture/core/options.h"
#include "capture/core/status.h"
#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is NULL does nothing. What returns int returns 0 or -errno. */
struct controller_ops {
	void (*free)(void *self);

	/* The capture is about to start, and events do not flow yet; it has just started. */
	void (*prepare)(void *self);
	int (*start)(void *self);

	/* An event is on its way into a recording, as its source wrote it. */
	int (*on_event)(void *self, const void *event);
	/* Whether an op, as its source wrote it, is to be recorded. NULL: it is. */
	bool (*wants_op)(const void *self, const struct gp_ev_op *op);
	/* An op of this name has been seen to finish. It is in the capture's numbers but for its
	 * process. */
	int (*on_op)(void *self, const struct gp_ev_op *op, const char *name);

	/* How long to wait for events, if it is to be at most timeout_ms. */
	int (*timeout_ms)(const void *self, int timeout_ms);
	/* Between two drains; errors go to capture_run.failed. */
	void (*poll)(void *self);
	/* A round of polling is over, which took so much of the thread's CPU time. */
	void (*polled)(void *self, uint64_t cpu_ns);

	/* The recording in progress (there may be none) ends here, and the next one begins. */
	int (*split)(void *self, uint64_t now_ns);
	/* Whoever reads the recording in progress is to know what there has been until now. */
	int (*flush)(void *self, uint64_t now_ns);
	/* The capture has stopped at capture_run.end_ns; every event has been taken, and the
	 * recording in progress is about to end. */
	int (*end)(void *self);

	/* As capture__switch() and capture__flush(): 0, or -errno with a reason. */
	int (*switch_sides)(void *self, uint32_t sides, bool on, struct reason *why);
	int (*may_flush)(const void *self, struct reason *why);

	/* Fills in what the controller knows, as of now_ns. */
	void (*status)(const void *self, uint64_t now_ns, struct capture_status *status);
};

struct controller {
	const struct controller_ops *ops;
	void *self;
};

#define CONTROLLERS_MAX 8

/* In the order in which they are asked. All zero: there is none. */
struct controllers {
	struct controller items[CONTROLLERS_MAX];
	size_t nr;
	/* Whether any of them has on_event, wants_op or on_op: most captures spare the calls. */
	bool hears_events, chooses_ops, hears_ops;
};

/* Takes over `self`, which its ops free. 0, or -ENOMEM if that is NULL. */
int controllers__add(struct controllers *c, const struct controller_ops *ops, void *self);
/* Frees all, the last first. */
void controllers__done(struct controllers *c);

/* Each asks all controllers in turn and, but for status and split, ends at the first error; split
 * asks all and returns the first error. `failed`, see capture_run, ends poll. */
void controllers__prepare(struct controllers *c);
int controllers__start(struct controllers *c);
int controllers__on_event(struct controllers *c, const void *event);
bool controllers__want_op(const struct controllers *c, const struct gp_ev_op *op);
int controllers__on_op(struct controllers *c, const struct gp_ev_op *op, const char *name);
int controllers__timeout_ms(const struct controllers *c, int timeout_ms);
void controllers__poll(struct controllers *c, const int *failed);
void controllers__polled(struct controllers *c, uint64_t cpu_ns);
int controllers__split(struct controllers *c, uint64_t now_ns);
int controllers__flush(struct controllers *c, uint64_t now_ns);
int controllers__end(struct controllers *c);
int controllers__may_flush(const struct controllers *c, struct reason *why);
void controllers__status(const struct controllers *c, uint64_t now_ns,
			 struct capture_status *status);

/* Asks the one that can. 0 or -errno with a reason. */
int controllers__switch(struct controllers *c, uint32_t sides, bool on, struct reason *why);

#endif /* GP_CAPTURE_CONTROL_CONTROLLER_H */
