/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The session and what its files call of each other; only for session*.c. From the bottom up:
 * session_processes.c, session_attachments.c, session_sample.c, session_gc.c, session_python.c and
 * session_cost.c; then session_load.c, session_attach.c and session_detach.c; session.c on top.
 */
#ifndef GP_PROBE_SESSION_SESSION_PRIVATE_H
#define GP_PROBE_SESSION_SESSION_PRIVATE_H

struct bpf_link;
struct gpuprof_bpf;
struct ring_buffer;
struct unwind_maps;
struct sampler;

#include "probe/session/counters.h"
#include "probe/session/link.h"
#include "probe/session/link_closer.h"
#include "probe/session/programs.h"
#include "probe/session/session.h"
#include "probe/session/session_plans.h"
#include "probe/session/trap_cost.h"

struct node_table {
	uint64_t address;
	uint64_t process;
};

/* Program runs that the kernel has timed: their number and total time. */
struct timed_runs {
	uint64_t nr, ns;
};

/* One file probed in one process. */
struct attachment {
	uint16_t process_index;
	uint32_t groups; /* GROUP_OTHER and enum probe_group bits; no other attachment of the file
			    has them */
	uint32_t plan;	 /* index into the session's plans */
	uint64_t base;	 /* load bias of the file in the process */
	struct link_set links;
	struct link_set kept; /* probes that probe_session__lift() leaves in place */
	bool lifted;
	uint32_t sites_nr;
	uint32_t refused_nr;
};

/* A library whose missing probes have been counted. */
struct missed_library {
	uint16_t process_index;
	uint64_t base;
};

/* The probes of garbage collections: the Python file that they are in; NULL: no probe. */
struct gc_probes {
	dev_t device;
	ino_t inode;
	struct bpf_link *start, *done;
};

struct probed_process {
	uint16_t index;
	bool stopped; /* by stop_at_load, according to the events drained so far */
	uint32_t pid;
	struct link_set code_freed; /* probe on the function that frees Python's code objects */
	struct gc_probes gc;
};

struct draining {
	int (*fn)(const void *event, size_t bytes, void *arg);
	void *arg;
	size_t bytes;
	int nr;
	int end; /* fn's result */
};

/* Which of the catalogue is probed. Owned by session_attach.c. */
struct coverage {
	VEC(struct missed_library) missed;
	uint64_t refused_nr; /* functions or sites, since the session began */
	struct probe_summary summary;
};

/* Epochs in which events are recorded. Owned by session.c. */
struct epochs {
	uint32_t latest;
	bool started, paused;
	uint64_t open_before; /* ops that were open before this epoch */
	uint64_t open_at_end; /* ops that were open at the ends of epochs, in all */
};

/* What the probes cost. Owned by session_cost.c. */
struct timing {
	struct trap_cost trap_cost;
	struct link_set trap_links;
	int stats_fd; /* while the kernel times the programs, else -1 */
	/* Runs that the kernel timed before, for other users of its statistics; and those that it
	 * timed for us up to the last session_time_end(). */
	struct timed_runs runs_before, runs;
	uint64_t end_ns;
	uint64_t end_hits;
	uint32_t begun_nr;
};

struct probe_session {
	struct probe_options options;
	struct gpuprof_bpf *bpf; /* NULL: no BPF, nothing is probed */
	struct reason no_bpf_why;
	struct ring_buffer *ring;
	struct draining draining;
	enum link_method method;
	struct session_plans plans;
	struct link_closer *closer;
	struct unwind_maps *unwind; /* NULL: no native stacks */
	struct sampler *sampler;    /* NULL: no sampling */
	struct refused_programs refused;
	VEC(struct attachment) attachments;
	VEC(struct probed_process) processes;
	struct coverage coverage;
	struct epochs epochs;
	struct timing timing;
};

/* Bits of a cookie: the file uses old strings; the probed instruction is single-stepped. */
#define COOKIE_OLD_STRINGS (1ULL << 46)
#define COOKIE_STEPPED	   (1ULL << 47)

/* ---- session_processes.c ---- */

/* Returns the process with this index, or NULL. */
struct probed_process *session_process(struct probe_session *s, uint16_t index);

/* Continues the process if stop_at_load stopped it. */
void session_continue(struct probed_process *p);

/* Sets or clears the process's bit in gp_placing or gp_api_off. While it is set, the programs
 * ignore its hits: probes are attached one by one, and an entry whose exit is not probed yet would
 * stay open. */
void session_set_process_bit(__u64 *bits, uint16_t process_index, bool set);

/* ---- session_attachments.c ---- */

/* Adds the file's autograd nodes, where the process has them mapped, to the programs' map. 0 or
 * -errno. */
int session_name_nodes(struct probe_session *s, const struct session_plan *plan,
		       const struct target_library *lib, uint16_t process_index);

/* Detaches one attachment's probes. The attachment stays in the session's list. */
void session_attachment_done(struct probe_session *s, struct attachment *a);

/* ---- session_load.c ---- */

/* Opens and loads the programs. Leaves out those that the kernel refuses and the session can do
 * without, and logs them. 0, or -errno with a reason. */
int session_load(struct probe_session *s, struct reason *why);

/* ---- session_sample.c ---- */

/* Before loading: turns the sampling programs on or off. 0 or -errno. */
int session_sample_choose(const struct probe_session *s, struct gpuprof_bpf *bpf);

/* Checks whether samples can be taken from here. 0 or -errno with a reason. */
int session_sample_check(const struct probe_session *s, struct reason *why);

/* After loading: creates the timers and the sampling thread; both idle until the session starts. 0
 * or -errno with a reason. */
int session_sample_new(struct probe_session *s, struct reason *why);
void session_sample_free(struct probe_session *s);

/* Begins and ends sampling the process's waiting threads. 0 or -errno. */
int session_sample_add(struct probe_session *s, pid_t pid);
void session_sample_drop(struct probe_session *s, pid_t pid);

/* Ends the epoch: records the waits that go on, then nothing more. */
void session_end_epoch(struct probe_session *s);

/* How many samples were due and not taken. */
uint64_t session_sample_missed(const struct probe_session *s);

/* ---- session_cost.c ---- */

/* Has the kernel time the programs' runs. session_time_check() ends that once enough runs were
 * timed, session_time_end() at once. */
void session_time_begin(struct probe_session *s);
void session_time_check(struct probe_session *s);
void session_time_end(struct probe_session *s);

/* ---- session_gc.c ---- */

/* Before loading: turns the programs for Python's garbage collections on or off. 0 or -errno. */
int session_gc_choose(const struct probe_session *s, struct gpuprof_bpf *bpf);

/* Probes the garbage collections of the process's Python, if the options ask for it and its Python
 * has the markers. To be called again when the process may have another Python. A failure is
 * counted and logged. */
void session_gc_follow(struct probe_session *s, const struct target_process *p,
		       struct probed_process *known);
void session_gc_drop(struct probed_process *known);

/* ---- session_python.c ---- */

/* Stops the programs' walks of Python stacks in the process with this index. */
void session_forget_python(struct probe_session *s, uint16_t index);

/* ---- session_detach.c ---- */

/* Detaches all probes from all processes. */
void session_detach_all(struct probe_session *s);

#endif /* GP_PROBE_SESSION_SESSION_PRIVATE_H */
