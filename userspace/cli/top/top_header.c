/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes the lines above the rows. They show measurements only: what is unknown is left out, or
 * called so.
 */
#include "cli/top/top_view.h"

#include "cli/top/top_units.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAR_CELLS 12

struct put {
	struct buf *out;
	const struct top_view *v;
	const struct top_header *h;
};

static void mark(const struct put *p, enum top_mark m)
{
	if (!p->h->plain)
		buf__char(p->out, (char)m);
}

static void put_bold(const struct put *p, const char *text)
{
	mark(p, TOP_BOLD);
	buf__str(p->out, text);
	mark(p, TOP_PLAIN);
}

static void put_title(const struct put *p)
{
	const struct top_facts *f = p->h->facts;
	char up[24], right[64] = "";
	int left = 0, room = 0;

	top_uptime(up, sizeof(up), (double)p->h->uptime_ns / 1e9);
	if (f && p->h->plain)
		(void)snprintf(right, sizeof(right), "  over %.3f s",
			       (double)p->h->totals->wall_ns[TOTALS_LAST] / 1e9);
	else if (f)
		(void)snprintf(right, sizeof(right), "  up %s  every %gs", up, p->v->interval_s);
	put_bold(p, "gpuprof top");
	if (f && f->pids.nr) {
		char pid[32];

		left = snprintf(pid, sizeof(pid), "  %d ", (int)f->pids.items[0]) +
		       (int)strlen("gpuprof top");
		buf__str(p->out, pid);
		room = p->h->columns - left - (int)strlen(right);
		/* Bytes, not characters: a name cut too early does no harm, but only whole ones. */
		if (!p->h->columns || room > 0) {
			const char *cmd = f->cmdline ? f->cmdline : "?";
			int bytes = (int)strlen(cmd);

			if (p->h->columns && bytes > room)
				bytes = room;
			while (bytes > 0 && (cmd[bytes] & 0xc0) == 0x80)
				bytes--;
			buf__printf(p->out, "%.*s", bytes, cmd);
			if (p->h->columns)
				buf__printf(p->out, "%*s", room - bytes, "");
		}
	} else if (!f) {
		buf__printf(p->out, "  recording of %s", up);
	}
	buf__str(p->out, right);
	buf__char(p->out, '\n');
}

static void put_curve(const struct put *p, const struct top_history *history, double full)
{
	double percent[TOP_HISTORY];

	if (p->h->plain || !history->nr)
		return;
	for (size_t i = 0; i < history->nr; i++)
		percent[i] = history->percent[i] * 100 / full;
	mark(p, TOP_BAR);
	buf__char(p->out, ' ');
	top_curve(p->out, percent, history->nr, p->v->ascii);
	mark(p, TOP_PLAIN);
}

/* The curve is full where as many CPUs are busy as ever were, at least one. */
static double most_of(const struct top_history *history)
{
	double most = 100;

	for (size_t i = 0; i < history->nr; i++)
		most = history->percent[i] > most ? history->percent[i] : most;
	return most;
}

static void put_process(const struct put *p)
{
	const struct top_facts *f = p->h->facts;
	char percent[16] = "-", rss[16];

	if (!f)
		return;
	if (f->interval_s > 0)
		top_percent(percent, sizeof(percent), f->cpu_percent);
	top_bytes(rss, sizeof(rss), (double)f->rss_bytes);
	buf__str(p->out, "CPU ");
	mark(p, TOP_BOLD);
	buf__printf(p->out, "%6s %%", percent);
	mark(p, TOP_PLAIN);
	put_curve(p, &f->cpu, most_of(&f->cpu));
	buf__printf(p->out, "  memory %s  %u thread%s", rss, f->threads_nr,
		    f->threads_nr == 1 ? "" : "s");
	if (f->pids.nr > 1)
		buf__printf(p->out, "  %u processes", f->processes_nr);
	buf__char(p->out, '\n');
}

static void put_samples(const struct put *p)
{
	char nr[16];

	top_count(nr, sizeof(nr), (double)p->h->totals->samples_nr[p->v->span]);
	buf__str(p->out, "samples ");
	put_bold(p, nr);
	buf__printf(p->out, "  what has ~ is estimated from them%s\n",
		    p->h->totals->gpu_estimated[p->v->span] ? ", what GPUs did from windows of it"
							    : "");
}

