/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * inspect/roles on processes that are only told of: every role, what is a guess, who is shown, and
 * that nothing a process claims makes a circle.
 */
#include "base/cleanup.h"
#include "inspect/program/program.h"
#include "inspect/program/roles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PYTHON	"/usr/bin/python3"
#define WORKER	0x44c0 /* SIGBUS, SIGFPE, SIGSEGV, SIGTERM */
#define FAULTS	0x04e8 /* SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV: faulthandler's */
#define SPAWN	"-c", "from multiprocessing.spawn import spawn_main; spawn_main(pipe_handle=1)"
#define SERVER	"-c", "from multiprocessing.forkserver import main; main(9, 11, [])"
#define TRACKER "-c", "from multiprocessing.resource_tracker import main;main(5)"

#define MAX 32

/* The processes of one test. */
static struct target_process processes[MAX];
static struct process_roles list[MAX];
static char texts[MAX][512];
static size_t nr;

static int forget_all(void **state)
{
	(void)state;
	memset(processes, 0, sizeof(processes));
	memset(list, 0, sizeof(list));
	nr = 0;
	return 0;
}

static void put_arguments(struct target_arguments *a, char *to, const char *const *words)
{
	*a = (struct target_arguments){.text = to};
	for (; *words; words++) {
		size_t bytes = strlen(*words) + 1;

		assert_true(a->bytes + bytes <= sizeof(texts[0]));
		memcpy(to + a->bytes, *words, bytes);
		a->bytes += bytes;
	}
}

/* Adds the next process, whose pid is 100 + its index; each is younger than the one before. */
static size_t add(pid_t parent, bool has_torch, const char *const *words)
{
	struct target_process *p = &processes[nr];

	assert_true(nr < MAX);
	*p = (struct target_process){.pid = 100 + (pid_t)nr,
				     .parent = parent,
				     .start_ticks = 1000 + nr,
				     .stack_start = 0x7fff0000 + 16 * nr,
				     .exe = (char *)"/usr/bin/python3.11"};
	(void)snprintf(p->comm, sizeof(p->comm), "python3");
	put_arguments(&p->arguments, texts[nr], words);
	list[nr] = (struct process_roles){.process = p,
					  .has_torch = has_torch,
					  .rank = -1,
					  .local_rank = -1,
					  .world_size = -1};
	return nr++;
}

#define ADD(parent, has_torch, ...)                                                                \
	add((parent), (has_torch), (const char *const[]){__VA_ARGS__, NULL})

static pid_t pid_of(size_t i)
{
	return processes[i].pid;
}

/* A fork of that process, with its arguments, name, environment and signal handlers. */
static size_t add_fork(size_t of, bool has_torch)
{
	size_t i = ADD(pid_of(of), has_torch, "");
	struct target_process was = processes[i];

	processes[i] = processes[of];
	processes[i].pid = was.pid;
	processes[i].parent = was.parent;
	processes[i].start_ticks = was.start_ticks;
	list[i].rank = list[of].rank;
	list[i].local_rank = list[of].local_rank;
	list[i].world_size = list[of].world_size;
	return i;
}

static size_t add_rank(pid_t parent, int32_t rank, int32_t world_size)
{
	size_t i = ADD(parent, true, PYTHON, "train.py");

	list[i].rank = rank;
	list[i].world_size = world_size;
	return i;
}

static void find(void)
{
	assert_int_equal(process_roles_find(list, nr), 0);
}

static void must_be(size_t i, enum process_role role, bool is_guess)
{
	assert_int_equal(list[i].role, role);
	assert_int_equal(list[i].is_guess, is_guess);
}

static void must_be_below(size_t i, size_t parent)
{
	assert_true(list[i].is_shown);
	assert_true(list[i].parent == parent);
}

static void must_be_root(size_t i)
{
	must_be_below(i, ROLES_NO_PARENT);
}

/* ---- programs ---- */

static enum target_program program(const char *const *words)
{
	struct target_arguments a;

	put_arguments(&a, texts[0], words);
	return target_program_of(&a);
}

#define PROGRAM(...) program((const char *const[]){__VA_ARGS__, NULL})

