/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kernel programs and their probes on tests/fake/ops: a program of our own whose every op is
 * known. Needs root and BPF, and fails without. The program answers each command when it is done,
 * so whatever it caused lies in the ring by then: nothing here waits for time to pass.
 */
#include "probe/session.h"

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

#define LIMIT_MS   120000
#define EVENTS_MAX 8192

static uint16_t process_index; /* of the program, in events */

struct got {
	struct gp_ev_op ops[EVENTS_MAX];
	size_t ops_nr;
	struct gp_ev_memory memory[64];
	size_t memory_nr;
	struct gp_ev_thread threads[64];
	size_t threads_nr;
	struct gp_ev_process processes[64];
	size_t processes_nr;
	size_t maps_nr;
	size_t others_nr;
};

struct fixture {
	pid_t pid;
	int in;	 /* commands to the program */
	int out; /* its answers */
	struct target_process *process;
	struct probe_session *session;
	struct got got;
};

static char program[4096];
static bool as_wheel;

static int take_event(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	struct got *g = arg;

	assert_int_equal(head->process, process_index);
	if (head->kind == GP_EV_OP && g->ops_nr < EVENTS_MAX) {
		assert_int_equal(bytes, sizeof(struct gp_ev_op));
		memcpy(&g->ops[g->ops_nr++], event, sizeof(struct gp_ev_op));
	} else if (head->kind == GP_EV_MEMORY && g->memory_nr < 64) {
		memcpy(&g->memory[g->memory_nr++], event, sizeof(struct gp_ev_memory));
	} else if (head->kind == GP_EV_THREAD && g->threads_nr < 64) {
		memcpy(&g->threads[g->threads_nr++], event, sizeof(struct gp_ev_thread));
	} else if (head->kind == GP_EV_PROCESS && g->processes_nr < 64) {
		memcpy(&g->processes[g->processes_nr++], event, sizeof(struct gp_ev_process));
	} else if (head->kind == GP_EV_MAPS) {
		g->maps_nr++;
	} else {
		g->others_nr++;
	}
	return 0;
}

static void drain(struct fixture *f)
{
	assert_true(probe_session__drain(f->session, take_event, &f->got) >= 0);
}

static void wait_answer(struct fixture *f)
{
	struct pollfd p = {.fd = f->out, .events = POLLIN};
	char byte;

	assert_int_equal(poll(&p, 1, LIMIT_MS), 1);
	assert_int_equal(read(f->out, &byte, 1), 1);
}

static void send(struct fixture *f, const char *command)
{
	assert_int_equal(write(f->in, command, strlen(command)), (ssize_t)strlen(command));
}

/* The command is done, and the events of it are in f->got. */
static void command(struct fixture *f, const char *text)
{
	send(f, text);
	wait_answer(f);
	drain(f);
}

static void start_program(struct fixture *f)
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
	wait_answer(f);
}

static void fail_with(const char *what, const struct reason *why)
{
	fail_msg("%s: %s", what, why->text);
}

static void begin(struct fixture *f, const struct probe_options *options)
{
	struct reason why = {""};

	/* The first one is the one that is stopped. */
	process_index = options->stop_at_load ? 0 : 7;
	start_program(f);
	if (target_process__new(f->pid, &why, &f->process))
		fail_with("process", &why);
	if (probe_session__new(options, &why, &f->session))
		fail_with("session", &why);
	if (probe_session__attach(f->session, f->process, process_index, PROBE_GROUP_OPS, &why) <=
	    0)
		fail_with("attach", &why);
}

static const struct probe_options defaults = {.ring_bytes = 1 << 20, .ops = true, .memory = true};

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

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

static const char *name_of(const struct fixture *f, const struct gp_ev_op *op)
{
	if (!op->name_id || op->name_id > probe_session__names(f->session))
		return "?";
	return probe_session__name(f->session, op->name_id - 1).name;
}

