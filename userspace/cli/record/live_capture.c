/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Keeps recordings in memory: the capture writes memfd_create() files, and the reader opens them
 * by their names in /proc/self/fd.
 */
#include "cli/record/live_capture.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/core/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Per recording: keeps its timeline below about half a gigabyte. */
#define EVENTS_MAX 2000000

struct live_capture {
	struct capture_options options;
	pid_t *pids;
	size_t pids_nr;
	struct capture *capture;
	VEC(int) files;		   /* of the capture's recordings, in order; -1: given on */
	uint32_t given_nr;	   /* of these: whole, and now in `ended` */
	bool cutting;		   /* a recording is to end */
	uint64_t cut_at_nr;	   /* events so far when the one in progress began */
	VEC(int) ended;		   /* files of whole recordings, oldest first */
	struct live_status before; /* of captures that are over */
};

static char *path_of(int fd)
{
	char *path;

	return asprintf(&path, "/proc/self/fd/%d", fd) < 0 ? NULL : path;
}

/* A file in memory for the next recording. */
static char *recording_path(void *arg, unsigned int nr)
{
	struct live_capture *l = arg;
	CLEANUP(cleanup_fd) int fd = memfd_create("gpuprof", MFD_CLOEXEC);
	char *path = fd < 0 ? NULL : path_of(fd);

	while (path && l->files.nr < nr)
		if (vec_push(&l->files, -1))
			free(TAKE(path));
	if (path && vec_push(&l->files, fd))
		free(TAKE(path));
	if (path)
		(void)take_fd(&fd);
	return path;
}

/* Recordings that have ended since the last look can be taken. 0 or -errno with a reason. */
static int give_ended(struct live_capture *l, uint32_t recordings_nr, struct reason *why)
{
	while (l->given_nr < recordings_nr && l->given_nr < l->files.nr) {
		int *fd = &l->files.items[l->given_nr++];

		if (*fd >= 0 && vec_push(&l->ended, *fd))
			return reason_set(why, -ENOMEM, "out of memory");
		*fd = -1;
	}
	return 0;
}

static void forget_files(struct live_capture *l)
{
	for (size_t i = 0; i < l->files.nr; i++)
		if (l->files.items[i] >= 0)
			(void)close(l->files.items[i]);
	vec_done(&l->files);
	l->given_nr = 0;
}

/* Adds the processes that are there. 0, or -errno with a reason if none is. */
static int add_processes(struct live_capture *l, struct capture *c, struct reason *why)
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

/* Begins a capture. 0 or -errno with a reason. */
static int begin(struct live_capture *l, struct reason *why)
{
	struct capture *c = NULL;
	int err;

	forget_files(l);
	l->options.output_path = "memory";
	l->options.recording_path = recording_path;
	l->options.recording_arg = l;
	err = capture__new(&l->options, why, &c);
	err = err ?: add_processes(l, c, why);
	err = err ?: capture__start(c, why);
	if (err) {
		capture__free(c);
		return err;
	}
	l->capture = c;
	l->cutting = false;
	l->cut_at_nr = 0;
	return 0;
}

/* Ends the capture; its recordings can be taken. */
static int end(struct live_capture *l, struct reason *why)
{
	struct capture_status s;
	int err = capture__stop(l->capture, why);

	capture__status(l->capture, &s);
	l->before.events_nr += s.events_nr;
	l->before.lost_nr += s.lost_nr;
	capture__free(TAKE(l->capture));
	return err ? err : give_ended(l, s.recordings_nr, why);
}

int live_capture__new(const struct capture_options *options, const pid_t *pids, size_t pids_nr,
		      struct reason *why, struct live_capture **ret_live)
{
	struct live_capture *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return reason_set(why, -ENOMEM, "out of memory");
	l->options = *options;
	l->pids = malloc(pids_nr * sizeof(*pids));
	l->pids_nr = pids_nr;
	if (l->pids)
		memcpy(l->pids, pids, pids_nr * sizeof(*pids));
	err = l->pids ? begin(l, why) : reason_set(why, -ENOMEM, "out of memory");
	if (err)
		live_capture__free(l);
	else
		*ret_live = l;
	return err;
}

int live_capture__poll(struct live_capture *l, int timeout_ms, struct reason *why)
{
	struct capture_status s;
	int err, here = l->capture ? capture__poll(l->capture, timeout_ms, why) : 0;

	if (here < 0 || !l->capture)
		return here;
	capture__status(l->capture, &s);
	if (s.recordings_nr > l->given_nr)
		l->cutting = false;
	err = give_ended(l, s.recordings_nr, why);
	if (!err && s.events_nr - l->cut_at_nr > EVENTS_MAX)
		err = live_capture__cut(l, why);
	return err ? err : here;
}

int live_capture__cut(struct live_capture *l, struct reason *why)
{
	struct capture_status s;

	if (!l->capture || l->cutting)
		return 0;
	capture__status(l->capture, &s);
	l->cutting = true;
	l->cut_at_nr = s.events_nr;
	return capture__rotate(l->capture, why);
}

int live_capture__take(struct live_capture *l, struct loaded_recording *ret)
{
	CLEANUP(cleanup_free) char *path = NULL;
	int fd, status;

	if (!l->ended.nr)
		return 0;
	fd = l->ended.items[0];
	memmove(l->ended.items, l->ended.items + 1, --l->ended.nr * sizeof(fd));
	path = path_of(fd);
	status = path ? loaded_recording__open(ret, path) : CLI_FAILED;
	(void)close(fd);
	return status ? -EIO : 1;
}

int live_capture__change(struct live_capture *l, const struct capture_options *options,
			 struct reason *why)
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

int live_capture__pause(struct live_capture *l, bool paused, struct reason *why)
{
	if (!l->capture)
		return reason_set(why, -ESRCH, "the capture has ended");
	return capture__switch(l->capture, CAPTURE_CPU | CAPTURE_GPU, !paused, why);
}

int live_capture__stop(struct live_capture *l, struct reason *why)
{
	return l->capture ? end(l, why) : 0;
}

void live_capture__free(struct live_capture *l)
{
	if (!l)
		return;
	capture__free(l->capture);
	forget_files(l);
	for (size_t i = 0; i < l->ended.nr; i++)
		(void)close(l->ended.items[i]);
	vec_done(&l->ended);
	free(l->pids);
	free(l);
}

void live_capture__status(const struct live_capture *l, struct live_status *ret_status)
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
