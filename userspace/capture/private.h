/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A capture from the inside, and what its files do for each other: capture.c leads it, drain.c
 * takes events out of the rings and events.c into recordings, recordings.c begins and ends those,
 * members.c looks after the processes.
 */
#ifndef GP_CAPTURE_PRIVATE_H
#define GP_CAPTURE_PRIVATE_H

#include "base/vec.h"
#include "capture/capture.h"
#include "capture/collector/client.h"
#include "capture/collector/gpu_unavailable.h"
#include "capture/control/cost.h"
#include "capture/control/sampling.h"
#include "capture/process/process_table.h"
#include "capture/process/threads.h"
#include "capture/process/traced_process.h"
#include "capture/recordings/late_records.h"
#include "capture/recordings/segment.h"
#include "capture/symbols/inputs.h"
#include "capture/symbols/kernels.h"
#include "capture/symbols/names.h"
#include "capture/symbols/native_stacks.h"
#include "capture/symbols/stacks.h"
#include "common/clock.h"
#include "probe/session/session.h"
#include "recording/recording.h"

struct schedule_runner;
struct gpu_windows;
struct triggers;
struct budget_windows;

/* What counts up while a capture goes on; a recording tells what was added in its time. */
struct totals {
	uint64_t losses[GP_LOSS_NR];
	uint64_t inputs_lost_nr; /* ops whose inputs found no place */
	uint64_t probe_hits, probe_hits_stepped;
	uint64_t collector_ops_nr;    /* ops that collectors have told */
	uint64_t collector_memory_nr; /* allocations and frees, likewise */
	uint64_t sampler_ns;
};

/* Words of the user's own, for every recording. */
struct description {
	char *key, *value;
};

struct capture {
	struct capture_options options;
	char id[17]; /* the same in all its recordings */
	struct probe_session *probes;
	struct segments segments;
	struct segment *out;	   /* where the event goes that is being taken; NULL: nowhere */
	uint16_t out_process;	   /* what `out` calls its process */
	struct totals reported;	   /* by the recordings that have ended */
	uint64_t ended_bytes;	   /* of those */
	uint32_t begun_nr;	   /* recordings that have a file */
	bool keeps;		   /* and its name */
	uint32_t ended_nr;	   /* those that have ended */
	uint64_t closing_until_ns; /* segments.closing is open at least until then */
	bool rotate_asked;
	struct triggers *triggers;		 /* NULL: none are wanted */
	uint32_t thread_stacks_nr;		 /* stacks that were looked at from outside */
	struct schedule_runner *schedule_runner; /* where the capture is by steps, else NULL */
	struct budget_windows *windows;		 /* where it keeps to a budget, else NULL */
	/* Where that is one for samples, too, and GPUs are looked at, else NULL. */
	struct gpu_windows *gpu_windows;
	struct cost_keeper cost;
	struct sampling sampling;
	struct names names;
	struct inputs_ids inputs;
	struct stacks stacks;
	struct native_stacks native_stacks;
	struct kernels kernels;
	struct threads threads;
	struct process_table processes;
	struct gpu_unavailable gpu_unavailable;
	VEC(struct description) descriptions;
	uint64_t start_ns, end_ns, start_realtime_ns, flushed_ns;
	uint64_t targets_ns; /* CPU time of the processes in the capture, once it has stopped */
	struct late_records late_records;
	uint64_t events_nr, refused_nr, nameless_nr, open_at_start_nr, left_nr, unwritten_nr;
	VEC(pid_t) born; /* children that have not been taken in yet */
	uint64_t child_late_nr, child_missed_nr;
	uint64_t inputs_lost_nr;	       /* ops whose inputs found no place */
	uint64_t collector_losses[GP_LOSS_NR]; /* of collectors that are gone */
	uint64_t collector_ops_nr;	       /* ops that collectors have told */
	uint64_t collector_memory_nr;	       /* allocations and frees, likewise */
	uint64_t collector_gpu_nr;	       /* records of CUPTI, likewise */
	uint64_t collector_drain_ns;	       /* CPU time spent on taking what collectors tell */
	struct callback_cost collector_cost;   /* of collectors that are gone */
	uint32_t gone_callbacks_nr;	       /* processes that are gone and had callbacks */
	uint32_t off;			       /* enum capture_side bits that are switched off */
	uint64_t paused_since_ns[2];	       /* of each bit; 0: it is not, or not yet */
	uint64_t paused_ns;		       /* of the CPU's side, what is over */
	bool switching; /* collectors have not yet done what they were asked */
	bool started, stopped;
	int failed; /* the first error that ends the capture */
};