static void expect_op(const struct fixture *f, size_t i, const char *name, uint8_t flags)
{
	assert_true(i < f->got.ops_nr);
	assert_string_equal(name_of(f, &f->got.ops[i]), name);
	assert_int_equal(f->got.ops[i].head.flags, flags);
	assert_int_equal(f->got.ops[i].scope, GP_SCOPE_FUNCTION);
	assert_true(f->got.ops[i].start_ns && f->got.ops[i].start_ns <= f->got.ops[i].head.time_ns);
}

static void expect_inside(const struct fixture *f, size_t inner, size_t outer)
{
	const struct gp_ev_op *i = &f->got.ops[inner], *o = &f->got.ops[outer];

	assert_true(i->parent == o->instance);
	assert_true(i->head.tid == o->head.tid);
	assert_true(i->start_ns >= o->start_ns && i->head.time_ns <= o->head.time_ns);
}

static uint64_t loss(const struct fixture *f, enum gp_loss which)
{
	uint64_t losses[GP_LOSS_NR];

	probe_session__losses(f->session, losses);
	return losses[which];
}

static void expect_no_loss_but(const struct fixture *f, enum gp_loss but)
{
	for (int i = 0; i < GP_LOSS_NR; i++)
		if (i != (int)but && loss(f, (enum gp_loss)i))
			fail_msg("loss %d is %llu", i,
				 (unsigned long long)loss(f, (enum gp_loss)i));
}

/* Two adds, each with two muls in it. */
static void expect_nested(struct fixture *f)
{
	command(f, "a2 ");
	assert_int_equal(f->got.ops_nr, 6);
	for (size_t i = 0; i < 6; i += 3) {
		expect_op(f, i, "aten::mul", 0);
		expect_op(f, i + 1, "aten::mul", 0);
		expect_op(f, i + 2, "aten::add_", 0);
		expect_inside(f, i, i + 2);
		expect_inside(f, i + 1, i + 2);
		assert_true(f->got.ops[i + 2].parent == 0);
		assert_int_equal(f->got.ops[i].head.tid, f->pid);
	}
	for (size_t i = 0; i < 6; i++)
		for (size_t k = 0; k < i; k++)
			assert_true(f->got.ops[i].instance != f->got.ops[k].instance);
	assert_string_equal(probe_session__name(f->session, f->got.ops[2].name_id - 1).overload,
			    "Tensor");
	assert_int_equal(f->got.threads_nr, 1);
	assert_int_equal(f->got.threads[0].head.tid, f->pid);
	assert_string_equal(f->got.threads[0].comm, "ops");
	assert_int_equal(probe_session__hits(f->session), 12);
	expect_no_loss_but(f, GP_LOSS_NR);
}

static void test_nested(void **state)
{
	struct fixture *f = *state;

	begin(f, &defaults);
	command(f, "a5 ");
	assert_int_equal(f->got.ops_nr, 0); /* not started */
	assert_int_equal(probe_session__hits(f->session), 0);
	probe_session__start(f->session);
	expect_nested(f);
	probe_session__stop(f->session);
	command(f, "a5 ");
	assert_int_equal(f->got.ops_nr, 6);
}

static void test_other_ways(void **state)
{
	static const char *const variables[] = {"GPUPROF_NO_UPROBE_MULTI",
						"GPUPROF_NO_TASK_STORAGE"};

	for (int i = 0; i < 2; i++) {
		struct fixture *f = *state;
		struct probe_options few = defaults;
		struct probe_summary summary;

		few.ops_glob = i ? NULL : "aten::mul,aten::a*";
		assert_int_equal(setenv(variables[i], "1", 1), 0);
		begin(f, &few);
		assert_int_equal(unsetenv(variables[i]), 0);
		probe_session__summary(f->session, &summary);
		assert_string_equal(summary.method, i ? "uprobe_multi" : "perf_event");
		probe_session__start(f->session);
		expect_nested(f);
		(void)tear_down(state);
		(void)set_up(state);
	}
}

