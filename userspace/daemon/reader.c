/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads recordings in a thread. It has two locks: one for the queue, which the capturing thread
 * takes too and nobody holds for long, and one for the totals.
 */
#include "daemon/reader.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/vec.h"
#include "common/clock.h"
#include "daemon/totals.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"

#define WAIT_NS	    100000000ULL
#define QUEUE_MAX   32 /* recordings that wait, with their memory */
#define QUEUE_BYTES (64LL << 20)

struct reader {
	struct profiles *profiles;
	struct recording_store *store;
	pthread_t thread;
	pthread_mutex_t lock; /* of the queue and the counts */
	pthread_cond_t change;
	VEC(struct captured_recording) queue; /* fd -1: dropped */
	struct reader_counts counts;
	bool stop;
	uint64_t next; /* the number after the last recording that was read; the thread's own */
	pthread_mutex_t totals_lock;
	struct totals totals;
};

static void count(struct reader *r, uint64_t *counter, uint64_t nr)
{
	(void)pthread_mutex_lock(&r->lock);
	*counter += nr;
	(void)pthread_mutex_unlock(&r->lock);
}

/* ---- one recording ---- */

static void put_on_shelf(struct reader *r, const struct captured_recording *w,
			 const struct recording *rec)
{
	struct store_item item = {.fd = w->fd, .events_nr = w->events_nr};
	uint64_t start_ns, end_ns;
	struct stat st;
	struct tm tm;
	char when[32];
	time_t start;
	int err;

	recording__window(rec, &start_ns, &end_ns, &item.start_realtime_ns);
	item.duration_ns = end_ns > start_ns ? end_ns - start_ns : 0;
	item.processes_nr = (uint32_t)recording__processes(rec);
	item.bytes = fstat(w->fd, &st) ? 0 : (uint64_t)st.st_size;
	start = (time_t)(item.start_realtime_ns / SECOND_NS);
	(void)gmtime_r(&start, &tm);
	(void)strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	(void)snprintf(item.id, sizeof(item.id), "%s-%d-%llu", when, (int)getpid(),
		       (unsigned long long)w->nr);
	err = recording_store__put(r->store, &item);
	if (!err)
		return;
	count(r, &r->counts.unsaved_nr, 1);
	log_warn("cannot keep recording %s: %s", item.id, strerror(-err));
}

static int add(struct reader *r, const struct captured_recording *w, struct recording *rec)
{
	struct totals_part part = {w->events_nr, w->capture_nr, clock_now_ns()};
	struct timeline *t;
	struct reason why = {0};
	int err = timeline__new(rec, &why, &t);

	if (err) {
		log_err("cannot read a recording: %s", why.text);
		return err;
	}
	(void)pthread_mutex_lock(&r->totals_lock);
	err = totals__add(&r->totals, t, &part);
	(void)pthread_mutex_unlock(&r->totals_lock);
	profiles__add(r->profiles, w->nr, t, 0);
	timeline__free(t);
	return err;
}

