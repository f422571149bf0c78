/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One list of jobs in order of request: finished ones in front, then the one that the thread is
 * working on.
 */
#include "probe/unwind/unwind_worker.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/vec.h"
#include "inspect/elf/vdso.h"
#include "inspect/unwind/unwind_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct job {
	struct unwind_made made;
	char *open_path; /* NULL: the vDSO */
	bool is_made;
};

struct unwind_worker {
	const char *cache_dir;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;	/* protects the members below */
	pthread_cond_t changed; /* a job was added or finished, or the thread is to end */
	VEC(struct job *) jobs;
	bool leaving;
};

struct unwind_worker *unwind_worker__new(const char *cache_dir)
{
	struct unwind_worker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->cache_dir = cache_dir;
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_cond_init(&w->changed, NULL);
	return w;
}

static void free_job(struct job *j)
{
	unwind_table__done(&j->made.table);
	free(j->open_path);
	free(j);
}

void unwind_worker__free(struct unwind_worker *w)
{
	if (!w)
		return;
	(void)pthread_mutex_lock(&w->lock);
	w->leaving = true;
	(void)pthread_cond_broadcast(&w->changed);
	(void)pthread_mutex_unlock(&w->lock);
	if (w->has_thread)
		(void)pthread_join(w->thread, NULL);
	for (size_t i = 0; i < w->jobs.nr; i++)
		free_job(w->jobs.items[i]);
	vec_done(&w->jobs);
	(void)pthread_cond_destroy(&w->changed);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

/* ---- the thread ---- */

static void make(const struct unwind_worker *w, struct job *j)
{
	CLEANUP(cleanup_elf) struct elf_file *f = NULL;
	struct unwind_table *u = &j->made.table;
	const char *name = j->open_path ? j->open_path : "[vdso]";
	struct reason why = {0};
	int err = j->open_path ? elf_file__open(j->open_path, &why, &f) : vdso_open(&f);

	err = err ? err : unwind_cache_get(f, j->open_path ? w->cache_dir : NULL, u);
	err = err == -ENOENT && f ? 0 : err;
	j->made.err = err ? err : f ? elf_file__error(f) : 0;
	if (j->made.err)
		log_debug("%s: no unwind table: %s", name, strerror(-j->made.err));
	else if (u->hard_nr || u->skipped_nr)
		log_debug("%s: %u rows of %u are no rules of ours, %llu records not understood",
			  name, u->hard_nr, u->rows_nr, (unsigned long long)u->skipped_nr);
}

static struct job *next_job(const struct unwind_worker *w)
{
	for (size_t i = 0; i < w->jobs.nr; i++)
		if (!w->jobs.items[i]->is_made)
			return w->jobs.items[i];
	return NULL;
}

static void *work(void *arg)
{
	struct unwind_worker *w = arg;
	struct job *j;

	(void)pthread_mutex_lock(&w->lock);
	while (!w->leaving) {
		j = next_job(w);
		if (!j) {
			(void)pthread_cond_wait(&w->changed, &w->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&w->lock);
		make(w, j);
		(void)pthread_mutex_lock(&w->lock);
		j->is_made = true;
		(void)pthread_cond_broadcast(&w->changed);
	}
	(void)pthread_mutex_unlock(&w->lock);
	return NULL;
}

static int start(struct unwind_worker *w)
{
	int err = w->has_thread ? 0 : thread_start(&w->thread, "gp-unwind", work, w);

	w->has_thread = !err;
	return err;
}

/* ---- for the other thread ---- */

static bool is_asked(const struct unwind_worker *w, const struct file_key *key)
{
	for (size_t i = 0; i < w->jobs.nr; i++)
		if (!memcmp(&w->jobs.items[i]->made.key, key, sizeof(*key)))
			return true;
	return false;
}

/* On success `j` belongs to the worker. */
static int add(struct unwind_worker *w, struct job *j)
{
	int err;

	(void)pthread_mutex_lock(&w->lock);
	err = vec_push(&w->jobs, j);
	(void)pthread_cond_broadcast(&w->changed);
	(void)pthread_mutex_unlock(&w->lock);
	return err;
}

int unwind_worker__ask(struct unwind_worker *w, const struct file_key *key, const char *open_path)
{
	struct job *j;
	int err;

	/* Only this thread adds and takes. */
	if (is_asked(w, key))
		return 0;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->made.key = *key;
	j->open_path = open_path ? strdup(open_path) : NULL;
	err = open_path && !j->open_path ? -ENOMEM : start(w);
	err = err ? err : add(w, j);
	if (err)
		free_job(j);
	return err;
}

bool unwind_worker__take(struct unwind_worker *w, bool wait, struct unwind_made *ret_made)
{
	struct job *j = NULL;

	(void)pthread_mutex_lock(&w->lock);
	while (wait && next_job(w))
		(void)pthread_cond_wait(&w->changed, &w->lock);
	if (w->jobs.nr && w->jobs.items[0]->is_made) {
		j = w->jobs.items[0];
		memmove(w->jobs.items, w->jobs.items + 1, --w->jobs.nr * sizeof(w->jobs.items[0]));
	}
	(void)pthread_mutex_unlock(&w->lock);
	if (!j)
		return false;
	*ret_made = j->made;
	j->made.table = (struct unwind_table){0};
	free_job(j);
	return true;
}
