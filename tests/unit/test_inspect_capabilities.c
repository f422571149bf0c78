/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * inspect/capabilities: what it says is complete, and what it tried is undone. What the answers are
 * is the machine's business, except for a user without any right.
 */
#include "inspect/kernel/kernel_checks.h"
#include "inspect/process/scan.h"
#include "inspect/program/capabilities.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static size_t descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t nr = 0;

	assert_non_null(d);
	while (readdir(d))
		nr++;
	(void)closedir(d);
	return nr;
}

static void must_be_complete(const struct capability *c, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		assert_true(c[i].answer == CAPABILITY_NO || c[i].answer == CAPABILITY_YES ||
			    c[i].answer == CAPABILITY_PARTLY);
		assert_true(c[i].detail[0] != '\0');
		assert_int_equal(c[i].advice[0] == '\0', c[i].answer == CAPABILITY_YES);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(c[i].name, c[k].name);
	}
}

static const struct capability *named(const struct capability *c, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(c[i].name, name))
			return &c[i];
	fail_msg("no '%s'", name);
	return NULL;
}

static void the_machine_alone(void **state)
{
	struct capability c[CAPABILITIES_MAX];
	size_t before = descriptors(), nr = capabilities_check(NULL, NULL, 0, c);

	assert_int_equal(descriptors(), before);
	/* The child that was traced is gone, too. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	must_be_complete(c, nr);
	assert_true(named(c, nr, "bpf")->required);
	assert_true(named(c, nr, "ring_memory")->required);
	assert_false(named(c, nr, "ptrace")->required);
	assert_false(named(c, nr, "cuda")->required);
}

static void a_process_without_torch(void **state)
{
	static const char *const names[] = {
		"bpf",	  "btf",	   "uprobe_multi", "perf_event", "ring_memory",
		"ptrace", "torch_symbols", "cuda",	   "cupti",	 "python_gc"};
	struct capability c[CAPABILITIES_MAX];
	struct target_process *p;
	size_t before, nr;

	assert_int_equal(target_process__new(getpid(), NULL, &p), 0);
	assert_false(target_process__is_profilable(p));
	before = descriptors();
	nr = capabilities_check(p, NULL, 0, c);
	assert_int_equal(descriptors(), before);
	must_be_complete(c, nr);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		(void)named(c, nr, names[i]);
	assert_int_equal(named(c, nr, "torch_symbols")->answer, CAPABILITY_NO);
	assert_int_equal(named(c, nr, "cupti")->answer, CAPABILITY_NO);
	assert_int_equal(named(c, nr, "python_gc")->answer, CAPABILITY_NO);
	target_process__free(p);
}

/* Runs in a child that is nobody. Returns the number of what is wrong. */
static int look_as_nobody(void)
{
	struct capability c[CAPABILITIES_MAX];
	size_t nr;

	if (!geteuid() && setresuid(65534, 65534, 65534))
		return 1;
	nr = capabilities_check(NULL, NULL, 0, c);
	for (size_t i = 0; i < nr; i++) {
		bool needs_rights = !strcmp(c[i].name, "bpf") ||
				    !strcmp(c[i].name, "ring_memory") ||
				    !strcmp(c[i].name, "uprobe_multi");

		if (!strcmp(c[i].name, "ring_memory") && c[i].answer == CAPABILITY_YES)
			needs_rights = false; /* kernel.unprivileged_bpf_disabled is 0 */
		if (needs_rights && c[i].answer != CAPABILITY_NO)
			return 2;
		if (needs_rights && !strstr(c[i].advice, "sudo"))
			return 3;
	}
	return kernel_try_program() < 0 && kernel_try_uprobe_multi() < 0 ? 0 : 4;
}

static void nobody_is_reported_what_to_do(void **state)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(look_as_nobody());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void scan_finds_living_processes(void **state)
{
	pid_t *pids = NULL;
	size_t nr = 0, mine = 0;

	assert_int_equal(target_scan(&pids, &nr), 0);
	for (size_t i = 0; i < nr; i++) {
		assert_true(!i || pids[i] > pids[i - 1]);
		mine += pids[i] == getpid();
	}
	assert_int_equal(mine, 1);
	free(pids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_machine_alone),
		cmocka_unit_test(a_process_without_torch),
		cmocka_unit_test(nobody_is_reported_what_to_do),
		cmocka_unit_test(scan_finds_living_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
