/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Recordings in memory: files of memfd_create() that the capture writes and the reader opens under
 * their names in /proc/self/fd.
 */
#include "cli/live.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Of one recording: what its timeline may take stays under about half a gigabyte. */
#define EVENTS_MAX 2000000

struct live {
	struct capture_options options;
	pid_t *pids;
	size_t pids_nr;
	struct capture *capture;
	int file;		   /* of the recording in progress */
	uint64_t cut_at_nr;	   /* events so far when it began */
	VEC(int) ended;		   /* files of whole recordings, oldest first */
	struct live_status before; /* of captures that are over */
};

static void path_of(int fd, char *to, size_t bytes)
{
	(void)snprintf(to, bytes, "/proc/self/fd/%d", fd);
}

/* Adds the processes that are there. 0, or -errno with a reason if none is. */
static int add_processes(struct live *l, struct capture *c, struct reason *why)
{
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < l->pids_nr; i++) {
		err = capture__add(c, l->pids[i], why);
		if (err && err != -ESRCH)
			return err;
		nr += !err;
	}
	return nr ? 0 : err;
}

/* Begins a capture into a file of its own. 0 or -errno with a reason. */
static int begin(struct live *l, struct reason *why)
{
	CLEANUP(cleanup_fd) int fd = memfd_create("gpuprof", MFD_CLOEXEC);
	struct capture *c = NULL;
	char path[64];
	int err;

	if (fd < 0)
		return reason_set(why, -errno, "cannot create a recording in memory: %s",
				  strerror(errno));
	path_of(fd, path, sizeof(path));
	l->options.output_path = path;
	err = capture__new(&l->options, why, &c);
	err = err ?: add_processes(l, c, why);
	err = err ?: capture__start(c, why);
	l->options.output_path = NULL;
	if (err) {
		capture__free(c);
		return err;
	}
	l->capture = c;
	l->cut_at_nr = 0;
	l->file = take_fd(&fd);
	return 0;
}

/* Ends the capture; its recording can be taken. */
static int end(struct live *l, struct reason *why)
{
	struct live_status s;
	int err = capture__stop(l->capture, why);

	live__status(l, &s);
	l->before.events_nr = s.events_nr;
	l->before.lost_nr = s.lost_nr;
	capture__free(TAKE(l->capture));
	if (!err && vec_push(&l->ended, l->file))
		err = reason_set(why, -ENOMEM, "out of memory");
	else if (!err)
		l->file = -1;
	return err;
}

int live__new(const struct capture_options *options, const pid_t *pids, size_t pids_nr,
	      struct reason *why, struct live **ret_live)
{
	struct live *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return reason_set(why, -ENOMEM, "out of memory");
	l->options = *options;
	l->file = -1;
	l->pids = malloc(pids_nr * sizeof(*pids));
	l->pids_nr = pids_nr;
	if (l->pids)
		memcpy(l->pids, pids, pids_nr * sizeof(*pids));
	err = l->pids ? begin(l, why) : reason_set(why, -ENOMEM, "out of memory");
	if (err)
		live__free(l);
	else
		*ret_live = l;
	return err;
}

int live__poll(struct live *l, int timeout_ms, struct reason *why)
{
	struct capture_status s;
	int here = l->capture ? capture__poll(l->capture, timeout_ms, why) : 0;

	if (here <= 0)
		return here;
	capture__status(l->capture, &s);
	if (s.events_nr - l->cut_at_nr > EVENTS_MAX) {
		int err = live__cut(l, why);

		return err ? err : here;
	}
	return here;
}

int live__cut(struct live *l, struct reason *why)
{
	int err = l->capture ? end(l, why) : 0;

	err = err ?: begin(l, why);
	return err == -ESRCH ? 0 : err;
}

int live__take(struct live *l, struct shown *ret)
{
	char path[64];
	int fd, status;

	if (!l->ended.nr)
		return 0;
	fd = l->ended.items[0];
	memmove(l->ended.items, l->ended.items + 1, --l->ended.nr * sizeof(fd));
	path_of(fd, path, sizeof(path));
	status = shown__open(ret, path);
	(void)close(fd);
	return status ? -EIO : 1;
}

int live__change(struct live *l, const struct capture_options *options, struct reason *why)
{
	struct capture_options before = l->options;
	struct reason ignored;
	int err = l->capture ? end(l, why) : 0;

	if (err)
		return err;
	l->options = *options;
	err = begin(l, why);
	if (err) {
		l->options = before;
		(void)begin(l, &ignored);
	}
	return err;
}

int live__pause(struct live *l, bool paused, struct reason *why)
{
	if (!l->capture)
		return reason_set(why, -ESRCH, "the capture has ended");
	return capture__switch(l->capture, CAPTURE_CPU | CAPTURE_GPU, !paused, why);
}

int live__stop(struct live *l, struct reason *why)
{
	return l->capture ? end(l, why) : 0;
}

void live__free(struct live *l)
{
	if (!l)
		return;
	capture__free(l->capture);
	if (l->file >= 0)
		(void)close(l->file);
	for (size_t i = 0; i < l->ended.nr; i++)
		(void)close(l->ended.items[i]);
	vec_done(&l->ended);
	free(l->pids);
	free(l);
}

void live__status(const struct live *l, struct live_status *ret_status)
{
	struct capture_status s;

	*ret_status = l->before;
	if (!l->capture)
		return;
	capture__status(l->capture, &s);
	ret_status->events_nr += s.events_nr;
	ret_status->lost_nr += s.lost_nr;
	ret_status->sites_nr = s.sites_nr;
	ret_status->functions_nr = s.functions_nr;
	ret_status->processes_nr = s.processes_nr;
	ret_status->callbacks_nr = s.callbacks_nr;
	ret_status->method = s.method;
}