static void test_launchers(void **state)
{
	(void)state;
	assert_int_equal(PROGRAM(PYTHON, "/opt/my env/bin/torchrun", "x.py"), PROGRAM_LAUNCHER);
	assert_int_equal(PROGRAM(PYTHON, "-m", "torch.distributed.run"), PROGRAM_LAUNCHER);
	assert_int_equal(PROGRAM("python", "-uIm", "torch.distributed.launch"), PROGRAM_LAUNCHER);
	assert_int_equal(PROGRAM(PYTHON, "-mtorch.distributed.run"), PROGRAM_LAUNCHER);
	assert_int_equal(PROGRAM(PYTHON, "-W", "ignore", "-Xdev", "/x/torch/distributed/run.py"),
			 PROGRAM_LAUNCHER);
	assert_int_equal(PROGRAM(PYTHON, "/v/bin/accelerate", "launch", "x"), PROGRAM_LAUNCHER);
	assert_int_equal(PROGRAM(PYTHON, "-m", "deepspeed.launcher.launch"), PROGRAM_LAUNCHER);
	assert_int_equal(PROGRAM("mpirun", "-n", "4", "python3", "x.py"), PROGRAM_LAUNCHER);
	assert_int_equal(PROGRAM("/ray/core/src/ray/raylet/raylet", "--x"), PROGRAM_LAUNCHER);
}

/* Words that would be a launcher's elsewhere in a command line. */
static void test_no_launchers(void **state)
{
	(void)state;
	assert_int_equal(PROGRAM(PYTHON, "train.py", "-m", "torch.distributed.run"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "-W", "torchrun", "train.py"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "train.py", "torchrun"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "/v/bin/accelerate", "test"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "/v/bin/accelerate"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM("vim", "torchrun"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "-c", "import torchrun"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "-m", "torch.distributed.runner"), PROGRAM_OTHER);
}

static void test_multiprocessing_programs(void **state)
{
	(void)state;
	assert_int_equal(PROGRAM(PYTHON, "-B", SERVER), PROGRAM_FORKSERVER);
	assert_int_equal(
		PROGRAM(PYTHON, "-c",
			"import sys; from multiprocessing.forkserver import main; main(1)"),
		PROGRAM_FORKSERVER);
	assert_int_equal(PROGRAM(PYTHON, TRACKER), PROGRAM_RESOURCE_TRACKER);
	assert_int_equal(PROGRAM(PYTHON, SPAWN, "--multiprocessing-fork"), PROGRAM_SPAWNED);
	assert_int_equal(
		PROGRAM(PYTHON, "-c", "from multiprocess.spawn import spawn_main; spawn_main(x)"),
		PROGRAM_SPAWNED);
	assert_int_equal(PROGRAM(PYTHON, "-c", "from multiprocessing.pool import Pool"),
			 PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "x.py", SPAWN), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "/p/torch/_inductor/compile_worker/__main__.py"),
			 PROGRAM_COMPILE_WORKER);
	assert_int_equal(PROGRAM("ray::Trainer.step"), PROGRAM_RAY);
}

/* Arguments that end where a value should come, are empty, or are none at all. */
static void test_broken_arguments(void **state)
{
	(void)state;
	assert_int_equal(target_program_of(&(struct target_arguments){0}), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(""), PROGRAM_OTHER);
	assert_int_equal(PROGRAM("", "", ""), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "-"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "--"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "-c"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "-um"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "-W"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "--check-hash-based-pycs"), PROGRAM_OTHER);
	assert_int_equal(PROGRAM(PYTHON, "-m", ""), PROGRAM_OTHER);
}

static void test_title(void **state)
{
	size_t plain = ADD(1, true, "/venv/bin/python", "x.py");
	size_t title = ADD(1, true, "ray::Trainer.step"), none = ADD(1, true, "");
	size_t other = ADD(1, true, "renamed");

	(void)state;
	processes[none].arguments.bytes = 0;
	processes[other].exe = (char *)"/usr/bin/env";
	assert_false(target_process__has_title(&processes[plain]));
	assert_true(target_process__has_title(&processes[title]));
	assert_false(target_process__has_title(&processes[none]));
	assert_false(target_process__has_title(&processes[other]));
}

/* ---- roles ---- */

