/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Roles, parents before their children: what a process is depends on what started it.
 *
 * A fork that has not called exec since has its parent's stack where its parent has it, however
 * either has renamed itself; exec puts a stack at a random place. The environment in /proc is that
 * of the last exec, and whatever a rank starts inherits it: of a chain with one rank's numbers only
 * the first process with PyTorch is the rank.
 */
#include "inspect/program/roles.h"

#include "base/cleanup.h"
#include "inspect/program/program.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define NONE ROLES_NO_PARENT

/* Names that PyTorch gives to first threads since 2.6. */
#define DATALOADER_THREAD "pt_data_worker"
#define LAUNCHER_THREAD	  "pt_elastic"

/* What is known of a process besides its role. */
struct relation {
	enum target_program program;
	bool is_forked;
	bool is_shown_above;	 /* shown if something below it has PyTorch */
	bool has_shown_ancestor; /* some ancestor is shown */
	bool has_torch_above;	 /* below a process with PyTorch, with no launcher in between */
	bool starts_ranks;	 /* at least two with different numbers */
	size_t nearest_rank; /* the nearest rank, itself included, with no launcher in between */
	size_t first_rank;   /* the first rank that it has started */
};

struct process_discovery {
	struct process_roles *list;
	size_t nr;
	size_t *by_age; /* indexes: parents before their children */
	struct relation *relations;
};

static bool is_older(const struct target_process *a, const struct target_process *b)
{
	if (a->start_ticks != b->start_ticks)
		return a->start_ticks < b->start_ticks;
	return a->pid < b->pid;
}

static int compare_age(const void *a, const void *b, void *list)
{
	const struct process_roles *all = list;
	const struct target_process *x = all[*(const size_t *)a].process;
	const struct target_process *y = all[*(const size_t *)b].process;

	return is_older(y, x) - is_older(x, y);
}

static int compare_pid(const void *key, const void *item)
{
	pid_t pid = *(const pid_t *)key, other = ((const struct process_roles *)item)->process->pid;

	return (pid > other) - (pid < other);
}

/* A parent is older than its child: otherwise another process got the number of a parent that has
 * ended. So there are no cycles. */
static size_t find_parent(const struct process_discovery *f, const struct target_process *p)
{
	const struct process_roles *found =
		bsearch(&p->parent, f->list, f->nr, sizeof(*f->list), compare_pid);

	return found && is_older(found->process, p) ? (size_t)(found - f->list) : NONE;
}

static bool is_fork_of(const struct target_process *p, const struct target_process *parent)
{
	return p->stack_start && p->stack_start == parent->stack_start &&
	       !strcmp(p->exe, parent->exe);
}

static uint64_t signal_bit(int number)
{
	return 1ULL << (number - 1);
}

/* Whether it handles the four signals of a DataLoader worker; faulthandler handles three of them
 * and two more. */
static bool handles_as_worker(uint64_t caught)
{
	const uint64_t wanted =
		signal_bit(SIGBUS) | signal_bit(SIGFPE) | signal_bit(SIGSEGV) | signal_bit(SIGTERM);

	return (caught & (wanted | signal_bit(SIGILL) | signal_bit(SIGABRT))) == wanted;
}

/* Whether it is a DataLoader worker; sets *ret_is_guess then. */
static bool is_dataloader_worker(const struct process_discovery *f, size_t i, bool *ret_is_guess)
{
	const struct process_roles *one = &f->list[i];
	const struct relation *k = &f->relations[i];
	const struct process_roles *up = one->parent == NONE ? NULL : &f->list[one->parent];
	uint64_t caught = one->process->signals_caught;

	/* A fork of a worker has its name and its handlers. */
	if (!one->has_torch || (k->is_forked && up->role == PROCESS_ROLE_DATALOADER_WORKER))
		return false;
	if (!strcmp(one->process->comm, DATALOADER_THREAD)) {
		*ret_is_guess = false;
		return true;
	}
	if (k->is_forked)
		caught &= ~up->process->signals_caught;
	else if (k->program != PROGRAM_SPAWNED)
		return false;
	*ret_is_guess = true;
	return handles_as_worker(caught);
}

static bool is_same_rank(const struct process_roles *a, const struct process_roles *b)
{
	return a->rank == b->rank && (a->rank >= 0 || a->local_rank == b->local_rank);
}

/* Whether it is a rank; sets *ret_is_guess then: something with PyTorch started it and may have set
 * the numbers itself. */
static bool is_rank(const struct process_discovery *f, size_t i, bool *ret_is_guess)
{
	const struct process_roles *one = &f->list[i];
	int32_t number = one->rank >= 0 ? one->rank : one->local_rank;
	size_t above = one->parent == NONE ? NONE : f->relations[one->parent].nearest_rank;

	if (!one->has_torch || number < 0 || number >= one->world_size)
		return false;
	if (above != NONE && is_same_rank(one, &f->list[above]))
		return false;
	*ret_is_guess = f->relations[i].has_torch_above;
	return true;
}

static enum process_role role_of_fork(const struct process_discovery *f, size_t i)
{
	enum process_role parent = f->list[f->list[i].parent].role;

	if (parent == PROCESS_ROLE_COMPILE_WORKER)
		return parent;
	return parent == PROCESS_ROLE_FORKSERVER ? PROCESS_ROLE_FORKSERVER_CHILD
						 : PROCESS_ROLE_FORKED_CHILD;
}

