/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kernel programs and their probes on tests/fake/ops: a program of our own whose every op is
 * known. Needs root and BPF, and fails without. The program answers each command when it is done,
 * so whatever it caused lies in the ring by then: nothing here waits for time to pass.
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

/* Two adds, each with two muls in it. */
static void expect_nested(struct probed *f)
{
	probed_command(f, "a2 ");
	assert_int_equal(f->got.ops_nr, 6);
	for (size_t i = 0; i < 6; i += 3) {
		probed_expect_op(f, i, "aten::mul", 0);
		probed_expect_op(f, i + 1, "aten::mul", 0);
		probed_expect_op(f, i + 2, "aten::add_", 0);
		probed_expect_inside(f, i, i + 2);
		probed_expect_inside(f, i + 1, i + 2);
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
	assert_int_equal(probed_hits(f), 12);
	probed_expect_no_loss_but(f, GP_LOSS_NR);
}

static void test_nested(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	probed_command(f, "a5 ");
	assert_int_equal(f->got.ops_nr, 0); /* not started */
	assert_int_equal(probed_hits(f), 0);
	probe_session__start(f->session);
	expect_nested(f);
	probe_session__stop(f->session);
	probed_command(f, "a5 ");
	assert_int_equal(f->got.ops_nr, 6);
}

static void test_other_ways(void **state)
{
	static const char *const variables[] = {"GPUPROF_NO_UPROBE_MULTI",
						"GPUPROF_NO_TASK_STORAGE"};

	for (int i = 0; i < 2; i++) {
		struct probed *f = *state;
		struct probe_options few = probed_defaults;
		struct probe_summary summary;

		few.ops_glob = i ? NULL : "aten::mul,aten::a*";
		assert_int_equal(setenv(variables[i], "1", 1), 0);
		probed_begin(f, &few);
		assert_int_equal(unsetenv(variables[i]), 0);
		probe_session__summary(f->session, &summary);
		assert_string_equal(summary.method, i ? "uprobe_multi" : "perf_event");
		probe_session__start(f->session);
		expect_nested(f);
		(void)probed_tear_down(state);
		(void)probed_set_up(state);
	}
}

static void test_caught(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	probed_command(f, "c2 ");
	assert_int_equal(f->got.ops_nr, 5);
	for (size_t i = 0; i < 3; i++)
		probed_expect_op(f, i, "aten::fail", GP_OP_EXCEPTION);
	probed_expect_inside(f, 0, 1);
	probed_expect_inside(f, 1, 2);
	probed_expect_op(f, 3, "aten::mul", 0);
	probed_expect_op(f, 4, "aten::_catch_it", 0);
	probed_expect_inside(f, 2, 4);
	probed_expect_inside(f, 3, 4);
	assert_int_equal(probed_loss(f, GP_LOSS_EXCEPTION), 3);
	probed_expect_no_loss_but(f, GP_LOSS_EXCEPTION);
}

static void test_escaped(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	probed_command(f, "x3 ");
	assert_int_equal(f->got.ops_nr, 4);
	for (size_t i = 0; i < 4; i++)
		probed_expect_op(f, i, "aten::fail", GP_OP_EXCEPTION);
	for (size_t i = 0; i < 3; i++)
		probed_expect_inside(f, i, i + 1);
	assert_true(f->got.ops[3].parent == 0);
	probed_command(f, "a1 ");
	assert_int_equal(f->got.ops_nr, 4 + 3);
	probed_expect_op(f, 6, "aten::add_", 0);
	assert_true(f->got.ops[6].parent == 0);
	probe_session__stop(f->session);
	assert_int_equal(probed_loss(f, GP_LOSS_EXCEPTION), 4);
	probed_expect_no_loss_but(f, GP_LOSS_EXCEPTION);
}

static void test_recursion(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	probed_command(f, "r50 ");
	assert_int_equal(f->got.ops_nr, 50);
	for (size_t i = 0; i < 49; i++) {
		probed_expect_op(f, i, "aten::recurse", 0);
		probed_expect_inside(f, i, i + 1);
	}
	probed_expect_no_loss_but(f, GP_LOSS_NR);
}

static void test_depth(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	probed_command(f, "r200 ");
	assert_int_equal(f->got.ops_nr, GP_OP_DEPTH);
	for (size_t i = 0; i + 1 < GP_OP_DEPTH; i++)
		probed_expect_inside(f, i, i + 1);
	assert_int_equal(probed_loss(f, GP_LOSS_DEPTH), 200 - GP_OP_DEPTH);
	f->got.ops_nr = 0;
	probed_command(f, "x150 ");
	probed_command(f, "a1 ");
	assert_int_equal(f->got.ops_nr, GP_OP_DEPTH + 3);
	assert_true(f->got.ops[GP_OP_DEPTH + 2].parent == 0);
	assert_int_equal(probed_loss(f, GP_LOSS_DEPTH), 200 + 151 - 2 * GP_OP_DEPTH);
	assert_int_equal(probed_loss(f, GP_LOSS_EXCEPTION), GP_OP_DEPTH);
	assert_int_equal(probed_loss(f, GP_LOSS_OPEN_AT_START) + probed_loss(f, GP_LOSS_RECORD), 0);
}

static void test_open_at_the_ends(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	probed_command(f, "w ");
	probe_session__start(f->session);
	probed_send(f, "g");
	probed_wait_answer(f);
	probed_command(f, "a1 ");
	assert_int_equal(f->got.ops_nr, 3);
	assert_int_equal(probed_loss(f, GP_LOSS_OPEN_AT_START), 1);
	probed_command(f, "w ");
	probe_session__stop(f->session);
	assert_int_equal(probed_loss(f, GP_LOSS_OPEN_AT_END), 1);
	probed_send(f, "g");
	probed_wait_answer(f);
}

static void test_memory(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	probed_command(f, "m4096 ");
	assert_int_equal(f->got.memory_nr, 2);
	assert_int_equal(f->got.ops_nr, 1);
	assert_true(f->got.memory[0].instance == f->got.ops[0].instance);
	assert_int_equal(f->got.memory[0].bytes, 4096);
	assert_int_equal(f->got.memory[0].head.flags, 0);
	assert_int_equal(f->got.memory[0].device_type, GP_DEVICE_CPU);
	assert_true(f->got.memory[1].instance == 0);
	assert_true(f->got.memory[1].address == f->got.memory[0].address);
	assert_int_equal(f->got.memory[1].head.flags, GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN);
	probed_expect_no_loss_but(f, GP_LOSS_NR);
}

static void test_threads(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	probed_command(f, "t20 ");
	assert_int_equal(f->got.ops_nr, 60);
	assert_int_equal(f->got.threads_nr, 20);
	for (size_t i = 0; i < 20; i++) {
		assert_string_equal(f->got.threads[i].comm, "worker");
		assert_int_equal(f->got.ops[3 * i].head.tid, f->got.threads[i].head.tid);
		probed_expect_inside(f, 3 * i, 3 * i + 2);
	}
	for (size_t i = 3; i < 60; i++)
		assert_true(f->got.ops[i].instance >> 32 == f->got.ops[i - i % 3].instance >> 32);
	probed_expect_no_loss_but(f, GP_LOSS_NR);
}

static void test_nodes(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	probed_command(f, "b3 ");
	assert_int_equal(f->got.ops_nr, 3);
	probed_expect_op(f, 0, "aten::mul", 0);
	probed_expect_inside(f, 0, 1);
	assert_string_equal(probed_name_of(f, &f->got.ops[1]),
			    "autograd::engine::evaluate_function: FakeBackward0");
	assert_string_equal(probed_name_of(f, &f->got.ops[2]),
			    "autograd::engine::evaluate_function: torch::autograd::Node");
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(f->got.ops[i].scope, GP_SCOPE_BACKWARD);
		assert_int_equal(f->got.ops[i].head.flags, 0);
		assert_true(f->got.ops[i].parent == 0);
	}
	probed_expect_no_loss_but(f, GP_LOSS_NR);
	probed_command(f, "B3 ");
	assert_int_equal(f->got.ops_nr, 4);
	assert_string_equal(probed_name_of(f, &f->got.ops[3]),
			    "autograd::engine::evaluate_function: ?");
	assert_int_equal(probed_loss(f, GP_LOSS_NAMES), 1);
	probed_expect_no_loss_but(f, GP_LOSS_NAMES);
}

