/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One capture: from processes to a recording. It probes the processes (and, where wanted, puts the
 * collector into them), drains the kernel's ring and the collectors' rings, and writes each event
 * once. The targets are left as they were found, whatever ends it.
 */
#ifndef GP_CAPTURE_CAPTURE_H
#define GP_CAPTURE_CAPTURE_H

#include "base/place.h"
#include "base/reason.h"
#include "capture/control/cost.h"
#include "capture/policy/schedule.h"
#include "recording/recording.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct capture;

/* What capture__take_trigger() tells of; all zero: nothing but capture__trigger(). */
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

/* Loads the kernel side and creates the recording. 0 or -errno with a reason. */
int capture__new(const struct capture_options *options, struct reason *why,
		 struct capture **ret_capture);

/* Probes one process; also while events flow. Before that, one without a Python that can be walked
 * is refused where stacks are wanted; later it is taken as it is. 0 or -errno with a reason;
 * -EEXIST if it is in already. */
int capture__add(struct capture *c, pid_t pid, struct reason *why);

/* Events flow from here on. 0 or -errno. */
int capture__start(struct capture *c, struct reason *why);

/* Recordings are to stay: from here on each has its name, one by steps when it has ended. Until
 * then they go when the capture is freed, and what has their names stays. 0 or -errno with a
 * reason. */
int capture__keep(struct capture *c, struct reason *why);

/* Waits at most timeout_ms for something to do and does it. Returns how many processes are still
 * there, or -errno with a reason (the recording cannot be written any more, say). */
int capture__poll(struct capture *c, int timeout_ms, struct reason *why);

/* Which collection a switch is about. */
enum capture_side { CAPTURE_CPU = 1, CAPTURE_GPU = 2 };

/* Asks for collection to go off or on; it has where capture_status.switching is false again. -EBUSY
 * with a reason for a capture by steps, and for one side of one within a budget. */
int capture__switch(struct capture *c, uint32_t sides, bool on, struct reason *why);

/* Asks that the recording in progress ends and the next begins: they have where
 * capture_status.recordings_nr has gone up. Each is whole by itself. An event is in the recording
 * in which it ended, so an op that is open at the border is in the later one; what a GPU did may
 * come later than that, and then is in the recording that was in progress. Asked again meanwhile,
 * it does it once. -EBUSY with a reason for a capture by steps, -EINVAL for one that has one name
 * only or does not run. */
int capture__rotate(struct capture *c, struct reason *why);

/* What has set off a trigger since the last call, of several the last, or the last that someone
 * asked for; it is in the recording in progress, or in one that ended less than
 * CAPTURE_TRIGGER_LATE_NS ago: of memory that was refused it is told once the ops have ended in
 * which that was, if they do so within that time. False: nothing. */
bool capture__take_trigger(struct capture *c, struct gp_ev_trigger *ret_trigger);

/* Whether someone waits for it. */
static inline bool capture_trigger_is_asked_for(const struct gp_ev_trigger *trigger)
{
	return trigger->what == GP_TRIGGER_SIGNAL || trigger->what == GP_TRIGGER_ASKED;
}

/* Sets one off: GP_TRIGGER_SIGNAL or GP_TRIGGER_ASKED. */
void capture__trigger(struct capture *c, enum gp_trigger what);

/* A word of the user's own in the recording; of several with one key the last counts. 0 or -errno
 * with a reason. */
int capture__describe(struct capture *c, const char *key, const char *value, struct reason *why);

/* Everything that has come so far is in the recording's file afterwards. 0 or -errno with a reason.
 */
int capture__flush(struct capture *c, struct reason *why);

/* Takes the probes away, drains the rest and finishes the recording. Idempotent. 0 or -errno with a
 * reason. */
int capture__stop(struct capture *c, struct reason *why);

/* Stops if need be, and frees. */
void capture__free(struct capture *c);

struct capture_status {
	uint64_t events_nr;
	uint64_t targets_ns;	  /* CPU time of the processes, when the capture has stopped */
	uint64_t lost_nr;	  /* events that found no room or were refused */
	uint64_t bytes;		  /* of all recordings */
	uint64_t recording_bytes; /* of the one in progress */
	uint64_t running_ns; /* since the start, without the time that the CPU's side was off */
	uint32_t off;	     /* enum capture_side bits */
	bool switching;	     /* what capture__switch() asked for is not yet done */
	uint32_t sites_nr;
	uint32_t functions_nr;
	uint32_t not_placed_nr;
	uint32_t processes_nr;	/* that have been in it */
	uint32_t callbacks_nr;	/* of them: processes whose ops come from the collector */
	uint32_t recordings_nr; /* recordings that have ended, whole or early */
	uint32_t files_nr;	/* recordings that have a file: those and the ones in progress */
	bool unwritten;		/* nothing can be written now: see outlive_disk */
	/* By steps only. */
	bool over;		/* the schedule has ended: time to stop */
	uint64_t steps_nr;	/* steps since the first one was known */
	uint64_t late_steps_nr; /* of these: passed while gpuprof was not ready to record them */
	const char *steps_by;	/* the annotation that tells, "" a cycle of operators, NULL: none
				 * known yet */
	/* With a budget only; cost as of the last poll. */
	bool budgeted;
	uint32_t windows_nr;
	uint64_t windows_steps_nr; /* of steps_nr, which lay in windows */
	struct capture_cost cost;
	const char *method; /* how probes are attached */
	bool no_bpf;	    /* they are not: the collector tells all there is */
};
/* How far the capture is. */
void capture__status(const struct capture *c, struct capture_status *ret_status);

#endif /* GP_CAPTURE_CAPTURE_H */
