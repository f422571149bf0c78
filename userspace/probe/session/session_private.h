/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the files of a session share: session_load.c loads the programs, session.c drains and
 * counts, session_attach.c places the probes. For no one else.
 */
#ifndef GP_PROBE_SESSION_SESSION_PRIVATE_H
#define GP_PROBE_SESSION_SESSION_PRIVATE_H

struct bpf_link;
struct bpf_program;
struct gpuprof_bpf;
struct ring_buffer;
struct unwind_maps;
struct sampler;

#include "probe/session/link.h"
#include "probe/session/link_closer.h"
#include "probe/session/session.h"
#include "probe/session/session_plans.h"
#include "probe/session/trap_cost.h"

/* Of bpf/maps.bpf.h. */
struct counters {
	uint64_t losses[GP_LOSS_NR];
	uint64_t opened;
	uint64_t closed;
	uint64_t other_hits;
	uint64_t stepped_hits;
	uint64_t sampling_ns; /* of samples of threads that run */
};

struct node_table {
	uint64_t address;
	uint64_t process;
};

/* What only probes tell; beside enum probe_group. */
#define GROUP_OTHER 4

/* Runs of programs that the kernel has timed, and their sum. */
struct timed_runs {
	uint64_t nr, ns;
};

/* One file probed in one process. */
struct attachment {
	uint16_t process_index;
	uint32_t groups; /* GROUP_OTHER and enum probe_group bits: not another attachment's */
	uint32_t plan;	 /* index into the session's plans */
	uint64_t base;	 /* where the file lies in the process */
	struct link_set links;
	struct link_set kept; /* those that probe_session__lift() leaves */
	bool lifted;
	uint32_t sites_nr;
	uint32_t refused_nr;
};

/* A library in which something could not be probed that is counted already. */
struct missed_library {
	uint16_t process_index;
	uint64_t base;
};

/* The probes of Python's garbage collections: of which file, and NULL where they are not. */
struct gc_probes {
	dev_t device;
	ino_t inode;
	struct bpf_link *start, *done;
};

struct probed_process {
	uint16_t index;
	bool stopped; /* by stop_at_load, as far as the events that were drained tell */
	uint32_t pid;
	struct link_set code_freed; /* the probe where its Python frees code objects */
	struct gc_probes gc;
};

struct draining {
	int (*fn)(const void *event, size_t bytes, void *arg);
	void *arg;
	size_t bytes;
	int nr;
	int end; /* fn's */
};

struct probe_session {
	struct probe_options options;
	struct gpuprof_bpf *bpf; /* NULL: the session is bare */
	struct reason no_bpf_why;
	struct ring_buffer *ring;
	struct draining draining;
	enum link_method method;
	struct session_plans plans;
	struct link_closer *closer;
	struct unwind_maps *unwind; /* NULL: no native stacks */
	struct sampler *sampler;    /* NULL: nothing is sampled */
	bool no_tick;		    /* the scheduler's tick cannot be used for it */
	/* Programs that the kernel refuses, and without which the session goes on (texts are
	 * static); and the kinds of probes that need them, a bit each. */
	VEC(const char *) refused_programs;
	uint32_t refused_kinds;
	VEC(struct attachment) attachments;
	VEC(struct probed_process) processes;
	VEC(struct missed_library) missed;
	uint32_t epoch;
	bool started, paused;
	uint64_t open_before; /* ops that earlier epochs left open */
	uint64_t open_at_end;
	uint64_t refused_nr; /* functions or sites, since the session began */
	struct probe_summary summary;
	struct trap_cost trap_cost;
	struct link_set trap_links;
	int stats_fd; /* while the kernel times the programs, else -1 */
	/* What it had timed before, as someone else wanted it: of the calibration, say; and what it
	 * has timed for us, up to the last time that it ended. */
	struct timed_runs runs_before, runs;
	uint64_t stats_end_ns;
	uint64_t stats_end_hits;
	uint32_t timings_nr;
};

