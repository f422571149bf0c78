/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes one dump. Its thread shares nothing with the capture until it is done.
 */
#include "cli/record/flight_dump.h"

#include "base/cleanup.h"
#include "base/privileges.h"
#include "base/thread.h"
#include "base/vec.h"
#include "cli/view/merged.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct flight_dump {
	const struct file_folder *folder;
	char *path;
	uint64_t skipped_nr;
	VEC(int) fds;
	pthread_t thread;
	bool started;
	atomic_bool done;
	int err;
	struct reason why;
};

int flight_dump__new(const struct file_folder *folder, const char *path, uint64_t skipped_nr,
		     struct reason *why, struct flight_dump **ret_dump)
{
	struct flight_dump *d = calloc(1, sizeof(*d));

	if (d)
		d->path = strdup(path);
	if (!d || !d->path) {
		free(d);
		return reason_set(why, -ENOMEM, "out of memory");
	}
	d->folder = folder;
	d->skipped_nr = skipped_nr;
	*ret_dump = d;
	return 0;
}

static void join(struct flight_dump *d)
{
	if (d->started)
		(void)pthread_join(d->thread, NULL);
	d->started = false;
}

void flight_dump__free(struct flight_dump *d)
{
	if (!d)
		return;
	join(d);
	for (size_t i = 0; i < d->fds.nr; i++)
		(void)close(d->fds.items[i]);
	vec_done(&d->fds);
	free(d->path);
	free(d);
}

int flight_dump__add(struct flight_dump *d, int fd, struct reason *why)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (copy < 0)
		return reason_set(why, -errno, "cannot write '%s': %s", d->path, strerror(errno));
	if (vec_push(&d->fds, copy)) {
		(void)close(copy);
		return reason_set(why, -ENOMEM, "out of memory");
	}
	return 0;
}

/* One that was never written to is no recording: there is nothing of it. */
static int write_dump(struct flight_dump *d)
{
	CLEANUP(merged__done)
	struct merged m = {.counter = "triggers_skipped", .count = d->skipped_nr};

	for (size_t i = 0; i < d->fds.nr; i++) {
		char path[32];
		struct stat st;
		int err;

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", d->fds.items[i]);
		/* Its position is the writer's. */
		if (fstat(d->fds.items[i], &st) || !st.st_size)
			continue;
		err = merged__open(&m, path, &d->why);
		if (err)
			return err;
	}
	return merged__write(&m, d->folder, d->path, &d->why);
}

static void *run(void *arg)
{
	struct flight_dump *d = arg;

	d->err = write_dump(d);
	atomic_store(&d->done, true);
	return NULL;
}

int flight_dump__start(struct flight_dump *d, struct reason *why)
{
	int err = thread_start_with(&d->thread, "gp-dump", privileges_of_output(), run, d);

	d->started = !err;
	return err ? reason_set(why, err, "cannot write '%s': %s", d->path, strerror(-err)) : 0;
}

bool flight_dump__is_done(const struct flight_dump *d)
{
	return atomic_load(&d->done);
}

int flight_dump__finish(struct flight_dump *d, struct reason *why, char **ret_path)
{
	int err;

	join(d);
	err = d->err;
	if (err)
		*why = d->why;
	else
		*ret_path = TAKE(d->path);
	flight_dump__free(d);
	return err;
}
