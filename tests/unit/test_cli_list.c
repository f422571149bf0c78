/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What list writes of processes whose roles are given: the tree's order and branches, and a table
 * that fits into a terminal whatever the processes call themselves.
 */
#include "base/cleanup.h"
#include "cli/list_print.h"
#include "cli/list_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NONE ROLES_NO_PARENT
#define DEEP 20000

static struct process_roles rank(size_t parent, int32_t number)
{
	return (struct process_roles){.role = PROCESS_ROLE_RANK,
				      .is_shown = true,
				      .parent = parent,
				      .rank = number,
				      .local_rank = -1,
				      .world_size = 9};
}

static struct process_roles other(size_t parent, enum process_role role)
{
	return (struct process_roles){.role = role,
				      .is_shown = true,
				      .parent = parent,
				      .rank = -1,
				      .local_rank = -1,
				      .world_size = -1};
}

static void must_branch(const struct list_tree *t, size_t index, const char *wanted)
{
	CLEANUP(buf__done) struct buf b = {0};

	list_tree__add_branch(t, index, &b);
	assert_string_equal(b.bytes ? b.bytes : "", wanted);
}

/* Roots stay by pid, ranks too; below a parent ranks come by number, and before the others. */
static void test_order(void **state)
{
	const struct process_roles roles[] = {
		rank(NONE, 7),
		other(NONE, PROCESS_ROLE_LAUNCHER),
		other(1, PROCESS_ROLE_NONE),
		rank(1, 1),
		rank(1, 0),
		{.is_shown = false, .parent = NONE},
		other(4, PROCESS_ROLE_DATALOADER_WORKER),
		other(4, PROCESS_ROLE_DATALOADER_WORKER),
		other(2, PROCESS_ROLE_NONE),
		rank(NONE, 0),
	};
	static const size_t wanted[] = {0, 1, 4, 6, 7, 3, 2, 8, 9};
	CLEANUP(list_tree__done) struct list_tree t = {0};

	(void)state;
	assert_int_equal(list_tree__init(&t, roles, sizeof(roles) / sizeof(*roles)), 0);
	assert_int_equal(t.nr, sizeof(wanted) / sizeof(*wanted));
	for (size_t i = 0; i < t.nr; i++)
		assert_int_equal(t.order[i], wanted[i]);
	must_branch(&t, 0, "");
	must_branch(&t, 4, "|- ");
	must_branch(&t, 6, "|  |- ");
	must_branch(&t, 7, "|  `- ");
	must_branch(&t, 2, "`- ");
	must_branch(&t, 8, "   `- ");
}

/* A process can start one that starts one, and so on; the tree stays as wide as a page. */
static void test_deep(void **state)
{
	CLEANUP(cleanup_free) struct process_roles *roles = calloc(DEEP, sizeof(*roles));
	CLEANUP(list_tree__done) struct list_tree t = {0};

	(void)state;
	assert_non_null(roles);
	for (size_t i = 0; i < DEEP; i++)
		roles[i] = other(i ? i - 1 : NONE, PROCESS_ROLE_NONE);
	assert_int_equal(list_tree__init(&t, roles, DEEP), 0);
	assert_int_equal(t.nr, DEEP);
	for (size_t i = 0; i < DEEP; i++)
		assert_int_equal(t.order[i], i);
	must_branch(&t, 2, "   `- ");
	must_branch(&t, DEEP - 1, "                     `- ");
}

static void test_none(void **state)
{
	CLEANUP(list_tree__done) struct list_tree t = {0};

	(void)state;
	assert_int_equal(list_tree__init(&t, NULL, 0), 0);
	assert_int_equal(t.nr, 0);
}

/* ---- the table ---- */

static struct target_process processes[3];

/* This test's own process under three names. */
static struct list_rows example(struct target_process **pointers, struct process_roles *roles)
{
	static char *const commands[] = {
		(char *)"/usr/bin/python3 -B /data/jobs/train.py --data /data/set",
		(char *)"ray::Trainer\033[31m.step\n  4242  root",
		(char *)"/a",
	};
	static const char title[] = "ray::Trainer";

	for (size_t i = 0; i < 3; i++) {
		struct target_process *p = &processes[i];

		*p = (struct target_process){.pid = getpid(), .uid = getuid()};
		p->cmdline = commands[i];
		p->exe = (char *)"/usr/bin/python3.11";
		p->arguments.text = i == 1 ? (char *)title : (char *)"python";
		p->arguments.bytes = strlen(p->arguments.text) + 1;
		pointers[i] = p;
		roles[i] = i ? rank(0, 8) : other(NONE, PROCESS_ROLE_LAUNCHER);
		roles[i].process = p;
	}
	roles[2].is_guess = true;
	roles[2].local_rank = 3;
	return (struct list_rows){
		.processes = {.items = pointers, .nr = 3},
		.roles = {.items = roles, .nr = 3},
	};
}

static void print(struct buf *out, size_t columns)
{
	struct target_process *pointers[3];
	struct process_roles roles[3];
	struct list_rows r = example(pointers, roles);
	size_t shown_nr = 0;

	assert_int_equal(list_print_table(out, &r, columns, &shown_nr), 0);
	assert_int_equal(shown_nr, 3);
	for (size_t i = 0; i < 3; i++)
		target_process__shed(&processes[i]);
}

static void test_wide(void **state)
{
	CLEANUP(buf__done) struct buf out = {0};

	(void)state;
	print(&out, 0);
	assert_non_null(strstr(out.bytes, "CUDA  ROLE                      COMMAND\n"));
	assert_non_null(strstr(out.bytes, "launcher                  /usr/bin/python3 -B "
					  "/data/jobs/train.py --data /data/set\n"));
	assert_non_null(strstr(out.bytes, "|- rank 8 of 9            ray::Trainer?[31m.step?  "
					  "4242  root (python3.11)\n"));
	assert_non_null(strstr(out.bytes, "`- rank 8 of 9, local 3?  /a\n"));
}

/* Columns that tell least go first, then folders of paths in the command, then its end. */
static void test_narrow(void **state)
{
	CLEANUP(buf__done) struct buf out = {0};

	(void)state;
	for (size_t columns = 70; columns <= 130; columns += 10) {
		const char *line, *end;

		buf__clear(&out);
		print(&out, columns);
		for (line = out.bytes; *line; line = end + 1) {
			end = strchr(line, '\n');
			assert_non_null(end);
			assert_in_range((size_t)(end - line), 1, columns);
		}
	}
	buf__clear(&out);
	print(&out, 70);
	assert_null(strstr(out.bytes, "PYTHON"));
	assert_null(strstr(out.bytes, "USER"));
	assert_non_null(strstr(out.bytes, "  python3 -B train.py "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),  cmocka_unit_test(test_deep),
		cmocka_unit_test(test_none),   cmocka_unit_test(test_wide),
		cmocka_unit_test(test_narrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