static void test_caught(void **state)
{
	struct fixture *f = *state;

	begin(f, &defaults);
	probe_session__start(f->session);
	command(f, "c2 ");
	assert_int_equal(f->got.ops_nr, 5);
	for (size_t i = 0; i < 3; i++)
		expect_op(f, i, "aten::fail", GP_OP_EXCEPTION);
	expect_inside(f, 0, 1);
	expect_inside(f, 1, 2);
	expect_op(f, 3, "aten::mul", 0);
	expect_op(f, 4, "aten::_catch_it", 0);
	expect_inside(f, 2, 4);
	expect_inside(f, 3, 4);
	assert_int_equal(loss(f, GP_LOSS_EXCEPTION), 3);
	expect_no_loss_but(f, GP_LOSS_EXCEPTION);
}

static void test_escaped(void **state)
{
	struct fixture *f = *state;

	begin(f, &defaults);
	probe_session__start(f->session);
	command(f, "x3 ");
	assert_int_equal(f->got.ops_nr, 4);
	for (size_t i = 0; i < 4; i++)
		expect_op(f, i, "aten::fail", GP_OP_EXCEPTION);
	for (size_t i = 0; i < 3; i++)
		expect_inside(f, i, i + 1);
	assert_true(f->got.ops[3].parent == 0);
	command(f, "a1 ");
	assert_int_equal(f->got.ops_nr, 4 + 3);
	expect_op(f, 6, "aten::add_", 0);
	assert_true(f->got.ops[6].parent == 0);
	probe_session__stop(f->session);
	assert_int_equal(loss(f, GP_LOSS_EXCEPTION), 4);
	expect_no_loss_but(f, GP_LOSS_EXCEPTION);
}

static void test_recursion(void **state)
{
	struct fixture *f = *state;

	begin(f, &defaults);
	probe_session__start(f->session);
	command(f, "r50 ");
	assert_int_equal(f->got.ops_nr, 50);
	for (size_t i = 0; i < 49; i++) {
		expect_op(f, i, "aten::recurse", 0);
		expect_inside(f, i, i + 1);
	}
	expect_no_loss_but(f, GP_LOSS_NR);
}

static void test_depth(void **state)
{
	struct fixture *f = *state;

	begin(f, &defaults);
	probe_session__start(f->session);
	command(f, "r200 ");
	assert_int_equal(f->got.ops_nr, GP_OP_DEPTH);
	for (size_t i = 0; i + 1 < GP_OP_DEPTH; i++)
		expect_inside(f, i, i + 1);
	assert_int_equal(loss(f, GP_LOSS_DEPTH), 200 - GP_OP_DEPTH);
	f->got.ops_nr = 0;
	command(f, "x150 ");
	command(f, "a1 ");
	assert_int_equal(f->got.ops_nr, GP_OP_DEPTH + 3);
	assert_true(f->got.ops[GP_OP_DEPTH + 2].parent == 0);
	assert_int_equal(loss(f, GP_LOSS_DEPTH), 200 + 151 - 2 * GP_OP_DEPTH);
	assert_int_equal(loss(f, GP_LOSS_EXCEPTION), GP_OP_DEPTH);
	assert_int_equal(loss(f, GP_LOSS_OPEN_AT_START) + loss(f, GP_LOSS_RECORD), 0);
}

static void test_open_at_the_ends(void **state)
{
	struct fixture *f = *state;

	begin(f, &defaults);
	command(f, "w ");
	probe_session__start(f->session);
	send(f, "g");
	wait_answer(f);
	command(f, "a1 ");
	assert_int_equal(f->got.ops_nr, 3);
	assert_int_equal(loss(f, GP_LOSS_OPEN_AT_START), 1);
	command(f, "w ");
	probe_session__stop(f->session);
	assert_int_equal(loss(f, GP_LOSS_OPEN_AT_END), 1);
	send(f, "g");
	wait_answer(f);
}

