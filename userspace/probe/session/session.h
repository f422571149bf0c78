/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kernel side of one capture: the BPF object, its links, its ring and its counters. Only this
 * room and capture/ see libbpf. The kernel releases all of it when gpuprof dies.
 */
#ifndef GP_PROBE_SESSION_SESSION_H
#define GP_PROBE_SESSION_SESSION_H

#include "base/reason.h"
#include "inspect/process/process.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

struct probe_session;

struct probe_options {
	uint32_t ring_bytes; /* a power of two, at least 65536 */
	bool allow_no_bpf;   /* without BPF the session starts all the same and probes nothing */
	bool ops;	     /* probe operators, where PROBE_GROUP_OPS asks for it */
	bool ops_alone;	     /* only operators: no annotations, no autograd nodes */
	bool python_gc;	     /* probe Python's garbage collections */
	bool memory;
	bool gpu; /* with memory: probe CUDA's allocations and frees too */
	/* enum gp_stack_want: the stacks of ops and allocations. See probe_session__set_python()
	 * and probe_session__set_code(). */
	uint32_t stacks;
	/* Stop process 0 (SIGSTOP) after exec and whenever its loader has changed what is mapped,
	 * until probe_session__resume(): each library is probed before its code runs. */
	bool stop_at_load;
	/* Samples per second of every thread, from start to stop; 0: none. Needs stacks. */
	uint32_t sample_hz;
	const char *ops_glob;  /* comma-separated globs of op names ("aten::conv*,aten::mm"), NULL:
				  all */
	const char *cache_dir; /* for plans and unwind tables; NULL: no cache */
};

/* A name that events refer to by its id. Borrowed from the session. */
struct probe_name {
	uint32_t id;
	const char *name;
	const char *overload;
};

/* Opens a session and loads its BPF programs. The texts of the options must live as long. 0, or
 * -errno with a reason that names the next step. */
int probe_session__new(const struct probe_options *options, struct reason *why,
		       struct probe_session **ret_session);
void probe_session__free(struct probe_session *s);

/* Returns why the session has no BPF programs, so that nothing is probed; NULL: it has them. */
const char *probe_session__no_bpf(const struct probe_session *s);

/* What the collector can report instead of probes. */
enum probe_group {
	PROBE_GROUP_OPS = 1,	/* operators */
	PROBE_GROUP_API = 2,	/* calls of the CUDA API */
	PROBE_GROUP_MEMORY = 8, /* allocations and frees of CPU memory */
};

/* Probes everything in the catalogue that the process has mapped and that is not probed yet; of
 * what the collector can report, only `groups` (enum probe_group bits). Events carry
 * `process_index`. Call it again when libraries have changed (GP_EV_MAPS). Returns how many sites
 * were newly attached, or -errno with a reason. */
int probe_session__attach(struct probe_session *s, const struct target_process *p,
			  uint16_t process_index, uint32_t groups, struct reason *why);

/* Whether the kernel reports forks. It cannot where gpuprof is in a PID namespace of its own. */
bool probe_session__sees_forks(const struct probe_session *s);

/* Sets where the process's collector keeps its notes on threads' stacks (struct gp_stack_top); 0:
 * nowhere. The notes are trusted for that process's own stacks only. */
void probe_session__set_stack_tops(struct probe_session *s, uint16_t process_index,
				   uint64_t address);

/* Makes the events of this process carry Python stacks. `code_dealloc` is the address of the
 * function that frees code objects; if it cannot be probed, stacks cost more. Call it after
 * probe_session__attach(), and again only after exec. 0 or -errno. */
int probe_session__set_python(struct probe_session *s, const struct target_process *p,
			      uint16_t process_index, const struct gp_python *python,
			      uint64_t code_dealloc);

/* Registers where the process has code mapped and makes its events carry native stacks. Unwind
 * tables are loaded one by one, as GP_EV_UNWIND requests them. 0 or -errno: see
 * unwind_maps__set_process(). */
int probe_session__set_code(struct probe_session *s, uint16_t process_index,
			    const struct target_process *p);
/* Counts how often the process's loader has changed what is mapped. */
uint32_t probe_session__maps_changes(const struct probe_session *s, uint16_t process_index);

/* How often the loader has begun to add something, and how often it has removed something; lower
 * bounds where that cannot be seen. If a library was replaced and mapped again at its old place,
 * both have grown by two at least. */
