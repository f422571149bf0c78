/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kernel side of one capture: BPF object, links, ring, counters. The only room besides capture/
 * that sees libbpf. All is released by the kernel when gpuprof dies.
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
	bool allow_no_bpf;   /* where no BPF program can be loaded the session probes nothing */
	bool ops;	     /* operators are wanted: probed where PROBE_GROUP_OPS is */
	bool ops_alone;	     /* of them neither annotations nor autograd nodes */
	bool python_gc;	     /* probe Python's garbage collections */
	bool memory;
	bool gpu; /* with memory: what CUDA gives and takes back too */
	/* enum gp_stack_want: what ops and allocations carry. See probe_session__set_python() and
	 * probe_session__set_code(). */
	uint32_t stacks;
	/* Stop process 0 (SIGSTOP) whenever its loader has changed what is mapped, and after
	 * exec, until probe_session__resume(): a library is probed before it runs. */
	bool stop_at_load;
	/* Samples a second, of all threads; 0: none. The processes are sampled from start to stop,
	 * which needs stacks. */
	uint32_t sample_hz;
	const char *ops_glob;  /* comma-separated globs of op names ("aten::conv*,aten::mm"), NULL:
				  all */
	const char *cache_dir; /* plans; NULL: none */
};

/* A name that events refer to by name_id. Borrowed from the session. */
struct probe_name {
	uint32_t id;
	const char *name;
	const char *overload;
};

/* Loads the BPF programs. The options' texts must live as long as the session. 0 or -errno with a
 * reason that names the next step. */
int probe_session__new(const struct probe_options *options, struct reason *why,
		       struct probe_session **ret_session);
void probe_session__free(struct probe_session *s);

/* Why the session has no BPF programs, so that nothing is ever seen by a probe; NULL: it has. */
const char *probe_session__no_bpf(const struct probe_session *s);

/* What the collector may tell as well. */
enum probe_group {
	PROBE_GROUP_OPS = 1,	/* operators */
	PROBE_GROUP_API = 2,	/* calls of the CUDA API */
	PROBE_GROUP_MEMORY = 8, /* allocations and frees of CPU memory */
};

/* Probes everything of the catalogue that is mapped in the process now and not probed yet; events
 * carry `process_index`. Of what the collector may tell only `groups` (enum probe_group bits). Call
 * again when libraries have changed (GP_EV_MAPS). Returns how many sites were newly attached, or
 * -errno with a reason. */
int probe_session__attach(struct probe_session *s, const struct target_process *p,
			  uint16_t process_index, uint32_t groups, struct reason *why);

/* Whether the kernel tells of forks; not where gpuprof is in a PID namespace of its own. */
bool probe_session__sees_forks(const struct probe_session *s);

/* Where the process's collector keeps what it says of threads' stacks, 0: nowhere. Nothing of it is
 * believed but that the process's stacks are so. */
void probe_session__set_stack_tops(struct probe_session *s, uint16_t process_index,
				   uint64_t address);

/* From now on the events of this process carry Python stacks. `code_dealloc` is the address of the
 * function that frees code objects: if it cannot be probed, stacks cost more. Call it after
 * probe_session__attach(), and again only after exec. 0 or -errno. */
int probe_session__set_python(struct probe_session *s, const struct target_process *p,
			      uint16_t process_index, const struct gp_python *python,
			      uint64_t code_dealloc);

/* Tells where code lies in the process now: from then on its events carry native stacks. Unwind
 * tables come one by one, as GP_EV_UNWIND asks for them. 0 or -errno: see
 * unwind_maps__set_process(). */
int probe_session__set_code(struct probe_session *s, uint16_t process_index,
			    const struct target_process *p);
/* How often what is mapped in the process has changed, as far as its loader tells. */
uint32_t probe_session__maps_changes(const struct probe_session *s, uint16_t process_index);

/* How often its loader has begun to add something, and how often it has removed something; at least
 * so often where that cannot be seen. For something to lie where it lay before although another
 * thing lay there meanwhile it takes two of each. */
struct maps_moves {
	uint32_t adds, removals;
};
struct maps_moves probe_session__maps_moves(const struct probe_session *s, uint16_t process_index);
/* See unwind_maps__load() and unwind_maps__load_library(). */
int probe_session__load_unwind(struct probe_session *s, uint16_t process_index, uint64_t address);
int probe_session__load_unwind_of(struct probe_session *s, uint16_t process_index,
				  const char *prefix);

