/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What cannot be probed is counted, and tried again where it may go well: on tests/fake/ops, with a
 * kernel that refuses (system calls go through this file) and with no descriptor left. Needs root
 * and BPF.
 */
#include "unit/probe_program.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum refused { NOTHING, ALL_PROBES, OPERATORS_ENDS, ITERATORS };

static enum refused refused;
static int refused_errno;
static uint32_t ends_program; /* 0: not linked yet */

/* Of the words of what is asked for the first is the link's program, the third its type, and the
 * 13th how many probes it has. Ends of operators are the first of which a file has many. */
static bool is_refused(const uint32_t *link)
{
	bool is_iterator = link[2] == BPF_TRACE_ITER;

	if (refused == ITERATORS)
		return is_iterator;
	if (refused == NOTHING || is_iterator)
		return false;
	if (!ends_program && link[12] > 2)
		ends_program = link[0];
	return refused == ALL_PROBES || link[0] == ends_program;
}

/* Of everybody in this program, libbpf among them. What is not given is read all the same. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
	static long (*real)(long number, ...);
	long word[6];
	va_list words;

	va_start(words, number);
	for (int i = 0; i < 6; i++)
		word[i] = va_arg(words, long);
	va_end(words);
	if (number == SYS_bpf && word[0] == BPF_LINK_CREATE && is_refused((uint32_t *)word[1])) {
		errno = refused_errno;
		return -1;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}

static int attach(struct probed *f, enum refused what, int with)
{
	struct reason why = {""};
	int nr;

	ends_program = 0;
	refused = what;
	refused_errno = with;
	nr = probe_session__attach(f->session, f->process, probed_process, PROBED_GROUPS, &why);
	refused = NOTHING;
	assert_true(nr >= 0 || why.text[0]);
	return nr;
}

static void expect_whole(struct probed *f)
{
	f->got.ops_nr = 0;
	probed_command(f, "a2 ");
	assert_int_equal(f->got.ops_nr, 6);
}

static void test_no_descriptor(void **state)
{
	struct probed *f = *state;
	struct rlimit before, none;
	int lowest, nr;

	probed_start(f, &probed_defaults);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	lowest = dup(0);
	assert_true(lowest > 0);
	(void)close(lowest);
	none = before;
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	nr = attach(f, NOTHING, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(nr, -EMFILE);
	assert_true(probed_loss(f, GP_LOSS_PROBE) > 0);
	assert_true(attach(f, NOTHING, 0) > 0);
	probe_session__start(f->session);
	expect_whole(f);
}

static void test_no_descriptor_for_a_link(void **state)
{
	struct probed *f = *state;
	uint64_t lost;

	probed_start(f, &probed_defaults);
	assert_int_equal(attach(f, ALL_PROBES, EMFILE), -EMFILE);
	lost = probed_loss(f, GP_LOSS_PROBE);
	assert_true(lost > 0);
	assert_int_equal(attach(f, ALL_PROBES, EMFILE), -EMFILE);
	assert_int_equal(probed_loss(f, GP_LOSS_PROBE), lost); /* not twice */
	assert_true(attach(f, NOTHING, 0) > 0);
	probe_session__start(f->session);
	expect_whole(f);
}

static void test_everything_refused(void **state)
{
	struct probed *f = *state;

	probed_start(f, &probed_defaults);
	assert_int_equal(attach(f, ALL_PROBES, EIO), 0);
	assert_true(probed_loss(f, GP_LOSS_PROBE) > 1);
}

/* Those that cannot be seen to end are not seen to begin; the rest of the file is. */
static void test_operators_ends_refused(void **state)
{
	struct probed *f = *state;

	probed_start(f, &probed_defaults);
	assert_true(attach(f, OPERATORS_ENDS, EINVAL) > 0);
	assert_true(probed_loss(f, GP_LOSS_PROBE) > 1);
	probe_session__start(f->session);
	probed_command(f, "m4096 ");
	assert_int_equal(f->got.memory_nr, 2);
	assert_int_equal(f->got.ops_nr, 0);
	probe_session__stop(f->session);
	probed_expect_no_loss_but(f, GP_LOSS_PROBE);
}

/* As a link to it, a copy of it or a change of its owner does. */
static void change_times(const struct probed *f)
{
	size_t nr = 0;

	for (size_t i = 0; i < f->process->libraries_nr; i++) {
		const char *path = f->process->libraries[i].path;
		struct stat st;

		if (!strstr(path, "/fake/") || stat(path, &st))
			continue;
		assert_int_equal(chmod(path, st.st_mode & 07777), 0);
		nr++;
	}
	assert_true(nr > 0);
}

static void test_changed_times(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	change_times(f);
	assert_int_equal(attach(f, NOTHING, 0), 0);
	probe_session__start(f->session);
	expect_whole(f);
	probe_session__pause(f->session, true);
	probe_session__lift(f->session, probed_process);
	change_times(f);
	probe_session__place(f->session, f->process, probed_process);
	probe_session__pause(f->session, false);
	expect_whole(f);
	probe_session__stop(f->session);
	probed_expect_no_loss_but(f, GP_LOSS_NR);
}

static void test_process_that_cannot_be_sampled(void **state)
{
	struct probe_options samples = probed_defaults;
	struct probed *f = *state;

	samples.ops = samples.memory = false;
	samples.sample_hz = 99;
	samples.stacks = GP_STACK_WANT_NATIVE;
	probed_start(f, &samples);
	assert_int_equal(attach(f, ITERATORS, EMFILE), -EMFILE);
	assert_true(attach(f, NOTHING, 0) >= 0);
	probe_session__start(f->session);
	probed_command(f, "f ");
	assert_int_equal(f->got.processes_nr, 1);
	assert_int_equal(f->got.processes[0].what, GP_PROCESS_FORK);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, probed_set_up, probed_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_descriptor),      TEST(test_no_descriptor_for_a_link),
		TEST(test_everything_refused), TEST(test_operators_ends_refused),
		TEST(test_changed_times),      TEST(test_process_that_cannot_be_sampled),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, probed_find_program, NULL);
}