static void test_full_ring(void **state)
{
	struct probe_options small = probed_defaults;
	struct probed *f = *state;
	uint64_t full;

	small.ring_bytes = 65536;
	probed_begin(f, &small);
	probe_session__start(f->session);
	probed_command(f, "a1000 ");
	full = probed_loss(f, GP_LOSS_RING_FULL);
	assert_true(full > 0);
	assert_int_equal(f->got.ops_nr + f->got.threads_nr + full, 3000 + 1);
	probed_expect_no_loss_but(f, GP_LOSS_RING_FULL);
}

static void test_process(void **state)
{
	struct probed *f = *state;
	int status;

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	probed_command(f, "f ");
	assert_int_equal(f->got.processes_nr, 1);
	assert_int_equal(f->got.processes[0].what, GP_PROCESS_FORK);
	assert_true(f->got.processes[0].value > 0 && f->got.processes[0].value != f->pid);
	probed_command(f, "l ");
	assert_true(f->got.maps_nr >= 2);
	probed_send(f, "q5 ");
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	f->pid = 0;
	probed_drain(f);
	assert_int_equal(f->got.processes_nr, 2);
	assert_int_equal(f->got.processes[1].what, GP_PROCESS_EXIT);
	assert_int_equal(f->got.processes[1].value, 5 << 8);
	(void)close(f->in);
	(void)close(f->out);
}