/* Lets a process go on that stop_at_load has stopped. Does nothing to others. */
void probe_session__resume(struct probe_session *s, uint16_t process_index);

/* Takes the probes of PROBE_GROUP_API off one process: the collector tells its calls from now on.
 * probe_session__attach() places them anew. Returns how many sites. */
uint32_t probe_session__detach_api(struct probe_session *s, uint16_t process_index);

/* Takes the probes of one process away (it has called exec, or has_ended: then they go later, as
 * nothing hits them). When what is in the ring then has been drained, no event has its number any
 * more, and it may be given to another process. */
void probe_session__detach(struct probe_session *s, uint16_t process_index, bool has_ended);

/* Takes the process's probes away for a time, but for those that tell that libraries have come;
 * while no event flows only. And places them again: what cannot be is counted with what was not
 * placed. */
void probe_session__lift(struct probe_session *s, uint16_t process_index);
void probe_session__place(struct probe_session *s, const struct target_process *p,
			  uint16_t process_index);

/* Events flow only between start and stop. start also sets aside what open ops there are. */
void probe_session__start(struct probe_session *s);
/* In between: no events, and next to no cost, until it goes on. What is open then is lost. */
void probe_session__pause(struct probe_session *s, bool pause);
/* Stops, takes all probes off the targets, and adds the ops still open to the counters. */
void probe_session__stop(struct probe_session *s);

/* Ring descriptor (-1: the session is bare) for poll(), and consuming it: calls fn for each event,
 * returns how many or -errno (fn's non-zero result ends it). */
int probe_session__ring_fd(const struct probe_session *s);
int probe_session__drain(struct probe_session *s,
			 int (*fn)(const void *event, size_t bytes, void *arg), void *arg);

/* Names known so far, ids 1..nr in order; grows with attach. */
size_t probe_session__names(const struct probe_session *s);
struct probe_name probe_session__name(const struct probe_session *s, size_t i);

/* Counters of enum gp_loss, summed over CPUs. */
void probe_session__losses(const struct probe_session *s, uint64_t ret_losses[GP_LOSS_NR]);

/* How often probes were hit so far. */
uint64_t probe_session__hits(const struct probe_session *s);

/* How often probes were hit and what was measured of their cost; see FORMAT.md, description. */
struct probe_cost {
	uint64_t hits;		  /* all */
	uint64_t hits_stepped;	  /* those of probes on instructions that are single-stepped */
	uint64_t trap_ns;	  /* of a hit with an idle program; 0: not measured */
	uint64_t trap_stepped_ns; /* the same, single-stepped */
	uint64_t program_runs;	  /* runs of the programs that were timed */
	uint64_t program_ns;	  /* their mean */
	uint64_t ns_per_hit;	  /* of all together; 0: a part of it was not measured */
};
void probe_session__cost(const struct probe_session *s, struct probe_cost *ret_cost);

/* What sampling has cost so far: CPU time of gpuprof's own thread that looks at those that wait,
 * and of the targets' threads in the program that interrupts those that run. */
uint64_t probe_session__sampler_ns(const struct probe_session *s);
uint64_t probe_session__sampling_ns(const struct probe_session *s);

/* Time between two samples of each CPU from now on; by the options before. Those that wait are
 * looked at accordingly, after the next look. 0, or -errno: it is as it was. */
int probe_session__set_sample_period(struct probe_session *s, uint64_t period_ns);

/* Whether samples are taken within the scheduler's tick. */
bool probe_session__samples_by_tick(const struct probe_session *s);

/* Where sampling: tells of waits that go on, whose events are in the ring afterwards. Samples from
 * now on tell of their stacks as if none had been told of. */
void probe_session__renew_samples(struct probe_session *s);

/* For the table of what was attached: numbers of functions and sites, single-stepped sites, and how
 * ("uprobe_multi", "perf_event"). */
struct probe_summary {
	uint32_t functions_nr, sites_nr, single_stepped_nr, not_placed_nr;
	const char *method; /* "none": the session is bare */
};
void probe_session__summary(const struct probe_session *s, struct probe_summary *ret_summary);

#endif /* GP_PROBE_SESSION_SESSION_H */
