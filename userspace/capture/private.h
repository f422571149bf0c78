/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A capture from the inside, and what its three files do for each other: capture.c leads it,
 * events.c takes events into the recording, members.c looks after the processes.
 */
#ifndef GP_CAPTURE_PRIVATE_H
#define GP_CAPTURE_PRIVATE_H

#include "base/vec.h"
#include "capture/capture.h"
#include "capture/guest.h"
#include "capture/inputs.h"
#include "capture/kernels.h"
#include "capture/member.h"
#include "capture/names.h"
#include "capture/native_stacks.h"
#include "capture/stacks.h"
#include "probe/session.h"
#include "recording/recording.h"

#define SECOND_NS 1000000000ULL

struct stepped;

struct capture {
	struct capture_options options;
	struct probe_session *probes;
	struct recording_writer *writer;
	struct recording_writer *out; /* where the event goes that is being taken; NULL: nowhere */
	struct stepped *stepped;      /* where the capture is by steps, else NULL */
	struct names names;
	struct inputs_ids inputs;
	struct stacks stacks;
	struct native_stacks native_stacks;
	struct kernels kernels;
	struct hash threads; /* process << 32 | tid: named in the recording already */
	VEC(struct member *) members;
	uint64_t start_ns, end_ns, start_realtime_ns, flushed_ns;
	uint64_t events_nr, refused_nr, nameless_nr, open_at_start_nr, left_nr;
	VEC(pid_t) born; /* children that have not been taken in yet */
	uint64_t child_late_nr, child_missed_nr;
	uint64_t inputs_lost_nr;	   /* ops whose inputs found no place */
	uint64_t guest_losses[GP_LOSS_NR]; /* of collectors that are gone */
	uint64_t guest_ops_nr;		   /* ops that collectors have told */
	struct callback_cost guest_cost;   /* of collectors that are gone */
	uint32_t off;			   /* enum capture_side bits that are switched off */
	uint64_t paused_since_ns[2];	   /* of each bit; 0: it is not, or not yet */
	uint64_t paused_ns;		   /* of the CPU's side, what is over */
	bool switching;			   /* collectors have not yet done what they were asked */
	bool started, stopped;
	int failed; /* the first error that ends the capture */
};

static inline bool capture_samples(const struct capture *c)
{
	return c->options.mode == CAPTURE_SAMPLE;
}

/* Now, in nanoseconds. */
uint64_t capture_clock_ns(clockid_t clock);

/* Losses and window of a recording, and its end. 0 or -errno. */
int capture_write_end(struct capture *c, struct recording_writer *w, uint64_t start_ns,
		      uint64_t end_ns, uint64_t start_realtime_ns);

/* Takes every event that is there into the recording. An error stays in c->failed. */
void capture_drain(struct capture *c);

/* Stops one collector; its last events are taken meanwhile. `gone`: the process has ended. */
void capture_stop_guest(struct capture *c, struct guest *g, bool gone);

/* Takes those features (enum gp_feature bits) alone from one collector that are in `features`. */
void capture_keep_guest(struct capture *c, struct guest *g, uint32_t features);

/* What is left in the ring of one collector. */
void capture_drain_guest(struct capture *c, struct guest *g);

/* Takes a process in and probes it. 0 or -errno with a reason: -EEXIST if it is in already. */
int capture_join(struct capture *c, pid_t pid, bool is_child, struct reason *why);

/* What the process has started and is still there, if the options say so, joins. */
void capture_join_children(struct capture *c, pid_t pid);

/* A process was forked: it joins at the next watch. */
void capture_note_child(struct capture *c, pid_t pid);

/* Takes those in that were noted. */
void capture_watch_children(struct capture *c);

/* Looks for what has become of the processes and acts on it. Returns how many are still there. */
int capture_watch_members(struct capture *c);

/* Writes down what the process's operators may write. 0 or -errno of the recording; what else goes
 * wrong is in `why`. */
int capture_write_schemas(struct capture *c, const struct member *m, struct reason *why);

#endif /* GP_CAPTURE_PRIVATE_H */
