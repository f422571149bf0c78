/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Runs the capture from one recording to the next.
 */
#include "daemon/capture_loop.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "common/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define RETRY_NS     (5 * SECOND_NS)  /* after a capture that failed */
#define IDLE_NS	     (60 * SECOND_NS) /* a capture without a process ends then */
#define PROCESSES_NR 2048	      /* that have gone through a capture, when it is renewed */

/* Recordings that have a file and have not ended: the one in progress, and one at each end of it.
 */
#define OPEN_MAX_NR 8

struct capture_loop {
	struct capture_loop_options options;
	struct process_discovery *discovery;
	struct capture *capture; /* NULL: none is going on */
	/* By the capture's own numbers: recordings that have a file, whose beginning has been told,
	 * and that were handed over. */
	uint64_t opened_nr, begun_nr, ended_nr;
	/* Of recording n at n % OPEN_MAX_NR: its file (-1: none), and where its events begin. */
	int fds[OPEN_MAX_NR];
	uint64_t events[OPEN_MAX_NR];
	uint64_t first_nr; /* the number of the capture's first recording */
	uint64_t began_ns; /* the recording in progress */
	uint64_t busy_ns;  /* when a process was last in the capture */
	uint64_t retry_ns;
	bool rotating; /* asked for, and not done yet */
	bool cut_wanted;
	struct capture_loop_counts counts;
};

struct capture_loop *capture_loop__new(const struct capture_loop_options *options)
{
	struct capture_loop *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->options = *options;
	for (size_t i = 0; i < OPEN_MAX_NR; i++)
		w->fds[i] = -1;
	w->discovery = process_discovery__new(&options->find);
	if (!w->discovery) {
		free(w);
		return NULL;
	}
	return w;
}

/* ---- one capture ---- */

/* Where the capture writes its next recording: a file without a name. */
static char *recording_path(void *arg, unsigned int nr)
{
	struct capture_loop *w = arg;
	int *fd = &w->fds[nr % OPEN_MAX_NR];
	char *path = NULL;

	if (*fd >= 0)
		return NULL;
	*fd = memfd_create("gpuprof-recording", MFD_CLOEXEC);
	if (*fd < 0 || asprintf(&path, "/proc/self/fd/%d", *fd) < 0)
		return NULL;
	w->opened_nr = nr + 1;
	return path;
}

/* Notes that the next recording has begun. */
static void note_begun(struct capture_loop *w, uint64_t events_nr, uint64_t now)
{
	w->begun_nr = w->opened_nr;
	w->events[(w->begun_nr - 1) % OPEN_MAX_NR] = events_nr;
	w->began_ns = now;
	w->rotating = w->cut_wanted = false;
	w->options.began(w->first_nr + w->begun_nr - 1, w->options.arg);
}

/* Hands over the oldest finished recording that was not handed over yet. */
static void hand_over(struct capture_loop *w, uint64_t events_nr)
{
	size_t at = w->ended_nr % OPEN_MAX_NR, next = (w->ended_nr + 1) % OPEN_MAX_NR;
	uint64_t last = w->ended_nr + 1 < w->begun_nr ? w->events[next] : events_nr;
	struct captured_recording r = {
		.nr = w->first_nr + w->ended_nr,
		.fd = take_fd(&w->fds[at]),
		.events_nr = last - w->events[at],
		.capture_nr = w->counts.captures_nr,
	};

	w->ended_nr++;
	w->options.ended(&r, w->options.arg);
}

/* Closes the files of recordings that no capture will finish. Nobody hears of them. */
static void close_all(struct capture_loop *w)
{
	for (size_t i = 0; i < OPEN_MAX_NR; i++)
		if (w->fds[i] >= 0)
			(void)close(take_fd(&w->fds[i]));
	w->first_nr += w->ended_nr;
	w->opened_nr = w->begun_nr = w->ended_nr = 0;
}

static int begin(struct capture_loop *w, struct reason *why)
{
	struct capture_options o = w->options.capture;
	int err;

	o.recording_path = recording_path;
	o.recording_arg = w;
	err = capture__new(&o, why, &w->capture);
	if (!err)
		err = capture__start(w->capture, why);
	if (err) {
		capture__free(TAKE(w->capture));
		close_all(w);
		return err;
	}
	w->busy_ns = clock_now_ns();
	w->counts.captures_nr++;
	note_begun(w, 0, w->busy_ns);
	return 0;
}