static void test_job(void **state)
{
	size_t shell = ADD(1, false, "bash");
	size_t launcher = ADD(pid_of(shell), true, PYTHON, "/usr/bin/torchrun", "train.py");
	size_t wrapper = ADD(pid_of(launcher), false, "sh", "train.sh");
	size_t zero = add_rank(pid_of(wrapper), 0, 2), one = add_rank(pid_of(launcher), 1, 2);
	size_t worker = add_fork(zero, true), tool = add_rank(pid_of(zero), 0, 2);

	(void)state;
	(void)snprintf(processes[worker].comm, sizeof(processes[worker].comm), "pt_data_worker");
	find();
	assert_false(list[shell].is_shown);
	must_be_root(launcher);
	must_be(launcher, PROCESS_ROLE_LAUNCHER, false);
	must_be_below(wrapper, launcher);
	must_be(wrapper, PROCESS_ROLE_NONE, false);
	must_be_below(zero, wrapper);
	must_be(zero, PROCESS_ROLE_RANK, false);
	must_be_below(one, launcher);
	must_be(one, PROCESS_ROLE_RANK, false);
	must_be_below(worker, zero);
	must_be(worker, PROCESS_ROLE_DATALOADER_WORKER, false);
	/* What a rank starts has inherited its numbers. */
	must_be_below(tool, zero);
	must_be(tool, PROCESS_ROLE_NONE, false);
}

/* In Kubernetes the launcher itself may have the numbers of its node. */
static void test_launcher_with_rank(void **state)
{
	size_t launcher = ADD(1, true, PYTHON, "-m", "torch.distributed.run");
	size_t rank = add_rank(pid_of(launcher), 0, 2);

	(void)state;
	list[launcher].rank = 0;
	list[launcher].world_size = 2;
	find();
	must_be(launcher, PROCESS_ROLE_LAUNCHER, false);
	must_be(rank, PROCESS_ROLE_RANK, false);
}

/* Ranks are counted anew below a launcher, whatever started it. */
static void test_launcher_below_rank(void **state)
{
	size_t outer = add_rank(1, 0, 2);
	size_t launcher = ADD(pid_of(outer), true, PYTHON, "/usr/bin/torchrun", "x.py");
	size_t rank = add_rank(pid_of(launcher), 0, 2);

	(void)state;
	find();
	must_be(rank, PROCESS_ROLE_RANK, false);
	must_be_below(rank, launcher);
	must_be_below(launcher, outer);
}

/* A launcher of PyTorch 2.6 and newer tells by the name of its thread, but its forks have that. */
static void test_launcher_by_name(void **state)
{
	size_t launcher = ADD(1, true, PYTHON, "own.py"), child;

	(void)state;
	(void)snprintf(processes[launcher].comm, sizeof(processes[launcher].comm), "pt_elastic");
	child = add_fork(launcher, true);
	find();
	must_be(launcher, PROCESS_ROLE_LAUNCHER, false);
	must_be(child, PROCESS_ROLE_FORKED_CHILD, false);
}

static void test_launcher_without_torch(void **state)
{
	size_t idle = ADD(1, false, PYTHON, "/usr/bin/torchrun", "x.py");
	size_t launcher = ADD(1, false, "mpirun"), rank = add_rank(pid_of(launcher), 0, 1);

	(void)state;
	find();
	assert_false(list[idle].is_shown);
	must_be_root(launcher);
	must_be_below(rank, launcher);
}

static void test_numbers_that_make_no_rank(void **state)
{
	size_t beyond = add_rank(1, 2, 2), alone = add_rank(1, 0, -1);
	size_t without_torch = add_rank(1, 0, 2), local = add_rank(1, -1, 2);

	(void)state;
	list[without_torch].has_torch = false;
	list[local].local_rank = 1;
	find();
	must_be(beyond, PROCESS_ROLE_NONE, false);
	must_be(alone, PROCESS_ROLE_NONE, false);
	must_be(without_torch, PROCESS_ROLE_NONE, false);
	must_be(local, PROCESS_ROLE_RANK, false);
}

/* One that uses PyTorch itself may have set the numbers for itself. */
static void test_rank_below_torch(void **state)
{
	size_t trainer = ADD(1, true, PYTHON, "train.py");
	size_t lone = add_rank(pid_of(trainer), 1, 2);
	size_t starter = ADD(1, true, PYTHON, "start.py");
	size_t zero = add_rank(pid_of(starter), 0, 2), one = add_rank(pid_of(starter), 1, 2);

	(void)state;
	find();
	must_be(lone, PROCESS_ROLE_RANK, true);
	must_be(zero, PROCESS_ROLE_RANK, false);
	must_be(one, PROCESS_ROLE_RANK, false);
	must_be_below(one, starter);
}

