/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Leads the capture from recording to recording.
 */
#include "daemon/watch.h"

#include "base/cleanup.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS    1000000000ULL
#define RETRY_NS     (5 * SECOND_NS)  /* after a capture that failed */
#define IDLE_NS	     (60 * SECOND_NS) /* a capture without a process ends then */
#define PROCESSES_NR 2048	      /* that have gone through a capture, when it is renewed */

struct watch {
	struct watch_options options;
	struct finder *finder;
	struct capture *capture; /* NULL: none is going on */
	int fd;			 /* of the recording in progress */
	char path[64];
	uint64_t next_nr;  /* of the next recording */
	uint64_t began_ns; /* the recording in progress */
	uint64_t began_events_nr;
	uint64_t busy_ns; /* when a process was last in the capture */
	uint64_t retry_ns;
	bool cut_wanted;
	struct watch_counts counts;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
}

struct watch *watch__new(const struct watch_options *options)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->options = *options;
	w->fd = -1;
	w->finder = finder__new(&options->find);
	if (!w->finder) {
		free(w);
		return NULL;
	}
	return w;
}

/* ---- one capture ---- */

static int begin(struct watch *w, struct reason *why)
{
	CLEANUP(cleanup_fd) int fd = memfd_create("gpuprof-recording", MFD_CLOEXEC);
	struct capture_options o = w->options.capture;
	int err;

	if (fd < 0)
		return reason_set(why, -errno, "no memory for a recording: %s", strerror(errno));
	(void)snprintf(w->path, sizeof(w->path), "/proc/self/fd/%d", fd);
	o.output_path = w->path;
	err = capture__new(&o, why, &w->capture);
	if (!err)
		err = capture__start(w->capture, why);
	if (err) {
		capture__free(TAKE(w->capture));
		return err;
	}
	w->fd = take_fd(&fd);
	w->began_ns = w->busy_ns = now_ns();
	w->began_events_nr = 0;
	w->cut_wanted = false;
	w->next_nr++;
	w->counts.captures_nr++;
	return 0;
}

static void end(struct watch *w)
{
	struct watch_recording r = {.nr = w->next_nr - 1, .fd = w->fd};
	struct capture_status s;
	struct reason why = {0};

	if (!w->capture)
		return;
	if (capture__stop(w->capture, &why)) {
		w->counts.failed_nr++;
		log_err("%s", why.text);
	}
	capture__status(w->capture, &s);
	r.events_nr = s.events_nr;
	r.capture_nr = w->counts.captures_nr;
	capture__free(TAKE(w->capture));
	finder__forget(w->finder);
	w->fd = -1;
	w->options.ended(&r, w->options.arg);
}

void watch__free(struct watch *w)
{
	if (!w)
		return;
	end(w);
	finder__free(w->finder);
	free(w);
}

int watch__try(struct watch *w, struct reason *why)
{
	return begin(w, why);
}

static void fail(struct watch *w, const struct reason *why, uint64_t now)
{
	log_err("%s", why->text);
	w->counts.failed_nr++;
	w->retry_ns = now + RETRY_NS;
	end(w);
}

/* ---- a turn ---- */

/* Takes in one process, so that events are never left waiting for long. True: there was one. */
static bool join_one(struct watch *w, uint64_t now)
{
	struct reason why = {0};
	pid_t pid;
	int err;

	if (now < w->retry_ns || !finder__next(w->finder, now, &pid))
		return false;
	if (!w->capture) {
		err = begin(w, &why);
		if (err) {
			fail(w, &why, now);
			return false;
		}
	}
	err = capture__add(w->capture, pid, &why);
	finder__took(w->finder, pid, err, now);
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

static bool is_due(const struct watch *w, const struct capture_status *s, uint64_t now)
{
	return w->cut_wanted || now - w->began_ns >= w->options.period_ns ||
	       s->events_nr - w->began_events_nr >= w->options.events_max;
}

static void poll_capture(struct watch *w, int timeout_ms)
{
	struct capture_status s;
	struct reason why = {0};
	int here = capture__poll(w->capture, timeout_ms, &why);
	uint64_t now = now_ns();

	if (here < 0) {
		fail(w, &why, now);
		return;
	}
	if (here)
		w->busy_ns = now;
	capture__status(w->capture, &s);
	if (is_due(w, &s, now))
		end(w);
}

void watch__turn(struct watch *w, int timeout_ms)
{
	uint64_t now = now_ns();
	int err = finder__turn(w->finder, now);

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
	w->counts.processes_nr = finder__taken(w->finder);
}

bool watch__cut(struct watch *w)
{
	w->cut_wanted = w->capture;
	return w->capture;
}

uint64_t watch__next(const struct watch *w)
{
	return w->next_nr;
}

bool watch__has(const struct watch *w, pid_t pid)
{
	return finder__has(w->finder, pid);
}

void watch__counts(const struct watch *w, struct watch_counts *ret_counts)
{
	*ret_counts = w->counts;
}