static void test_memory(void **state)
{
	struct fixture *f = *state;

	begin(f, &defaults);
	probe_session__start(f->session);
	command(f, "m4096 ");
	assert_int_equal(f->got.memory_nr, 2);
	assert_int_equal(f->got.ops_nr, 1);
	assert_true(f->got.memory[0].instance == f->got.ops[0].instance);
	assert_int_equal(f->got.memory[0].bytes, 4096);
	assert_int_equal(f->got.memory[0].head.flags, 0);
	assert_int_equal(f->got.memory[0].device_type, GP_DEVICE_CPU);
	assert_true(f->got.memory[1].instance == 0);
	assert_true(f->got.memory[1].address == f->got.memory[0].address);
	assert_int_equal(f->got.memory[1].head.flags, GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN);
	expect_no_loss_but(f, GP_LOSS_NR);
}

static void test_threads(void **state)
{
	struct fixture *f = *state;

	begin(f, &defaults);
	probe_session__start(f->session);
	command(f, "t20 ");
	assert_int_equal(f->got.ops_nr, 60);
	assert_int_equal(f->got.threads_nr, 20);
	for (size_t i = 0; i < 20; i++) {
		assert_string_equal(f->got.threads[i].comm, "worker");
		assert_int_equal(f->got.ops[3 * i].head.tid, f->got.threads[i].head.tid);
		expect_inside(f, 3 * i, 3 * i + 2);
	}
	for (size_t i = 3; i < 60; i++)
		assert_true(f->got.ops[i].instance >> 32 == f->got.ops[i - i % 3].instance >> 32);
	expect_no_loss_but(f, GP_LOSS_NR);
}

static void test_nodes(void **state)
{
	struct fixture *f = *state;

	begin(f, &defaults);
	probe_session__start(f->session);
	command(f, "b3 ");
	assert_int_equal(f->got.ops_nr, 3);
	expect_op(f, 0, "aten::mul", 0);
	expect_inside(f, 0, 1);
	assert_string_equal(name_of(f, &f->got.ops[1]),
			    "autograd::engine::evaluate_function: FakeBackward0");
	assert_string_equal(name_of(f, &f->got.ops[2]),
			    "autograd::engine::evaluate_function: torch::autograd::Node");
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(f->got.ops[i].scope, GP_SCOPE_BACKWARD);
		assert_int_equal(f->got.ops[i].head.flags, 0);
		assert_true(f->got.ops[i].parent == 0);
	}
	expect_no_loss_but(f, GP_LOSS_NR);
}

static void test_full_ring(void **state)
{
	struct probe_options small = defaults;
	struct fixture *f = *state;
	uint64_t full;

	small.ring_bytes = 65536;
	begin(f, &small);
	probe_session__start(f->session);
	command(f, "a1000 ");
	full = loss(f, GP_LOSS_RING_FULL);
	assert_true(full > 0);
	assert_int_equal(f->got.ops_nr + f->got.threads_nr + full, 3000 + 1);
	expect_no_loss_but(f, GP_LOSS_RING_FULL);
}

static void test_process(void **state)
{
	struct fixture *f = *state;
	int status;

	begin(f, &defaults);
	probe_session__start(f->session);
	command(f, "f ");
	assert_int_equal(f->got.processes_nr, 1);
	assert_int_equal(f->got.processes[0].what, GP_PROCESS_FORK);
	assert_true(f->got.processes[0].value > 0 && f->got.processes[0].value != f->pid);
	command(f, "l ");
	assert_true(f->got.maps_nr >= 2);
	send(f, "q5 ");
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	f->pid = 0;
	drain(f);
	assert_int_equal(f->got.processes_nr, 2);
	assert_int_equal(f->got.processes[1].what, GP_PROCESS_EXIT);
	assert_int_equal(f->got.processes[1].value, 5 << 8);
	(void)close(f->in);
	(void)close(f->out);
}

