/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Scans /proc and remembers what is known of each process.
 */
#include "daemon/process_discovery.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "common/clock.h"
#include "inspect/process/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define SCAN_NS	    SECOND_NS
#define LOOK_NS_MAX (30 * SECOND_NS)
#define RETRY_NS    (10 * SECOND_NS)
#define TRIES_MAX   3

enum state {
	UNKNOWN, /* not looked into, or nothing for us in it */
	SEEN,	 /* once */
	WANTED,
	TAKEN,
	REFUSED,
};

struct entry {
	pid_t pid;
	enum state state;
	unsigned int tries;
	uint64_t look_ns; /* when to look next */
	/* In states SEEN, WANTED and TAKEN. Tells a later process with the same PID apart. */
	struct target_process *process;
};

struct process_discovery {
	struct process_discovery_options options;
	VEC(struct entry) entries; /* by pid */
	uint64_t scan_ns;	   /* when to scan next */
	size_t turn;		   /* where process_discovery__next() goes on */
};

struct process_discovery *process_discovery__new(const struct process_discovery_options *options)
{
	struct process_discovery *f = calloc(1, sizeof(*f));

	if (f)
		f->options = *options;
	return f;
}

void process_discovery__free(struct process_discovery *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->entries.nr; i++)
		target_process__free(f->entries.items[i].process);
	vec_done(&f->entries);
	free(f);
}

static bool is_named(const struct process_discovery_options *o, pid_t pid)
{
	for (size_t i = 0; i < o->pids_nr; i++)
		if (o->pids[i] == pid)
			return true;
	return false;
}

static bool is_wanted(const struct process_discovery_options *o, const struct target_process *p)
{
	if (o->pids_nr)
		return is_named(o, p->pid);
	return target_process__is_profilable(p) &&
	       (!o->name || target_process__is_named(p, o->name)) &&
	       (!o->cgroup || target_process__is_in_cgroup(p, o->cgroup));
}

/* When to inspect it next: after a quarter of its age. */
static uint64_t next_look(const struct target_process *p, uint64_t now_ns)
{
	uint64_t boot_ns = clock_ns(CLOCK_BOOTTIME), wait_ns = SCAN_NS;

	if (boot_ns > p->start_boot_ns)
		wait_ns = (boot_ns - p->start_boot_ns) / 4;
	if (wait_ns < SCAN_NS)
		wait_ns = SCAN_NS;
	return now_ns + (wait_ns < LOOK_NS_MAX ? wait_ns : LOOK_NS_MAX);
}

static void forget_entry(struct entry *e)
{
	target_process__free(TAKE(e->process));
	*e = (struct entry){.pid = e->pid};
}

static void look(struct process_discovery *f, struct entry *e, uint64_t now_ns)
{
	struct target_process *p;

	if (e->process && !target_process__alive(e->process))
		forget_entry(e);
	if (e->state == WANTED || e->state == TAKEN)
		return;
	e->look_ns = now_ns + LOOK_NS_MAX;
	if ((f->options.pids_nr && !is_named(&f->options, e->pid)) || e->pid == getpid() ||
	    target_process__new(e->pid, NULL, &p))
		return;
	e->look_ns = next_look(p, now_ns);
	if (e->state == REFUSED && e->process && p->start_ticks == e->process->start_ticks) {
		target_process__free(p);
		return;
	}
	target_process__free(e->process);
	e->process = NULL;
	if (!is_wanted(&f->options, p)) {
		e->state = UNKNOWN;
		target_process__free(p);
		return;
	}
	e->process = p;
	e->state = e->state == SEEN ? WANTED : SEEN;
	e->look_ns = now_ns;
}

/* Whether to inspect the process in this turn. A captured one can end at any time. */
static bool is_due(const struct entry *e, uint64_t now_ns)
{
	return e->state == TAKEN || e->state == WANTED || e->look_ns <= now_ns;
}

/* Updates the entries to the PIDs that exist now. Both are sorted. */
static int merge(struct process_discovery *f, const pid_t *pids, size_t nr)
{
	VEC(struct entry) now = {0};
	size_t old = 0;
	int err = vec_reserve(&now, nr + 1);

	if (err)
		return err;
	for (size_t i = 0; i < nr; i++) {
		for (; old < f->entries.nr && f->entries.items[old].pid < pids[i]; old++)
			target_process__free(f->entries.items[old].process);
		if (old < f->entries.nr && f->entries.items[old].pid == pids[i])
			now.items[now.nr++] = f->entries.items[old++];
		else
			now.items[now.nr++] = (struct entry){.pid = pids[i]};
	}
	for (; old < f->entries.nr; old++)
		target_process__free(f->entries.items[old].process);
	vec_done(&f->entries);
	f->entries.items = now.items;
	f->entries.nr = now.nr;
	f->entries.cap = now.cap;
	return 0;
}

int process_discovery__poll(struct process_discovery *f, uint64_t now_ns)
{
	CLEANUP(cleanup_free) pid_t *pids = NULL;
	size_t nr = 0;
	int err;

	if (now_ns < f->scan_ns)
		return 0;
	f->scan_ns = now_ns + SCAN_NS;
	err = target_scan(&pids, &nr);
	if (!err)
		err = merge(f, pids, nr);
	for (size_t i = 0; i < f->entries.nr && !err; i++)
		if (is_due(&f->entries.items[i], now_ns))
			look(f, &f->entries.items[i], now_ns);
	return err;
}

bool process_discovery__next(struct process_discovery *f, uint64_t now_ns, pid_t *ret_pid)
{
	for (size_t i = 0; i < f->entries.nr; i++) {
		size_t at = (f->turn + i) % f->entries.nr;
		const struct entry *e = &f->entries.items[at];

		if (e->state != WANTED || e->look_ns > now_ns)
			continue;
		f->turn = at + 1;
		*ret_pid = e->pid;
		return true;
	}
	return false;
}

static struct entry *find(const struct process_discovery *f, pid_t pid)
{
	size_t low = 0, high = f->entries.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->entries.items[middle].pid == pid)
			return &f->entries.items[middle];
		if (f->entries.items[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

void process_discovery__took(struct process_discovery *f, pid_t pid, int err, uint64_t now_ns)
{
	struct entry *e = find(f, pid);

	if (!e)
		return;
	if (!err || err == -EEXIST)
		e->state = TAKEN;
	else if (++e->tries >= TRIES_MAX)
		e->state = REFUSED;
	else
		e->look_ns = now_ns + RETRY_NS;
}

void process_discovery__forget(struct process_discovery *f)
{
	for (size_t i = 0; i < f->entries.nr; i++)
		if (f->entries.items[i].state == TAKEN)
			f->entries.items[i].state = WANTED;
}

size_t process_discovery__taken(const struct process_discovery *f)
{
	size_t nr = 0;

	for (size_t i = 0; i < f->entries.nr; i++)
		nr += f->entries.items[i].state == TAKEN;
	return nr;
}

bool process_discovery__has(const struct process_discovery *f, pid_t pid)
{
	const struct entry *e = find(f, pid);

	return e && e->state == TAKEN;
}