/* Ends the capture. Recordings that could not be finished can be read up to where they end. */
static void end(struct capture_loop *w)
{
	struct capture_status s;
	struct reason why = {0};

	if (!w->capture)
		return;
	if (capture__stop(w->capture, &why)) {
		w->counts.failed_nr++;
		log_err("%s", why.text);
	}
	capture__status(w->capture, &s);
	capture__free(TAKE(w->capture));
	process_discovery__forget(w->discovery);
	w->options.began(w->first_nr + w->begun_nr, w->options.arg);
	while (w->ended_nr < w->begun_nr)
		hand_over(w, s.events_nr);
	close_all(w);
}

void capture_loop__free(struct capture_loop *w)
{
	if (!w)
		return;
	end(w);
	process_discovery__free(w->discovery);
	free(w);
}

int capture_loop__try(struct capture_loop *w, struct reason *why)
{
	return begin(w, why);
}

static void fail(struct capture_loop *w, const struct reason *why, uint64_t now)
{
	log_err("%s", why->text);
	w->counts.failed_nr++;
	w->retry_ns = now + RETRY_NS;
	end(w);
}

/* ---- a turn ---- */

/* Adds one process; only one, so that events never wait for long. Returns whether there was one. */
static bool join_one(struct capture_loop *w, uint64_t now)
{
	struct reason why = {0};
	pid_t pid;
	int err;

	if (now < w->retry_ns || !process_discovery__next(w->discovery, now, &pid))
		return false;
	if (!w->capture) {
		err = begin(w, &why);
		if (err) {
			fail(w, &why, now);
			return false;
		}
	}
	err = capture__add(w->capture, pid, &why);
	process_discovery__took(w->discovery, pid, err, now);
	if (!err) {
		w->counts.joined_nr++;
		w->busy_ns = now;
	} else if (err == -ESRCH) {
		w->counts.gone_nr++;
		log_info("%s", why.text);
	} else if (err != -EEXIST) {
		w->counts.refused_nr++;
		log_warn("%s", why.text);
	}
	return true;
}

static bool is_due(const struct capture_loop *w, const struct capture_status *s, uint64_t now)
{
	uint64_t began = w->events[(w->begun_nr - 1) % OPEN_MAX_NR];

	return w->cut_wanted || now - w->began_ns >= w->options.period_ns ||
	       s->events_nr - began >= w->options.events_max;
}

/* Whether the capture should be restarted, so that it forgets what it knows. */
static bool is_old(const struct capture_loop *w, const struct capture_status *s, uint64_t now)
{
	return s->processes_nr >= PROCESSES_NR || now - w->busy_ns >= IDLE_NS;
}

static void poll_capture(struct capture_loop *w, int timeout_ms)
{
	struct capture_status s;
	struct reason why = {0};
	int here = capture__poll(w->capture, timeout_ms, &why);
	uint64_t now = clock_now_ns();

	if (here < 0) {
		fail(w, &why, now);
		return;
	}
	if (here)
		w->busy_ns = now;
	capture__status(w->capture, &s);
	if (w->opened_nr > w->begun_nr)
		note_begun(w, s.events_nr, now);
	while (w->ended_nr < s.recordings_nr && w->ended_nr < w->begun_nr)
		hand_over(w, s.events_nr);
	if (is_old(w, &s, now)) {
		end(w);
	} else if (!w->rotating && is_due(w, &s, now)) {
		w->rotating = true;
		if (capture__rotate(w->capture, &why))
			fail(w, &why, now);
	}
}

void capture_loop__poll(struct capture_loop *w, int timeout_ms)
{
	uint64_t now = clock_now_ns();
	int err = process_discovery__poll(w->discovery, now);

	if (err) {
		w->counts.scan_failed_nr++;
		(void)log_errno(err, "cannot look for processes");
	}
	if (join_one(w, now))
		timeout_ms = 0;
	if (w->capture)
		poll_capture(w, timeout_ms);
	else if (timeout_ms)
		(void)poll(NULL, 0, timeout_ms);
	w->counts.processes_nr = process_discovery__taken(w->discovery);
}

bool capture_loop__cut(struct capture_loop *w)
{
	w->cut_wanted = w->capture;
	return w->capture;
}

uint64_t capture_loop__next(const struct capture_loop *w)
{
	return w->first_nr + w->begun_nr;
}

bool capture_loop__has(const struct capture_loop *w, pid_t pid)
{
	return process_discovery__has(w->discovery, pid);
}

void capture_loop__counts(const struct capture_loop *w, struct capture_loop_counts *ret_counts)
{
	*ret_counts = w->counts;
}