static void put_steps(const struct put *p)
{
	const struct totals_steps *s = &p->h->totals->steps[p->v->span];
	char rate[16], mean[16], most[16];

	if (!s->nr) {
		buf__printf(p->out, "steps: no whole one in this %s\n",
			    p->h->facts ? "interval" : "recording");
		return;
	}
	top_count(rate, sizeof(rate), (double)s->nr * 1e9 / (double)s->sum_ns);
	top_time(mean, sizeof(mean), (double)s->sum_ns / (double)s->nr);
	top_time(most, sizeof(most), (double)s->max_ns);
	buf__str(p->out, "steps ");
	put_bold(p, rate);
	buf__str(p->out, "/s  ");
	put_bold(p, mean);
	buf__printf(p->out, " each, longest %s\n", most);
}

static void put_device(const struct put *p, const struct totals_device *d, uint64_t wall_ns)
{
	double busy = wall_ns ? 100 * (double)d->busy_ns[p->v->span] / (double)wall_ns : 0;
	char percent[16] = "-", held[16], total[16];

	/* Work that ended in this interval began in the one before, perhaps. */
	if (wall_ns)
		top_percent(percent, sizeof(percent), busy > 100 ? 100 : busy);
	buf__printf(p->out, "GPU %-2u ", d->device);
	mark(p, TOP_BOLD);
	buf__printf(p->out, "%5s %%", percent);
	mark(p, TOP_PLAIN);
	buf__str(p->out, " busy ");
	mark(p, TOP_BAR);
	top_bar(p->out, busy, 100, BAR_CELLS, p->v->ascii || p->h->plain);
	mark(p, TOP_PLAIN);
	top_bytes(held, sizeof(held), (double)d->allocated_bytes);
	top_bytes(total, sizeof(total), (double)d->total_bytes);
	if (d->reserved_bytes) {
		buf__str(p->out, "  memory ");
		put_bold(p, held);
		if (d->total_bytes) {
			buf__printf(p->out, " of %s ", total);
			mark(p, TOP_BAR);
			top_bar(p->out, (double)d->reserved_bytes, (double)d->total_bytes,
				BAR_CELLS / 2, p->v->ascii || p->h->plain);
			mark(p, TOP_PLAIN);
		}
	}
	if (d->name[0])
		buf__printf(p->out, "  %s", d->name);
	buf__char(p->out, '\n');
}

static void put_devices(const struct put *p)
{
	const struct live_totals *y = p->h->totals;
	size_t nr = y->devices.nr, most = p->h->devices_max > 0 ? (size_t)p->h->devices_max : nr;

	for (size_t i = 0; i < nr && i < most; i++)
		put_device(p, &y->devices.items[i], y->gpu_wall_ns[p->v->span]);
	if (nr > most)
		buf__printf(p->out, "and %zu GPUs more; a taller window shows them\n", nr - most);
}

static void put_cost(const struct put *p)
{
	const struct live_totals *y = p->h->totals;
	const struct top_facts *f = p->h->facts;
	uint64_t wall_ns = y->wall_ns[p->v->span];
	char rate[16], lost[24], own[16], inside[16];

	(void)snprintf(lost, sizeof(lost), "%llu", (unsigned long long)p->h->lost_nr);
	top_count(rate, sizeof(rate), p->h->events_per_s);
	if (f)
		buf__printf(p->out, "events %s/s  ", rate);
	buf__str(p->out, "lost ");
	mark(p, p->h->lost_nr ? TOP_ALARM : TOP_BOLD);
	buf__str(p->out, lost);
	mark(p, TOP_PLAIN);
	if (f && f->interval_s > 0) {
		top_percent(own, sizeof(own), f->own_percent);
		buf__printf(p->out, "  cost: gpuprof %s %%", own);
	}
	if (wall_ns && !y->unknown_cost[p->v->span]) {
		top_percent(inside, sizeof(inside), 100 * y->cost_ns[p->v->span] / (double)wall_ns);
		buf__printf(p->out, "%s in the process %s %% of a CPU",
			    f && f->interval_s > 0 ? "," : "  cost:", inside);
	} else if (f && f->interval_s > 0) {
		buf__str(p->out, " of a CPU; in the process not measured");
	}
	buf__char(p->out, '\n');
}

void top_put_header(struct buf *out, const struct top_view *v, const struct top_header *h)
{
	const struct put p = {.out = out, .v = v, .h = h};

	put_title(&p);
	put_process(&p);
	put_devices(&p);
	if (v->sampled)
		put_samples(&p);
	else
		put_steps(&p);
	put_cost(&p);
}
