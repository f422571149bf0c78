/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Compares two reads of /proc. A process or thread that is new counts from its own start; one that
 * has gone is left out.
 */
#include "cli/top/top_facts.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/killsafe_call.h"
#include "common/clock.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STAT_BYTES_MAX	  4096
#define CMDLINE_BYTES_MAX (64u << 10)

static void add_to_history(struct top_history *h, double percent)
{
	if (h->nr == TOP_HISTORY)
		memmove(h->percent, h->percent + 1, --h->nr * sizeof(h->percent[0]));
	h->percent[h->nr++] = percent;
}

void top_facts__done(struct top_facts *f)
{
	vec_done(&f->pids);
	vec_done(&f->news);
	free(TAKE(f->cmdline));
	hash__done(&f->ran);
	hash__done(&f->consumed);
}

static void read_cmdline(struct top_facts *f, pid_t pid)
{
	CLEANUP(cleanup_free) char *text = NULL;
	struct buf line = {0};
	char path[64];
	size_t nr;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	if (file_read(path, CMDLINE_BYTES_MAX, &text, &nr))
		return;
	while (nr && !text[nr - 1])
		nr--;
	for (size_t i = 0; i < nr; i++)
		if (!text[i])
			text[i] = ' ';
	buf__line(&line, text);
	if (buf__error(&line))
		buf__done(&line);
	else
		f->cmdline = line.bytes;
}

/* Since the value that is kept; of what is new, or is another of the same number, all of it. */
static int since_last(struct hash *kept, uint64_t key, uint64_t now, uint64_t *ret_more)
{
	uint64_t *last = hash__find(kept, key);

	*ret_more = last && *last <= now ? now - *last : now;
	return hash__set(kept, key, now);
}

/* CPU time of all threads, those that have ended too; and how many there are. */
static bool read_stat(pid_t pid, uint64_t *ret_ns, uint32_t *ret_threads)
{
	CLEANUP(cleanup_free) char *text = NULL;
	unsigned long long user, system;
	char path[64], *at;
	size_t nr;
	long threads;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_read(path, STAT_BYTES_MAX, &text, &nr))
		return false;
	/* The name is in parentheses and may have any in it. */
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d "
			  "%*d %*d %ld",
			  &user, &system, &threads) != 3)
		return false;
	*ret_ns = (user + system) * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
	*ret_threads = threads > 0 ? (uint32_t)threads : 0;
	return true;
}

static uint64_t read_rss(pid_t pid)
{
	CLEANUP(cleanup_free) char *text = NULL;
	unsigned long long pages;
	char path[64];
	size_t nr;

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (file_read(path, STAT_BYTES_MAX, &text, &nr) || sscanf(text, "%*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool read_small(pid_t pid, const char *tid, const char *what, char *to, size_t bytes)
{
	CLEANUP(cleanup_free) char *text = NULL;
	char path[128];
	size_t nr;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%.20s/%s", (int)pid, tid, what);
	if (file_read(path, STAT_BYTES_MAX, &text, &nr))
		return false;
	text[strcspn(text, "\n")] = '\0';
	(void)snprintf(to, bytes, "%s", text);
	return true;
}

static int read_thread(struct top_facts *f, pid_t pid, const char *tid)
{
	uint64_t key = (uint64_t)pid << 32 | (uint32_t)atoi(tid), more;
	struct top_ran news = {.pid = pid, .tid = (uint32_t)atoi(tid)};
	char ran[64];
	int err;

	if (!read_small(pid, tid, "schedstat", ran, sizeof(ran)))
		return 0;
	err = since_last(&f->ran, key, strtoull(ran, NULL, 10), &more);
	if (err || !more || !read_small(pid, tid, "comm", news.comm, sizeof(news.comm)))
		return err;
	news.ns = more;
	return vec_push(&f->news, news);
}

static int read_threads(struct top_facts *f, pid_t pid)
{
	char path[64];
	struct dirent *e;
	DIR *tasks;
	int err = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && !err && (e = readdir(tasks)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			err = read_thread(f, pid, e->d_name);
	if (tasks)
		(void)closedir(tasks);
	return err;
}

/* Adds what the process has consumed to *consumed_ns. */
static int read_process(struct top_facts *f, pid_t pid, uint64_t *consumed_ns)
{
	uint64_t ns, more;
	uint32_t threads;
	int err;

	if (!read_stat(pid, &ns, &threads))
		return 0;
	err = since_last(&f->consumed, (uint64_t)pid, ns, &more);
	*consumed_ns += more;
	f->rss_bytes += read_rss(pid);
	f->threads_nr += threads;
	f->processes_nr++;
	return err ?: read_threads(f, pid);
}

int top_facts__read(struct top_facts *f)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), own = killsafe_cpu_ns();
	uint64_t consumed = 0, before = f->read_ns;
	int err = 0;

	f->news.nr = 0;
	f->rss_bytes = 0;
	f->threads_nr = f->processes_nr = 0;
	for (size_t i = 0; i < f->pids.nr && !err; i++)
		err = read_process(f, f->pids.items[i], &consumed);
	if (before && now > before) {
		double ns = (double)(now - before);

		f->interval_s = ns / 1e9;
		f->cpu_percent = 100 * (double)consumed / ns;
		f->own_percent = 100 * (double)(own - f->own_ns) / ns;
		add_to_history(&f->cpu, f->cpu_percent);
	}
	f->read_ns = now;
	f->own_ns = own;
	return err;
}

int top_facts__give(struct top_facts *f, struct live_totals *totals)
{
	int err = 0;

	for (size_t i = 0; i < f->pids.nr; i++)
		if (kill(f->pids.items[i], 0) && errno == ESRCH)
			live_totals__gone(totals, f->pids.items[i]);
	for (size_t i = 0; i < f->news.nr && !err; i++)
		err = live_totals__ran(totals, f->news.items[i].pid, f->news.items[i].tid,
				       f->news.items[i].comm, f->news.items[i].ns);
	f->news.nr = 0;
	return err;
}

static bool is_watched(const struct top_facts *f, pid_t pid)
{
	for (size_t i = 0; i < f->pids.nr; i++)
		if (f->pids.items[i] == pid)
			return true;
	return false;
}

int top_facts__watch(struct top_facts *f, const pid_t *pids, size_t pids_nr)
{
	int err = 0;

	for (size_t i = 0; i < pids_nr && !err; i++) {
		uint64_t consumed = 0;

		if (pids[i] <= 0 || is_watched(f, pids[i]))
			continue;
		err = vec_push(&f->pids, pids[i]);
		err = err ?: read_process(f, pids[i], &consumed);
		if (!f->cmdline)
			read_cmdline(f, pids[i]);
	}
	return err;
}