/* A script that starts ranks is shown; init, to which orphans go, and one of one rank are not. */
static void test_starter_without_torch(void **state)
{
	size_t script = ADD(1, false, "bash", "start.sh");
	size_t zero = add_rank(pid_of(script), 0, 2), one = add_rank(pid_of(script), 1, 2);
	size_t shell = ADD(1, false, "bash"), single = add_rank(pid_of(shell), 0, 1);

	(void)state;
	find();
	must_be_root(script);
	must_be(script, PROCESS_ROLE_NONE, false);
	must_be_below(zero, script);
	must_be_below(one, script);
	assert_false(list[shell].is_shown);
	must_be_root(single);
}

static void test_orphans_of_init(void **state)
{
	size_t init = ADD(0, false, "/sbin/init"), zero, one;

	(void)state;
	processes[init].pid = 1;
	zero = add_rank(1, 0, 2);
	one = add_rank(1, 1, 2);
	find();
	assert_false(list[init].is_shown);
	must_be_root(zero);
	must_be_root(one);
}

/* Forks are no ranks, though they have the numbers; nor is what multiprocessing spawns. */
static void test_copies_of_a_rank(void **state)
{
	size_t master = add_rank(1, 0, 2), fork_ = add_fork(master, true);
	size_t spawned = ADD(pid_of(master), true, PYTHON, SPAWN);

	(void)state;
	list[master].has_torch = false; /* as of a server that loads it in its workers alone */
	list[spawned].rank = 0;
	list[spawned].world_size = 2;
	find();
	must_be_root(master);
	must_be_below(fork_, master);
	must_be(fork_, PROCESS_ROLE_FORKED_CHILD, false);
	must_be(spawned, PROCESS_ROLE_SPAWNED_CHILD, false);
}

static void test_workers_by_signals(void **state)
{
	size_t trainer = ADD(1, true, PYTHON, "train.py"), forked = add_fork(trainer, true);
	size_t spawned = ADD(pid_of(trainer), true, PYTHON, SPAWN);
	size_t plain = add_fork(trainer, true), tool = ADD(pid_of(trainer), true, PYTHON, "x.py");
	size_t below;

	(void)state;
	processes[forked].signals_caught = processes[spawned].signals_caught = WORKER | 2;
	processes[tool].signals_caught = WORKER;
	below = add_fork(forked, true);
	find();
	must_be(forked, PROCESS_ROLE_DATALOADER_WORKER, true);
	must_be(spawned, PROCESS_ROLE_DATALOADER_WORKER, true);
	must_be(plain, PROCESS_ROLE_FORKED_CHILD, false);
	must_be(tool, PROCESS_ROLE_NONE, false);
	must_be(below, PROCESS_ROLE_FORKED_CHILD, false);
}

/* Handlers that others set, too: a user's own, or faulthandler. */
static void test_signals_that_prove_nothing(void **state)
{
	size_t trainer = ADD(1, true, PYTHON, "train.py"), inherited, spawned, partly;

	(void)state;
	processes[trainer].signals_caught = WORKER;
	inherited = add_fork(trainer, true);
	spawned = ADD(pid_of(trainer), true, PYTHON, SPAWN);
	processes[spawned].signals_caught = WORKER | FAULTS;
	partly = ADD(pid_of(trainer), true, PYTHON, SPAWN);
	processes[partly].signals_caught = WORKER & ~0x4000;
	find();
	must_be(inherited, PROCESS_ROLE_FORKED_CHILD, false);
	must_be(spawned, PROCESS_ROLE_SPAWNED_CHILD, false);
	must_be(partly, PROCESS_ROLE_SPAWNED_CHILD, false);
}

static void test_forkserver(void **state)
{
	size_t trainer = ADD(1, true, PYTHON, "train.py");
	size_t tracker = ADD(pid_of(trainer), false, PYTHON, TRACKER);
	size_t server = ADD(pid_of(trainer), false, PYTHON, SERVER);
	size_t worker = add_fork(server, true), other = add_fork(server, true);

	(void)state;
	processes[worker].signals_caught = WORKER;
	find();
	must_be(tracker, PROCESS_ROLE_RESOURCE_TRACKER, false);
	assert_false(list[tracker].is_shown);
	must_be(server, PROCESS_ROLE_FORKSERVER, false);
	must_be_below(server, trainer);
	must_be(worker, PROCESS_ROLE_DATALOADER_WORKER, true);
	must_be_below(worker, server);
	must_be(other, PROCESS_ROLE_FORKSERVER_CHILD, false);
}