static void read_one(struct reader *r, const struct captured_recording *w)
{
	struct recording *rec = NULL;
	struct reason why = {0};
	char path[64];
	int err;

	if (w->fd < 0) {
		profiles__add(r->profiles, w->nr, NULL, -EBUSY);
		return;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", w->fd);
	err = recording__open(path, &why, &rec);
	if (err) {
		log_err("%s", why.text);
		profiles__add(r->profiles, w->nr, NULL, err);
		(void)close(w->fd);
	} else {
		err = add(r, w, rec);
		if (err)
			profiles__add(r->profiles, w->nr, NULL, err);
		err = err ? err : recording__damage(rec) ? -EIO : 0;
		put_on_shelf(r, w, rec);
	}
	recording__free(rec);
	if (err)
		count(r, &r->counts.damaged_nr, 1);
	/* Returns the memory that a large recording took. */
	(void)malloc_trim(0);
}

/* ---- the thread ---- */

/* Waits a moment for a recording. False: there is none. */
static bool take(struct reader *r, struct captured_recording *ret_recording, bool *ret_stop)
{
	struct timespec until;
	bool any;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += WAIT_NS;
	until.tv_sec += until.tv_nsec / (long)SECOND_NS;
	until.tv_nsec %= (long)SECOND_NS;
	(void)pthread_mutex_lock(&r->lock);
	if (!r->queue.nr && !r->stop)
		(void)pthread_cond_timedwait(&r->change, &r->lock, &until);
	any = r->queue.nr;
	if (any) {
		*ret_recording = r->queue.items[0];
		memmove(&r->queue.items[0], &r->queue.items[1],
			--r->queue.nr * sizeof(*r->queue.items));
	}
	*ret_stop = r->stop;
	(void)pthread_mutex_unlock(&r->lock);
	return any;
}

static void *read_all(void *arg)
{
	struct captured_recording recording;
	struct reader *r = arg;
	bool any, stop;

	do {
		any = take(r, &recording, &stop);
		if (any) {
			read_one(r, &recording);
			r->next = recording.nr + 1;
		}
		profiles__finish(r->profiles, r->next);
	} while (any || !stop);
	return NULL;
}

int reader__new(struct profiles *profiles, struct recording_store *store, struct reason *why,
		struct reader **ret_reader)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return reason_set(why, -ENOMEM, "out of memory");
	r->profiles = profiles;
	r->store = store;
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_mutex_init(&r->totals_lock, NULL);
	(void)pthread_cond_init(&r->change, NULL);
	err = thread_start_with(&r->thread, "gp-reader", 0, read_all, r);
	if (err) {
		free(r);
		return reason_set(why, err, "cannot start a thread: %s", strerror(-err));
	}
	*ret_reader = r;
	return 0;
}

void reader__free(struct reader *r)
{
	if (!r)
		return;
	(void)pthread_mutex_lock(&r->lock);
	r->stop = true;
	(void)pthread_cond_signal(&r->change);
	(void)pthread_mutex_unlock(&r->lock);
	(void)pthread_join(r->thread, NULL);
	totals__done(&r->totals);
	vec_done(&r->queue);
	(void)pthread_mutex_destroy(&r->lock);
	(void)pthread_mutex_destroy(&r->totals_lock);
	(void)pthread_cond_destroy(&r->change);
	free(r);
}

static bool is_full(const struct reader *r)
{
	size_t nr = 0;
	off_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < r->queue.nr; i++) {
		if (r->queue.items[i].fd < 0)
			continue;
		nr++;
		bytes += fstat(r->queue.items[i].fd, &st) ? 0 : st.st_size;
	}
	return nr >= QUEUE_MAX || (nr && bytes >= QUEUE_BYTES);
}

static void drop(struct reader *r, struct captured_recording *w)
{
	r->counts.dropped_nr++;
	r->counts.dropped_events_nr += w->events_nr;
	(void)close(take_fd(&w->fd));
}

void reader__give(struct reader *r, const struct captured_recording *recording)
{
	struct captured_recording w = *recording;

	(void)pthread_mutex_lock(&r->lock);
	if (is_full(r))
		drop(r, &w);
	if (vec_push(&r->queue, w) && w.fd >= 0)
		drop(r, &w);
	(void)pthread_cond_signal(&r->change);
	(void)pthread_mutex_unlock(&r->lock);
}

void reader__metrics(struct reader *r, struct buf *out)
{
	(void)pthread_mutex_lock(&r->totals_lock);
	totals__text(&r->totals, out);
	(void)pthread_mutex_unlock(&r->totals_lock);
}

void reader__counts(struct reader *r, struct reader_counts *ret_counts)
{
	(void)pthread_mutex_lock(&r->lock);
	*ret_counts = r->counts;
	(void)pthread_mutex_unlock(&r->lock);
}

void reader__index(struct reader *r, struct buf *out)
{
	(void)pthread_mutex_lock(&r->totals_lock);
	for (size_t i = 0; i < r->totals.processes.nr; i++) {
		const struct total_process *p = r->totals.processes.items[i];

		buf__printf(out, "<tr><td>%d<td>", (int)p->pid);
		buf__html(out, p->comm);
		if (r->totals.sampled)
			buf__str(out, "<td>not known by samples\n");
		else
			buf__printf(out, "<td>%llu\n", (unsigned long long)p->steps_nr);
	}
	(void)pthread_mutex_unlock(&r->totals_lock);
}
