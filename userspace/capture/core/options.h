/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a capture is asked to do. It does not change once the capture exists.
 */
#ifndef GP_CAPTURE_CORE_OPTIONS_H
#define GP_CAPTURE_CORE_OPTIONS_H

#include "base/place.h"
#include "capture/policy/schedule.h"
#include "recording/recording.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

/* Which collection a switch is about. */
enum capture_side { CAPTURE_CPU = 1, CAPTURE_GPU = 2 };

/* What capture__take_trigger() reports; all zero: only what capture__trigger() fires. */
struct capture_triggers {
	bool on;
	double slow_step; /* a step that took so many times the median of the 100 before; 0: none */
	uint64_t hang_ns; /* no step, or where none are known no event, for so long; 0: never */
	bool oom;	  /* a request for memory was refused; needs `memory` */
};
#define CAPTURE_TRIGGER_LATE_NS 1000000000ULL

/* Every operator and call, or what threads are found doing. */
enum capture_mode { CAPTURE_TRACE = 0, CAPTURE_SAMPLE = 1 };

struct capture_options {
	const char *output_path;
	/* Recordings lie in it, under the last name of their path; NULL: in that of each path.
	 * Borrowed. */
	const struct file_folder *folder;
	const char *ops_glob;  /* NULL: all; see struct probe_options */
	const char *cache_dir; /* NULL: plans are not kept */
	uint32_t ring_bytes;   /* a power of two */
	enum capture_mode mode;
	/* Samples a second. Sampling takes both stacks and no operators, inputs or memory, whatever
	 * the other options say. */
	uint32_t sample_hz;
	bool ops;
	bool ops_alone; /* of them neither annotations nor autograd nodes; not where steps are
			   needed */
	bool python_gc; /* Python's garbage collections, beside ops */
	bool memory;
	bool shapes;  /* inputs of ops, from the collector */
	bool flops;   /* outputs are to show floating-point operations; needs shapes */
	bool modules; /* calls of nn.Modules, from the collector */
	bool calls;   /* those of Python functions likewise; needs Python stacks alone */
	/* enum gp_stack_want. With native ones ops come by uprobes, not from the collector. */
	uint32_t stacks;
	bool gpu;		   /* GPU activity too, where there is CUDA; needs inject */
	bool any_cupti;		   /* with gpu: even one that is known to endanger the process */
	bool inject;		   /* the collector may be put into the processes */
	bool inject_without_bpf;   /* only where no BPF program can be loaded */
	bool invited;		   /* CUDA itself will load the collector: take it when it comes */
	const char *uninvited_why; /* why CUDA will not, NULL: nobody has asked for it */
	/* Recordings one after another: the name of each, to be freed; they count from 0. NULL:
	 * there is one, output_path. By steps where schedule.active is not 0, one a cycle;
	 * otherwise the next begins where capture__rotate() asks for it. */
	char *(*recording_path)(void *arg, unsigned int nr);
	void *recording_arg;
	struct schedule schedule;
	/* What all of it may cost, in percent of the targets' CPU time: collection is on in windows
	 * alone. 0: there is no budget. Not together with a schedule. */
	double overhead_pct;
	struct recording_room room; /* of all recordings; fn NULL: they take what they need */
	/* A recording that cannot be written ends by itself; the capture goes on, and counts what
	 * is not written until capture__rotate(). */
	bool outlive_disk;
	struct capture_triggers triggers;
	bool follow_exec; /* go on after exec (the child of `run`); else exec ends a process */
	/* What they start joins, and goes on after exec as they do. A capture ends with those that
	 * were added. */
	bool children;
};

/* Whether someone waits for it. */
static inline bool capture_trigger_is_asked_for(const struct gp_ev_trigger *trigger)
{
	return trigger->what == GP_TRIGGER_SIGNAL || trigger->what == GP_TRIGGER_ASKED;
}

/* Stacks are sampled; nothing is traced. */
static inline bool capture_samples(const struct capture_options *o)
{
	return o->mode == CAPTURE_SAMPLE;
}

/* One recording for each cycle of a schedule. */
static inline bool capture_is_by_steps(const struct capture_options *o)
{
	return o->schedule.active;
}

/* Collection is on in windows that a budget pays for. */
static inline bool capture_has_budget_windows(const struct capture_options *o)
{
	return o->overhead_pct > 0 && !capture_samples(o) && !capture_is_by_steps(o);
}

/* CUPTI's records are on in windows that a part of the budget pays for. */
static inline bool capture_has_gpu_windows(const struct capture_options *o)
{
	return o->overhead_pct > 0 && capture_samples(o) && o->gpu && (o->inject || o->invited);
}

#endif /* GP_CAPTURE_CORE_OPTIONS_H */
