/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * tests/fake/ops as a probed program, for the unit tests of the kernel programs. The functions fail
 * the test that calls them when something is not as it should be.
 */
#ifndef GP_UNIT_PROBE_PROGRAM_H
#define GP_UNIT_PROBE_PROGRAM_H

#include "probe/session/session.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROBED_LIMIT_MS	  120000
#define PROBED_EVENTS_MAX 8192
#define PROBED_GROUPS	  (PROBE_GROUP_OPS | PROBE_GROUP_MEMORY)

/* What was drained. */
struct probed_events {
	struct gp_ev_op ops[PROBED_EVENTS_MAX];
	size_t ops_nr;
	struct gp_ev_memory memory[64];
	size_t memory_nr;
	struct gp_ev_thread threads[64];
	size_t threads_nr;
	struct gp_ev_process processes[64];
	size_t processes_nr;
	size_t maps_nr;
	struct gp_ev_found_name names[16];
	size_t names_nr;
	size_t others_nr;
};

struct probed {
	pid_t pid;
	int in;	 /* commands to the program */
	int out; /* its answers */
	struct target_process *process;
	struct probe_session *session;
	struct probed_events got;
};

/* The build as "debian" makes it, which is what stands here first, as wheels are made ("wheel"), or
 * as they were up to PyTorch 2.6 ("oldwheel"). For probed_find_program(). */
extern const char *probed_build;
/* Of the program in events, from probed_begin() on. */
extern uint16_t probed_process;
extern const struct probe_options probed_defaults;

/* Of a group: finds the program. Of each test: makes and frees a struct probed. */
int probed_find_program(void **state);
int probed_set_up(void **state);
int probed_tear_down(void **state);

/* Starts the program, and a session that has not been attached to it yet. */
void probed_start(struct probed *f, const struct probe_options *options);
/* The same, and attaches it. */
void probed_begin(struct probed *f, const struct probe_options *options);

/* A command without waiting; its answer; what is in the ring; and all of these. */
void probed_send(struct probed *f, const char *command);
void probed_wait_answer(struct probed *f);
void probed_drain(struct probed *f);
void probed_command(struct probed *f, const char *text);

uint64_t probed_hits(const struct probed *f);
uint64_t probed_loss(const struct probed *f, enum gp_loss which);
const char *probed_name_of(const struct probed *f, const struct gp_ev_op *op);

/* About f->got. */
void probed_expect_op(const struct probed *f, size_t i, const char *name, uint8_t flags);
void probed_expect_inside(const struct probed *f, size_t inner, size_t outer);
void probed_expect_no_loss_but(const struct probed *f, enum gp_loss but);

#endif /* GP_UNIT_PROBE_PROGRAM_H */