/* The program stands still while it loads, and goes on whenever it is let. */
static void test_stop_at_load(void **state)
{
	struct probe_options stop = probed_defaults;
	struct probed *f = *state;
	size_t stops = 0;
	int status;

	stop.stop_at_load = true;
	probed_begin(f, &stop);
	probed_send(f, "l ");
	for (;;) {
		struct pollfd p[2] = {{.fd = f->out, .events = POLLIN},
				      {.fd = probe_session__ring_fd(f->session), .events = POLLIN}};

		assert_true(poll(p, 2, PROBED_LIMIT_MS) > 0);
		if (p[0].revents)
			break;
		assert_int_equal(waitpid(f->pid, &status, WUNTRACED), f->pid);
		assert_true(WIFSTOPPED(status));
		stops++;
		probed_drain(f);
		probe_session__resume(f->session, probed_process);
	}
	assert_true(stops >= 2);
	probed_wait_answer(f);
}

/* Whatever one process's probes are, another that maps the same file is left alone. */
static void test_detach(void **state)
{
	struct probed *f = *state;
	struct probe_options none = probed_defaults;
	struct probe_summary summary;
	struct reason why = {""};

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	probe_session__detach(f->session, probed_process, false);
	probed_command(f, "a10 ");
	assert_int_equal(f->got.ops_nr, 0);
	assert_true(probe_session__attach(f->session, f->process, probed_process, PROBED_GROUPS,
					  &why) > 0);
	assert_int_equal(
		probe_session__attach(f->session, f->process, probed_process, PROBED_GROUPS, &why),
		0);
	probed_command(f, "a10 ");
	assert_int_equal(f->got.ops_nr, 30);
	probe_session__free(f->session);
	f->session = NULL;
	none.ops = false;
	assert_int_equal(probe_session__new(&none, &why, &f->session), 0);
	assert_true(probe_session__attach(f->session, f->process, probed_process, PROBED_GROUPS,
					  &why) > 0);
	probe_session__summary(f->session, &summary);
	assert_int_equal(summary.not_placed_nr, 0);
	probe_session__start(f->session);
	probed_command(f, "m100 ");
	assert_int_equal(f->got.ops_nr, 30);
	assert_int_equal(f->got.memory_nr, 2);
}

static void test_refused(void **state)
{
	struct probed *f = *state;
	struct probe_options odd = probed_defaults;
	struct reason why = {""};

	odd.ring_bytes = 100000;
	assert_int_equal(probe_session__new(&odd, &why, &f->session), -EINVAL);
	assert_non_null(strstr(why.text, "power of two"));
	probed_begin(f, &probed_defaults);
	(void)kill(f->pid, SIGKILL);
	assert_int_equal(waitpid(f->pid, NULL, 0), f->pid);
	probe_session__detach(f->session, probed_process, false);
	assert_true(probe_session__attach(f->session, f->process, probed_process, PROBED_GROUPS,
					  &why) <= 0);
	(void)close(f->in);
	(void)close(f->out);
	f->pid = 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, probed_set_up, probed_tear_down)

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
	failed = cmocka_run_group_tests(tests, probed_find_program, NULL);
	probed_build = "wheel";
	return failed + cmocka_run_group_tests(wheel_tests, probed_find_program, NULL);
}