static inline bool capture_samples(const struct capture *c)
{
	return c->options.mode == CAPTURE_SAMPLE;
}

/* The next recording as segments.now: under its name, with what it says of the capture and of the
 * processes that are here. 0 or -errno with a reason; segments.now is NULL then. */
int capture_open_recording(struct capture *c, struct reason *why);

/* The window of segments.now begins. 0 or -errno. */
int capture_begin_recording(struct capture *c, uint64_t start_ns);

/* Writes the counters and the end of a recording, and frees it. 0 or -errno. */
int capture_end_recording(struct capture *c, struct segment **segment);

/* Everything that has come so far is in the files afterwards. 0 or -errno. */
int capture_flush_recordings(struct capture *c);

/* Tells the recording who the process is, if it has not been told. 0, and what the recording's
 * events are to call it; -ENOSPC: it has too many; or -errno. */
int capture_emit_process(struct traced_process *m, struct segment *to, uint16_t *ret_number);

/* The same, but tells it anew. */
int capture_describe_process(struct traced_process *m, struct segment *to, uint16_t *ret_number);

/* An error on the way into `s` (may be NULL). Where the capture is to outlive that it is over with
 * that recording alone. 0 or the error, which then is c->failed. */
int capture_note_error(struct capture *c, struct segment *s, int err);

/* A number under this key of the recording's description. */
int capture_write_number(struct segment *s, const char *key, uint64_t n);

/* All counters as they are now. */
void capture_totals(const struct capture *c, struct totals *ret_totals);

/* Between two drains: does what capture__rotate() has asked for. */
void rotation_poll(struct capture *c);

/* Takes every event that is there into the recording, and holds threads of processes whose
 * collectors ask for that. An error stays in c->failed. */
void capture_drain(struct capture *c);

/* Takes every event that is there, no more: while threads are held already. */
void capture_take(struct capture *c);

/* Stops one collector; its last events are taken meanwhile. `gone`: the process has ended. */
void capture_stop_collector(struct capture *c, struct collector_client *g, bool gone);

/* Takes those features (enum gp_feature bits) alone from one collector that are in `features`. */
void capture_retain_features(struct capture *c, struct collector_client *g, uint32_t features);

/* What CUPTI has told since the capture ended and is part of it. 0 or -errno. */
int capture_put_late_records(struct capture *c);

/* What is left in the ring of one collector. */
void capture_drain_collector(struct capture *c, struct collector_client *g);

/* Takes a process in and probes it. 0 or -errno with a reason: -EEXIST if it is in already. */
int capture_join(struct capture *c, pid_t pid, bool is_child, struct reason *why);

/* Probes what the member's collector does not tell. How many probes more, or -errno with a reason.
 */
int capture_probe_process(struct capture *c, struct traced_process *m, struct reason *why);

/* What the process has started and is still there, if the options say so, joins. */
void capture_join_children(struct capture *c, pid_t pid);

/* A process was forked: it joins at the next watch. */
void capture_note_child(struct capture *c, pid_t pid);

/* Takes those in that were noted. */
void capture_poll_children(struct capture *c);

/* Makes what is known of the member's libraries as new as the events that have been taken. */
void capture_look_at_code(struct capture *c, struct traced_process *m);

/* Looks for what has become of the processes and acts on it. Returns how many are still there. */
int capture_poll_processes(struct capture *c);

/* Reads what the process's operators may write into m->schemas, as events. 0 or -ENOMEM; what else
 * goes wrong is in `why`. */
int capture_read_schemas(struct traced_process *m, struct reason *why);

#endif /* GP_CAPTURE_PRIVATE_H */