static enum process_role role_of_program(enum target_program program)
{
	switch (program) {
	case PROGRAM_LAUNCHER:
		return PROCESS_ROLE_LAUNCHER;
	case PROGRAM_FORKSERVER:
		return PROCESS_ROLE_FORKSERVER;
	case PROGRAM_RESOURCE_TRACKER:
		return PROCESS_ROLE_RESOURCE_TRACKER;
	case PROGRAM_SPAWNED:
		return PROCESS_ROLE_SPAWNED_CHILD;
	case PROGRAM_COMPILE_WORKER:
		return PROCESS_ROLE_COMPILE_WORKER;
	case PROGRAM_RAY:
		return PROCESS_ROLE_RAY_WORKER;
	case PROGRAM_OTHER:
		break;
	}
	return PROCESS_ROLE_NONE;
}

static enum process_role find_role(const struct process_discovery *f, size_t i, bool *ret_is_guess)
{
	const struct process_roles *one = &f->list[i];
	const struct relation *k = &f->relations[i];
	enum process_role role;
	bool is_guess;

	*ret_is_guess = false;
	if (is_dataloader_worker(f, i, &is_guess)) {
		*ret_is_guess = is_guess;
		return PROCESS_ROLE_DATALOADER_WORKER;
	}
	if (k->is_forked)
		return role_of_fork(f, i);
	role = role_of_program(k->program);
	if (role != PROCESS_ROLE_NONE)
		return role;
	if (one->has_torch && !strcmp(one->process->comm, LAUNCHER_THREAD))
		return PROCESS_ROLE_LAUNCHER;
	if (is_rank(f, i, &is_guess)) {
		*ret_is_guess = is_guess;
		return PROCESS_ROLE_RANK;
	}
	return PROCESS_ROLE_NONE;
}

static void note_started_rank(const struct process_discovery *f, size_t i)
{
	struct relation *up;
	const struct process_roles *one = &f->list[i], *first;

	if (one->parent == NONE)
		return;
	up = &f->relations[one->parent];
	first = up->first_rank == NONE ? one : &f->list[up->first_rank];
	if (up->first_rank == NONE)
		up->first_rank = i;
	if (first->world_size == one->world_size && !is_same_rank(first, one))
		up->starts_ranks = true;
}

/* Decides the role. The oldest come first, so all ancestors are decided. */
static void decide_role(const struct process_discovery *f, size_t i)
{
	struct process_roles *one = &f->list[i];
	struct relation *k = &f->relations[i], *up;

	*k = (struct relation){.nearest_rank = NONE, .first_rank = NONE};
	k->program = target_program_of(&one->process->arguments);
	one->parent = find_parent(f, one->process);
	up = one->parent == NONE ? NULL : &f->relations[one->parent];
	k->is_forked = up && is_fork_of(one->process, f->list[one->parent].process);
	if (up && f->list[one->parent].role != PROCESS_ROLE_LAUNCHER)
		k->has_torch_above = f->list[one->parent].has_torch || up->has_torch_above;
	one->role = find_role(f, i, &one->is_guess);
	if (one->role == PROCESS_ROLE_RANK)
		k->nearest_rank = i;
	else if (up && one->role != PROCESS_ROLE_LAUNCHER)
		k->nearest_rank = up->nearest_rank;
	if (one->role == PROCESS_ROLE_RANK)
		note_started_rank(f, i);
	k->is_shown_above = one->has_torch || one->role == PROCESS_ROLE_LAUNCHER ||
			    one->role == PROCESS_ROLE_FORKSERVER;
	if (one->has_torch && k->is_forked)
		up->is_shown_above = true;
}

/* A process that starts ranks with different numbers is a launcher and is shown, except init, which
 * adopts orphans. */
static void show_launchers(const struct process_discovery *f, size_t i)
{
	struct process_roles *one = &f->list[i];
	struct relation *k = &f->relations[i];

	if (k->starts_ranks && one->process->pid != 1)
		k->is_shown_above = true;
	if (one->parent == NONE)
		return;
	if (one->role == PROCESS_ROLE_RANK && f->relations[one->parent].starts_ranks)
		one->is_guess = false;
	k->has_shown_ancestor = f->relations[one->parent].is_shown_above ||
				f->relations[one->parent].has_shown_ancestor;
}

/* Marks for display what has PyTorch, and what lies between that and shown ancestors. */
static void choose_shown(const struct process_discovery *f)
{
	for (size_t n = 0; n < f->nr; n++)
		show_launchers(f, f->by_age[n]);
	for (size_t n = 0; n < f->nr; n++)
		f->list[n].is_shown = f->list[n].has_torch;
	for (size_t n = f->nr; n-- > 0;) {
		struct process_roles *one = &f->list[f->by_age[n]];

		if (one->is_shown && f->relations[f->by_age[n]].has_shown_ancestor)
			f->list[one->parent].is_shown = true;
	}
	for (size_t n = 0; n < f->nr; n++) {
		struct process_roles *one = &f->list[n];

		if (one->is_shown && one->parent != NONE && !f->list[one->parent].is_shown)
			one->parent = NONE;
	}
}

int process_roles_find(struct process_roles *list, size_t nr)
{
	CLEANUP(cleanup_free) size_t *by_age = calloc(nr + 1, sizeof(*by_age));
	CLEANUP(cleanup_free) struct relation *relations = calloc(nr + 1, sizeof(*relations));
	struct process_discovery f = {
		.list = list, .nr = nr, .by_age = by_age, .relations = relations};

	if (!by_age || !relations)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		by_age[i] = i;
	qsort_r(by_age, nr, sizeof(*by_age), compare_age, list);
	for (size_t n = 0; n < nr; n++)
		decide_role(&f, by_age[n]);
	choose_shown(&f);
	return 0;
}