struct maps_moves {
	uint32_t adds, removals;
};
struct maps_moves probe_session__maps_moves(const struct probe_session *s, uint16_t process_index);
/* See unwind_maps__load() and unwind_maps__load_library(). */
int probe_session__load_unwind(struct probe_session *s, uint16_t process_index, uint64_t address);
int probe_session__load_unwind_of(struct probe_session *s, uint16_t process_index,
				  const char *prefix);

/* Continues a process that stop_at_load stopped; has no effect on others. */
void probe_session__resume(struct probe_session *s, uint16_t process_index);

/* Removes the probes of PROBE_GROUP_API from one process, whose collector reports those calls from
 * now on. probe_session__attach() adds them again. Returns how many sites. */
uint32_t probe_session__detach_api(struct probe_session *s, uint16_t process_index);

/* Removes the probes of one process that has called exec or has ended. If it `has_ended`, they are
 * closed later: nothing hits them any more. Once the ring has been drained after this, no event has
 * the process's index, and another process may get it. */
void probe_session__detach(struct probe_session *s, uint16_t process_index, bool has_ended);

/* Lift removes the process's probes for a time, except those that report new libraries; only while
 * no events are recorded. Place adds them again, and counts those that cannot be placed. */
void probe_session__lift(struct probe_session *s, uint16_t process_index);
void probe_session__place(struct probe_session *s, const struct target_process *p,
			  uint16_t process_index);

/* Begins recording events. Ops that are open already are not counted as lost. */
void probe_session__start(struct probe_session *s);
/* Pauses and resumes recording, at almost no cost while paused. Ops that are open at a pause are
 * lost. */
void probe_session__pause(struct probe_session *s, bool pause);
/* Stops recording, detaches all probes, and adds the ops that are still open to the counters. */
void probe_session__stop(struct probe_session *s);

/* Returns the ring's descriptor for poll(), -1 without BPF; and drains the ring: calls fn for each
 * event and returns how many, or -errno. A non-zero result of fn ends it. */
int probe_session__ring_fd(const struct probe_session *s);
int probe_session__drain(struct probe_session *s,
			 int (*fn)(const void *event, size_t bytes, void *arg), void *arg);

/* Names known so far, with ids 1..nr in order; attaching adds some. */
size_t probe_session__names(const struct probe_session *s);
struct probe_name probe_session__name(const struct probe_session *s, size_t i);

/* Returns the counters of enum gp_loss, summed over all CPUs. */
void probe_session__losses(const struct probe_session *s, uint64_t ret_losses[GP_LOSS_NR]);

/* Returns how often probes were hit so far. */
uint64_t probe_session__hits(const struct probe_session *s);

/* How often probes were hit and what was measured of their cost; see FORMAT.md, "description". */
struct probe_cost {
	uint64_t hits;		  /* all hits */
	uint64_t hits_stepped;	  /* hits of single-stepped instructions */
	uint64_t trap_ns;	  /* cost of a hit with an idle program; 0: not measured */
	uint64_t trap_stepped_ns; /* the same for a single-stepped instruction */
	uint64_t program_runs;	  /* program runs that were timed */
	uint64_t program_ns;	  /* mean time of a run */
	uint64_t ns_per_hit; /* mean of everything together; 0: a part of it was not measured */
};
void probe_session__cost(const struct probe_session *s, struct probe_cost *ret_cost);

/* Return what sampling has cost so far: the CPU time of gpuprof's sampling thread, which visits
 * waiting threads, and that of the traced threads in the program that samples running ones. */
uint64_t probe_session__sampler_ns(const struct probe_session *s);
uint64_t probe_session__sampling_ns(const struct probe_session *s);

/* Sets the time between two samples on each CPU; waiting threads are visited accordingly, after the
 * next visit. 0, or -errno and nothing has changed. */
int probe_session__set_sample_period(struct probe_session *s, uint64_t period_ns);

/* Whether samples are taken within the scheduler's tick. */
bool probe_session__samples_by_tick(const struct probe_session *s);

/* When sampling: reports waits that go on, and puts their events into the ring. Samples from now on
 * carry their stacks again, as in a new recording. */
void probe_session__renew_samples(struct probe_session *s);

/* What was attached: numbers of functions and sites, of single-stepped sites, and the method
 * ("uprobe_multi", "perf_event"). */
struct probe_summary {
	uint32_t functions_nr, sites_nr, single_stepped_nr, not_placed_nr;
	const char *method; /* "none": no BPF */
};
void probe_session__summary(const struct probe_session *s, struct probe_summary *ret_summary);

#endif /* GP_PROBE_SESSION_SESSION_H */
