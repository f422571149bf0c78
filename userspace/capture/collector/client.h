/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector inside one process, as gpuprof sees it: put in, asked for features, drained and
 * taken out again.
 */
#ifndef GP_CAPTURE_COLLECTOR_CLIENT_H
#define GP_CAPTURE_COLLECTOR_CLIENT_H

#include "base/reason.h"
#include "inspect/process/process.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

struct collector_client;

/* Takes one event, GP_EV_NAME included; what is not zero ends the drain. */
typedef int (*collector_event_fn)(const void *event, size_t bytes, void *arg);

/* What is done every few milliseconds while the functions below wait: the collectors of other
 * processes leave if they hear nothing for seconds, and rings fill up. */
struct collector_meanwhile {
	void (*fn)(void *arg);	 /* drains all, and does what they ask for */
	void (*take)(void *arg); /* drains all, no more: while threads may be held */
	void *arg;
};

/* Puts the collector in and waits until it does what `features` (enum gp_feature bits) ask or says
 * that it cannot; a second for CUPTI, without which the others are then not asked for.
 * `any_cupti`: even one that is known to endanger the process. `python` is for GP_FEATURE_STACKS,
 * else NULL. 0, with why->text telling what it does not do, or "" if it does all; it goes on trying
 * to have CUPTI. Missing shapes are not told there: see collector_client__feature_error(). Or
 * -errno with a reason: this gpuprof has then left nothing in the process. */
int collector_client__new(const struct target_process *p, uint16_t process_index, uint32_t features,
			  bool any_cupti, const struct gp_python *python,
			  struct collector_meanwhile meanwhile, struct reason *why,
			  struct collector_client **ret_collector);

/* Writes the collector's library into the folder, if it is not there yet, for a process that loads
 * it by itself (CUDA_INJECTION64_PATH). The folder and what is in it must be nobody else's to
 * change. *ret_path is the caller's to free. 0 or -errno with a reason. */
int collector_image_write(const char *folder, struct reason *why, char **ret_path);

/* Takes the collector that the process has loaded by itself, which collects GPU activity from the
 * beginning. 0; -EAGAIN or -ENOENT: it is not ready yet; or -errno with a reason. */
int collector_client__adopt(const struct target_process *p, uint16_t process_index, bool any_cupti,
			    struct collector_meanwhile meanwhile, struct reason *why,
			    struct collector_client **ret_collector);

/* Whether it has said that it has not got all of `features` (enum gp_feature bits), and why. */
bool collector_client__failed_features(const struct collector_client *g, uint32_t features,
				       struct reason *ret_why);

/* Bits of enum gp_feature in force now. */
uint32_t collector_client__active(const struct collector_client *g);

/* Where it keeps what it says of threads' stacks, for the kernel's programs; 0: nowhere. */
uint64_t collector_client__stack_cache(const struct collector_client *g);

/* Why there is no `what` ("shapes", "stacks"), as the collector says it; "" if it says nothing. */
void collector_client__feature_error(const struct collector_client *g, const char *what,
				     struct reason *ret_why);

/* Whether all of `features` are asked for now. */
bool collector_client__requested(const struct collector_client *g, uint32_t features);

/* Whether it is there for one of `features`, which may be off just now. */
bool collector_client__supports(const struct collector_client *g, uint32_t features);

/* Asks for more features, and does not wait. */
void collector_client__request(struct collector_client *g, uint32_t features);

/* Asks for these features no more, and does not wait. */
void collector_client__release(struct collector_client *g, uint32_t features);

/* Goes on with those of `features` alone that are wanted now, and waits until the others are out of
 * force, draining meanwhile as collector_client__stop() does. */
void collector_client__retain(struct collector_client *g, uint32_t features, collector_event_fn fn,
			      void *arg);

/* Asks for these features and no others, of those that collector_client__new() and
 * collector_client__request() were given and, where annotations are wanted, of GP_FEATURE_STEPS;
 * does not wait. Whether they are in force by now is what collector_client__follows() says: what
 * could not be had is not waited for. */
void collector_client__only(struct collector_client *g, uint32_t features);
bool collector_client__follows(const struct collector_client *g);

/* Calls fn for each event that is there; fn's non-zero result ends it and is returned. Refreshes
 * the heartbeat. */
int collector_client__take(struct collector_client *g, collector_event_fn fn, void *arg);

/* The same, and holds the process's threads if the collector asks for that. */
int collector_client__drain(struct collector_client *g, collector_event_fn fn, void *arg);

/* See ring_reader__drain_deadline_ns() and ring_reader__begin(). */
uint64_t collector_client__drain_deadline_ns(const struct collector_client *g);
void collector_client__begin(struct collector_client *g);

/* Tells the collector to stop and waits until it has, draining meanwhile (unless fn is NULL);
 * events may still be drained after. `gone`: the process has ended. */
void collector_client__stop(struct collector_client *g, bool gone, collector_event_fn fn,
			    void *arg);

/* It has stopped by itself (gpuprof was silent too long, or its ring made no sense): nothing more
 * comes. */
bool collector_client__has_exited(const struct collector_client *g);

/* What callbacks cost, as far as collectors have timed them. */
struct callback_cost {
	uint64_t timed_ns;
	uint64_t timed_nr;
};

/* Adds what this collector has timed; nothing if it is not believable. */
void collector_client__timed(const struct collector_client *g, struct callback_cost *cost);

/* CPU time of the collector's own thread, as it says: any number. */
uint64_t collector_client__thread_cpu_ns(const struct collector_client *g);

/* For how long a thread of the process was borrowed to put it in, and all were held for CUPTI,
 * since this was asked last. */
uint64_t collector_client__take_held_ns(struct collector_client *g);

/* Adds what went missing. */
void collector_client__losses(const struct collector_client *g, uint64_t losses[GP_LOSS_NR]);

/* Takes the library out where that is safe, and frees. */
void collector_client__free(struct collector_client *g, const struct target_process *p, bool gone);

#endif /* GP_CAPTURE_COLLECTOR_CLIENT_H */
