/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A machine's processes are known again in the merged recording by pid and rank. Each machine is
 * compared with that of the first part; two others then agree within the sum of their errors.
 */
#include "cli/merge_align.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "timeline/ranks.h"

/* By how much times of day are off at most, if they are kept at all. */
#define WITHIN_NS 10000000000ULL

struct merged {
	struct recording *rec;
	struct timeline *timeline;
	bool *first, *other; /* for each process: of the first machine, of the one at hand */
};

static void merged__done(struct merged *m)
{
	timeline__free(m->timeline);
	recording__free(m->rec);
	free(m->first);
	free(m->other);
}

static const char *machine(const struct recording *part)
{
	const char *boot_id = recording__meta(part, "boot_id");

	return boot_id ? boot_id : "";
}

static bool holds(const struct recording *part, const struct tl_process *p)
{
	for (size_t i = 0; i < recording__processes(part); i++) {
		const struct recording_process *one = recording__process_at(part, i);

		if (p->rank >= 0 && one->rank == p->rank && one->pid == p->pid)
			return true;
	}
	return false;
}

/* The processes of the parts that are of the same machine as `like`. */
static void mark(const struct timeline *t, struct recording *const *parts, size_t nr,
		 const struct recording *like, bool *flags)
{
	memset(flags, 0, t->processes.nr * sizeof(*flags));
	for (size_t i = 0; i < nr; i++)
		for (size_t k = 0; k < t->processes.nr && !strcmp(machine(parts[i]), machine(like));
		     k++)
			flags[k] |= holds(parts[i], &t->processes.items[k]);
}

static int open_merged(struct merged *m, const char *path, struct reason *why)
{
	const char *clocks;
	int err = recording__open(path, why, &m->rec);

	if (err)
		return err;
	clocks = recording__meta(m->rec, "clocks");
	if (!clocks || strcmp(clocks, "time of day") != 0)
		return -ENOENT;
	err = timeline__new(m->rec, why, &m->timeline);
	if (err)
		return err;
	m->first = calloc(m->timeline->processes.nr + 1, sizeof(*m->first));
	m->other = calloc(m->timeline->processes.nr + 1, sizeof(*m->other));
	if (!m->first || !m->other)
		return reason_set(why, -ENOMEM, "out of memory");
	return ranks_there(m->timeline) ? 0 : -ENOENT;
}

int merge_align(struct recording *const *parts, size_t parts_nr, const char *path,
		int64_t *shifts_ns, struct merge_clocks *ret_clocks, struct reason *why)
{
	CLEANUP(merged__done) struct merged m = {0};
	uint64_t others_nr = 0;
	int err = open_merged(&m, path, why);

	if (err)
		return err;
	mark(m.timeline, parts, parts_nr, parts[0], m.first);
	for (size_t i = 1; i < parts_nr; i++) {
		struct rank_clock clock;

		if (!strcmp(machine(parts[i]), machine(parts[0])))
			continue;
		mark(m.timeline, parts, parts_nr, parts[i], m.other);
		err = ranks_clock(m.timeline, m.first, m.other, WITHIN_NS, &clock);
		if (err)
			return err == -ENOENT ? err : reason_set(why, err, "out of memory");
		shifts_ns[i] = clock.shift_ns;
		others_nr++;
		if (clock.error_ns > ret_clocks->error_ns)
			ret_clocks->error_ns = clock.error_ns;
		if (clock.next_ns < ret_clocks->next_ns)
			ret_clocks->next_ns = clock.next_ns;
	}
	if (others_nr > 1)
		ret_clocks->error_ns *= 2;
	return others_nr ? 0 : -ENOENT;
}