static void test_compile_workers(void **state)
{
	size_t trainer = add_rank(1, 0, 2);
	size_t pool =
		ADD(pid_of(trainer), true, PYTHON, "/p/torch/_inductor/compile_worker/__main__.py");
	size_t worker = add_fork(pool, true);

	(void)state;
	find();
	must_be(pool, PROCESS_ROLE_COMPILE_WORKER, false);
	must_be(worker, PROCESS_ROLE_COMPILE_WORKER, false);
	must_be_below(worker, pool);
}

static void test_ray(void **state)
{
	size_t raylet = ADD(1, false, "/ray/raylet/raylet");
	size_t actor = ADD(pid_of(raylet), true, "ray::Trainer.step");
	size_t child = add_fork(actor, true);

	(void)state;
	list[actor].rank = 0; /* the node's, from the environment that Ray was started with */
	list[actor].world_size = 1;
	find();
	must_be_root(raylet);
	must_be(actor, PROCESS_ROLE_RAY_WORKER, false);
	must_be_below(actor, raylet);
	/* It has the title of its parent. */
	must_be(child, PROCESS_ROLE_FORKED_CHILD, false);
}

/* A fork is known by its stack, whatever it calls itself; a new program with the same arguments is
 * no fork. */
static void test_fork_by_stack(void **state)
{
	size_t trainer = ADD(1, true, PYTHON, "train.py"), renamed = add_fork(trainer, true);
	size_t again = ADD(pid_of(trainer), true, PYTHON, "train.py"), unknown;

	(void)state;
	put_arguments(&processes[renamed].arguments, texts[renamed],
		      (const char *const[]){"VLLM::Worker", NULL});
	unknown = add_fork(again, true);
	processes[again].stack_start = processes[unknown].stack_start = 0;
	find();
	must_be(renamed, PROCESS_ROLE_FORKED_CHILD, false);
	must_be(again, PROCESS_ROLE_NONE, false);
	must_be(unknown, PROCESS_ROLE_NONE, false);
}

/* Numbers that went to other processes while the list was made: each is the other's parent, one is
 * its own, one has a younger one. */
static void test_circles(void **state)
{
	size_t a = ADD(101, true, PYTHON), b = ADD(100, true, PYTHON);
	size_t own = ADD(102, true, PYTHON), early = ADD(104, true, PYTHON);

	(void)state;
	(void)ADD(1, true, PYTHON);
	processes[b].start_ticks = processes[a].start_ticks;
	find();
	must_be_root(a);
	must_be_below(b, a);
	must_be_root(own);
	must_be_root(early);
}

static void test_nothing(void **state)
{
	(void)state;
	assert_int_equal(process_roles_find(NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_launchers, forget_all),
		cmocka_unit_test_setup(test_no_launchers, forget_all),
		cmocka_unit_test_setup(test_multiprocessing_programs, forget_all),
		cmocka_unit_test_setup(test_broken_arguments, forget_all),
		cmocka_unit_test_setup(test_title, forget_all),
		cmocka_unit_test_setup(test_job, forget_all),
		cmocka_unit_test_setup(test_launcher_with_rank, forget_all),
		cmocka_unit_test_setup(test_launcher_below_rank, forget_all),
		cmocka_unit_test_setup(test_launcher_by_name, forget_all),
		cmocka_unit_test_setup(test_launcher_without_torch, forget_all),
		cmocka_unit_test_setup(test_numbers_that_make_no_rank, forget_all),
		cmocka_unit_test_setup(test_rank_below_torch, forget_all),
		cmocka_unit_test_setup(test_starter_without_torch, forget_all),
		cmocka_unit_test_setup(test_orphans_of_init, forget_all),
		cmocka_unit_test_setup(test_copies_of_a_rank, forget_all),
		cmocka_unit_test_setup(test_workers_by_signals, forget_all),
		cmocka_unit_test_setup(test_signals_that_prove_nothing, forget_all),
		cmocka_unit_test_setup(test_forkserver, forget_all),
		cmocka_unit_test_setup(test_compile_workers, forget_all),
		cmocka_unit_test_setup(test_ray, forget_all),
		cmocka_unit_test_setup(test_fork_by_stack, forget_all),
		cmocka_unit_test_setup(test_circles, forget_all),
		cmocka_unit_test_setup(test_nothing, forget_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
