/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A program of our own whose every op is known.
 */
#include "unit/probe_program.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

uint64_t probed_hits(const struct probed *f)
{
	struct probe_cost cost;

	probe_session__cost(f->session, &cost);
	return cost.hits;
}

static char program[4096];
const char *probed_build = "debian";
uint16_t probed_process;

static int take_event(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	struct probed_events *g = arg;

	assert_int_equal(head->process, probed_process);
	if (head->kind == GP_EV_OP && g->ops_nr < PROBED_EVENTS_MAX) {
		assert_int_equal(bytes, sizeof(struct gp_ev_op));
		memcpy(&g->ops[g->ops_nr++], event, sizeof(struct gp_ev_op));
	} else if (head->kind == GP_EV_MEMORY && g->memory_nr < 64) {
		memcpy(&g->memory[g->memory_nr++], event, sizeof(struct gp_ev_memory));
	} else if (head->kind == GP_EV_THREAD && g->threads_nr < 64) {
		memcpy(&g->threads[g->threads_nr++], event, sizeof(struct gp_ev_thread));
	} else if (head->kind == GP_EV_PROCESS && g->processes_nr < 64) {
		memcpy(&g->processes[g->processes_nr++], event, sizeof(struct gp_ev_process));
	} else if (head->kind == GP_EV_FOUND_NAME && g->names_nr < 16) {
		memcpy(&g->names[g->names_nr++], event, sizeof(struct gp_ev_found_name));
	} else if (head->kind == GP_EV_MAPS) {
		g->maps_nr++;
	} else {
		g->others_nr++;
	}
	return 0;
}

void probed_drain(struct probed *f)
{
	assert_true(probe_session__drain(f->session, take_event, &f->got) >= 0);
}

void probed_wait_answer(struct probed *f)
{
	struct pollfd p = {.fd = f->out, .events = POLLIN};
	char byte;

	assert_int_equal(poll(&p, 1, PROBED_LIMIT_MS), 1);
	assert_int_equal(read(f->out, &byte, 1), 1);
}

void probed_send(struct probed *f, const char *command)
{
	assert_int_equal(write(f->in, command, strlen(command)), (ssize_t)strlen(command));
}

/* The command is done, and the events of it are in f->got. */
void probed_command(struct probed *f, const char *text)
{
	probed_send(f, text);
	probed_wait_answer(f);
	probed_drain(f);
}

static void start_program(struct probed *f)
{
	int in[2], out[2];

	assert_int_equal(pipe(in) | pipe(out), 0);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (!f->pid) {
		(void)dup2(in[0], STDIN_FILENO);
		(void)dup2(out[1], STDOUT_FILENO);
		for (int fd = 3; fd < 256; fd++)
			(void)close(fd);
		(void)execl(program, program, (char *)NULL);
		_exit(127);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	f->in = in[1];
	f->out = out[0];
	probed_wait_answer(f);
}

static void fail_with(const char *what, const struct reason *why)
{
	fail_msg("%s: %s", what, why->text);
}

void probed_start(struct probed *f, const struct probe_options *options)
{
	struct reason why = {""};

	/* The first one is the one that is stopped. */
	probed_process = options->stop_at_load ? 0 : 7;
	start_program(f);
	if (target_process__new(f->pid, &why, &f->process))
		fail_with("process", &why);
	if (probe_session__new(options, &why, &f->session))
		fail_with("session", &why);
}

void probed_begin(struct probed *f, const struct probe_options *options)
{
	struct reason why = {""};

	probed_start(f, options);
	if (probe_session__attach(f->session, f->process, probed_process, PROBED_GROUPS, &why) <= 0)
		fail_with("attach", &why);
}

const struct probe_options probed_defaults = {.ring_bytes = 1 << 20, .ops = true, .memory = true};

int probed_set_up(void **state)
{
	*state = calloc(1, sizeof(struct probed));
	return *state ? 0 : -1;
}

int probed_tear_down(void **state)
{
	struct probed *f = *state;

	if (f->pid > 0) {
		(void)kill(f->pid, SIGKILL);
		(void)waitpid(f->pid, NULL, 0);
		(void)close(f->in);
		(void)close(f->out);
	}
	probe_session__free(f->session);
	target_process__free(f->process);
	free(f);
	return 0;
}

const char *probed_name_of(const struct probed *f, const struct gp_ev_op *op)
{
	for (size_t i = 0; i < f->got.names_nr; i++)
		if (f->got.names[i].name_id == op->name_id)
			return f->got.names[i].name;
	if (!op->name_id || op->name_id > probe_session__names(f->session))
		return "?";
	return probe_session__name(f->session, op->name_id - 1).name;
}

void probed_expect_op(const struct probed *f, size_t i, const char *name, uint8_t flags)
{
	assert_true(i < f->got.ops_nr);
	assert_string_equal(probed_name_of(f, &f->got.ops[i]), name);
	assert_int_equal(f->got.ops[i].head.flags, flags);
	assert_int_equal(f->got.ops[i].scope, GP_SCOPE_FUNCTION);
	assert_true(f->got.ops[i].start_ns && f->got.ops[i].start_ns <= f->got.ops[i].head.time_ns);
}

void probed_expect_inside(const struct probed *f, size_t inner, size_t outer)
{
	const struct gp_ev_op *i = &f->got.ops[inner], *o = &f->got.ops[outer];

	assert_true(i->parent == o->instance);
	assert_true(i->head.tid == o->head.tid);
	assert_true(i->start_ns >= o->start_ns && i->head.time_ns <= o->head.time_ns);
}

uint64_t probed_loss(const struct probed *f, enum gp_loss which)
{
	uint64_t losses[GP_LOSS_NR];

	probe_session__losses(f->session, losses);
	return losses[which];
}

void probed_expect_no_loss_but(const struct probed *f, enum gp_loss but)
{
	for (int i = 0; i < GP_LOSS_NR; i++)
		if (i != (int)but && probed_loss(f, (enum gp_loss)i))
			fail_msg("loss %d is %llu", i,
				 (unsigned long long)probed_loss(f, (enum gp_loss)i));
}

/* build/tests/test_probe_session -> build/fake/debian/ops */
int probed_find_program(void **state)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 32);
	char *slash;

	if (n < 0)
		return -1;
	program[n] = '\0';
	for (int i = 0; i < 2; i++) {
		slash = strrchr(program, '/');
		if (!slash)
			return -1;
		*slash = '\0';
	}
	(void)snprintf(slash, sizeof(program) - (size_t)(slash - program), "/fake/%s/ops",
		       probed_build);
	return access(program, X_OK);
}
