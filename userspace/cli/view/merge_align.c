/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Aligns the clocks of merged recordings. In the merged recording a machine's processes are
 * recognized by PID and rank. Each machine is compared with the first; any two others then agree
 * within the sum of their errors.
 */
#include "cli/view/merge_align.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "timeline/analysis/ranks.h"

/* By how much times of day are off at most, if they are kept at all. */
#define WITHIN_NS 10000000000ULL

/* All parts as one, by the times of day. */
struct whole {
	struct recording *rec;
	struct timeline *timeline;
	bool *first, *other; /* for each process: of the first machine, of the one at hand */
};

static void whole__done(struct whole *w)
{
	timeline__free(w->timeline);
	recording__free(w->rec);
	free(w->first);
	free(w->other);
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

static bool is_of_one_machine(const struct merged *m)
{
	for (size_t i = 1; i < m->parts.nr; i++)
		if (strcmp(machine(m->parts.items[i]), machine(m->parts.items[0])) != 0)
			return false;
	return true;
}

/* The output may be a pipe, and has its place taken only once. */
static int put_together(const struct merged *m, struct reason *why, struct recording **ret)
{
	CLEANUP(cleanup_fd) int fd = memfd_create("gpuprof-merge", MFD_CLOEXEC);
	char path[32];
	int err;

	if (fd < 0)
		return reason_set(why, -errno, "cannot make a file in memory: %s", strerror(errno));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = merged__write(m, NULL, path, why);
	return err ? err : recording__open(path, why, ret);
}

static int open_whole(struct whole *w, const struct merged *m, struct reason *why)
{
	int err = put_together(m, why, &w->rec);

	err = err ? err : timeline__new(w->rec, why, &w->timeline);
	if (err)
		return err;
	w->first = calloc(w->timeline->processes.nr + 1, sizeof(*w->first));
	w->other = calloc(w->timeline->processes.nr + 1, sizeof(*w->other));
	if (!w->first || !w->other)
		return reason_set(why, -ENOMEM, "out of memory");
	return ranks_there(w->timeline) ? 0 : -ENOENT;
}

int merge_align(const struct merged *m, int64_t *shifts_ns, struct merge_clocks *ret_clocks,
		struct reason *why)
{
	CLEANUP(whole__done) struct whole w = {0};
	struct recording *const *parts = m->parts.items;
	uint64_t others_nr = 0;
	int err = is_of_one_machine(m) ? -ENOENT : open_whole(&w, m, why);

	if (err)
		return err;
	mark(w.timeline, parts, m->parts.nr, parts[0], w.first);
	for (size_t i = 1; i < m->parts.nr; i++) {
		struct rank_clock clock;

		if (!strcmp(machine(parts[i]), machine(parts[0])))
			continue;
		mark(w.timeline, parts, m->parts.nr, parts[i], w.other);
		err = ranks_clock(w.timeline, w.first, w.other, WITHIN_NS, &clock);
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
	return 0;
}