/* The program stands still while it loads, and goes on whenever it is let. */
static void test_stop_at_load(void **state)
{
	struct probe_options stop = defaults;
	struct fixture *f = *state;
	size_t stops = 0;
	int status;

	stop.stop_at_load = true;
	begin(f, &stop);
	send(f, "l ");
	for (;;) {
		struct pollfd p[2] = {{.fd = f->out, .events = POLLIN},
				      {.fd = probe_session__ring_fd(f->session), .events = POLLIN}};

		assert_true(poll(p, 2, LIMIT_MS) > 0);
		if (p[0].revents)
			break;
		assert_int_equal(waitpid(f->pid, &status, WUNTRACED), f->pid);
		assert_true(WIFSTOPPED(status));
		stops++;
		drain(f);
		probe_session__resume(f->session, process_index);
	}
	assert_true(stops >= 2);
	wait_answer(f);
}

/* Whatever one process's probes are, another that maps the same file is left alone. */
static void test_detach(void **state)
{
	struct fixture *f = *state;
	struct probe_options none = defaults;
	struct probe_summary summary;
	struct reason why = {""};

	begin(f, &defaults);
	probe_session__start(f->session);
	probe_session__detach(f->session, process_index);
	command(f, "a10 ");
	assert_int_equal(f->got.ops_nr, 0);
	assert_true(probe_session__attach(f->session, f->process, process_index, PROBE_GROUP_OPS,
					  &why) > 0);
	assert_int_equal(
		probe_session__attach(f->session, f->process, process_index, PROBE_GROUP_OPS, &why),
		0);
	command(f, "a10 ");
	assert_int_equal(f->got.ops_nr, 30);
	probe_session__free(f->session);
	f->session = NULL;
	none.ops = false;
	assert_int_equal(probe_session__new(&none, &why, &f->session), 0);
	assert_true(probe_session__attach(f->session, f->process, process_index, PROBE_GROUP_OPS,
					  &why) > 0);
	probe_session__summary(f->session, &summary);
	assert_int_equal(summary.not_placed_nr, 0);
	probe_session__start(f->session);
	command(f, "m100 ");
	assert_int_equal(f->got.ops_nr, 30);
	assert_int_equal(f->got.memory_nr, 2);
}

static void test_refused(void **state)
{
	struct fixture *f = *state;
	struct probe_options odd = defaults;
	struct reason why = {""};

	odd.ring_bytes = 100000;
	assert_int_equal(probe_session__new(&odd, &why, &f->session), -EINVAL);
	assert_non_null(strstr(why.text, "power of two"));
	begin(f, &defaults);
	(void)kill(f->pid, SIGKILL);
	assert_int_equal(waitpid(f->pid, NULL, 0), f->pid);
	probe_session__detach(f->session, process_index);
	assert_true(probe_session__attach(f->session, f->process, process_index, PROBE_GROUP_OPS,
					  &why) <= 0);
	(void)close(f->in);
	(void)close(f->out);
	f->pid = 0;
}

/* build/tests/test_probe_session -> build/fake/debian/ops or build/fake/wheel/ops */
static int find_program(void **state)
{
	static const char debian[] = "/fake/debian/ops", wheel[] = "/fake/wheel/ops";
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
	memcpy(slash, wheel, sizeof(wheel));
	if (!as_wheel)
		memcpy(slash, debian, sizeof(debian));
	return access(program, X_OK);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nested),	     TEST(test_other_ways),
		TEST(test_caught),	     TEST(test_escaped),
		TEST(test_recursion),	     TEST(test_depth),
		TEST(test_open_at_the_ends), TEST(test_memory),
		TEST(test_threads),	     TEST(test_nodes),
		TEST(test_full_ring),	     TEST(test_process),
		TEST(test_stop_at_load),     TEST(test_detach),
		TEST(test_refused),
	};

	/* The same code without stack protector: other places, the same events. */
	const struct CMUnitTest wheel_tests[] = {TEST(test_nested),  TEST(test_caught),
						 TEST(test_escaped), TEST(test_depth),
						 TEST(test_nodes),   TEST(test_memory)};
	int failed;

	(void)signal(SIGPIPE, SIG_IGN);
	failed = cmocka_run_group_tests(tests, find_program, NULL);
	as_wheel = true;
	return failed + cmocka_run_group_tests(wheel_tests, find_program, NULL);
}