/* The programs, in the order in which they are attached. */
enum program {
	PROGRAM_EXIT = 0,
	PROGRAM_ENTRY = 1,
	PROGRAM_NEW = 2,
	PROGRAM_DELETE = 3,
	PROGRAM_REPORT = 4,
	PROGRAM_LOADER = 5,
	PROGRAM_CATCH = 6,
	PROGRAM_OOM = 7,
	PROGRAM_NODE = 8,
	PROGRAM_DISPATCH_EXIT = 9,
	PROGRAM_DISPATCH = 10,
	PROGRAM_UNSEEN = 11,
	PROGRAM_RANGE = 12,
	PROGRAM_API_EXIT = 13,
	PROGRAM_API_ENTRY = 14,
	PROGRAM_NVTX_POP = 15,
	PROGRAM_NVTX_PUSH = 16,
	PROGRAM_NVTX_TOOL_POP = 17,
	PROGRAM_NVTX_TOOL_PUSH = 18,
	PROGRAM_CODE_FREED = 19, /* of no plan: see session_python.c */
	PROGRAM_CPU_OOM = 20,
	PROGRAMS_NR = 21,
};

/* Opens and loads the programs, without those that the kernel refuses where it can do without them
 * (logged). 0, or -errno with a reason. */
int session_load(struct probe_session *s, struct reason *why);

/* Borrowed from the skeleton. */
struct bpf_program *session_program(const struct gpuprof_bpf *bpf, enum program program);
/* Those that no probe will have are not to be loaded. 0 or -errno. */
int session_choose_programs(const struct probe_session *s, struct gpuprof_bpf *bpf);

/* Of a cookie: the file is built with old strings; the probed instruction is single-stepped. */
#define COOKIE_OLD_STRINGS (1ULL << 46)
#define COOKIE_STEPPED	   (1ULL << 47)

/* The process by its index, or NULL. */
struct probed_process *session_process(struct probe_session *s, uint16_t index);

/* Lets a stopped process go on. */
void session_let_go(struct probed_process *p);

/* Before the programs are loaded: those that sample are, or are not. 0 or -errno. */
int session_sample_choose(const struct probe_session *s, struct gpuprof_bpf *bpf);
/* Before all: whether samples can be taken from here at all. 0 or -errno with a reason. */
int session_sample_check(const struct probe_session *s, struct reason *why);
/* After that: the timers and the thread that looks, neither doing anything before start. 0 or
 * -errno with a reason. */
int session_sample_new(struct probe_session *s, struct reason *why);
void session_sample_free(struct probe_session *s);
/* Threads of this process are looked at, or no more. 0 or -errno. */
int session_sample_add(struct probe_session *s, pid_t pid);
void session_sample_drop(struct probe_session *s, pid_t pid);
/* From now on nothing is recorded; waits that go on are told before. */
void session_end_epoch(struct probe_session *s);
/* Samples that were due and not taken. */
uint64_t session_sample_missed(const struct probe_session *s);

/* The counters of all CPUs together. */
void session_counters(const struct probe_session *s, struct counters *ret_counters);

/* The programs are timed for a moment from now on; session_time_check() ends it when it is over. */
void session_time_begin(struct probe_session *s);
void session_time_check(struct probe_session *s);
void session_time_end(struct probe_session *s);

/* Before the programs are loaded: those of Python's garbage collections are, or are not. 0 or
 * -errno.
 */
int session_gc_choose(const struct probe_session *s, struct gpuprof_bpf *bpf);
/* Probes them in the process, if they are wanted and its Python tells of them; again when it may
 * have another Python. What cannot be probed is not told. */
void session_gc_follow(struct probe_session *s, const struct target_process *p,
		       struct probed_process *known);
void session_gc_drop(struct probed_process *known);

/* The kernel is to walk no stacks of Python of this number any more. */
void session_forget_python(struct probe_session *s, uint16_t index);

/* Whether our pids are those that the kernel's programs see. */
bool session_in_first_pid_namespace(void);

/* Takes one attachment's probes away, but not the attachment out of the session. */
void session_attachment_done(struct probe_session *s, struct attachment *a);

/* Probes come and go one by one: without this, entries would be seen whose exit is not, and driver
 * calls whose runtime call is not. `off` has a bit for each process. */
void session_silence(__u64 *off, uint16_t process_index, bool silent);

/* Takes all probes off all processes. */
void session_detach_all(struct probe_session *s);

#endif /* GP_PROBE_SESSION_SESSION_PRIVATE_H */
