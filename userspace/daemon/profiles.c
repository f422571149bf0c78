/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Builds the profiles that clients wait for. The numbers of recordings decide which belong to one.
 */
#include "daemon/profiles.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "common/clock.h"
#include "output/flame/stack_samples.h"
#include "output/format/output.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum state {
	NEW,
	ASKED,	 /* waits for a recording to begin */
	RUNNING, /* until its time is over */
	ENDING,	 /* its last recording is to be cut */
	CUT,	 /* its last recording has ended */
	DONE,
};

struct profile {
	enum state state;
	enum profile_kind kind;
	int32_t pid;
	uint32_t seconds;
	uint64_t end_ns;     /* when its time is over */
	uint64_t first, end; /* the recordings it is made of are [first, end); end: from CUT on */
	bool abandoned;
	int err;
	/* Of the thread that reads recordings, until it is DONE. */
	int fd;
	struct sink *sink;
	struct pprof *pprof;
};

struct profiles {
	bool sampled;
	pthread_mutex_t lock;
	VEC(struct profile *) list;
};

/* What a profile of each kind shows first, and what is in it. */
static const struct {
	const char *metric;
	uint32_t metrics;
	uint32_t sampled_metrics; /* of samples; 0: the same */
} kinds[] = {
	[PROFILE_CPU] = {"self_cpu_time_total", 1U << STACK_CPU | 1U << STACK_CALLS,
			 1U << STACK_CPU | 1U << STACK_SAMPLES},
	[PROFILE_GPU] = {"self_cuda_time_total", 1U << STACK_CUDA, 0},
	[PROFILE_ALLOCS] = {"allocated_bytes", 1U << STACK_ALLOCATIONS | 1U << STACK_ALLOCATED, 0},
};

struct profiles *profiles__new(bool sampled)
{
	struct profiles *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return NULL;
	ps->sampled = sampled;
	(void)pthread_mutex_init(&ps->lock, NULL);
	return ps;
}

static void free_profile(struct profile *p)
{
	pprof__free(p->pprof);
	sink__free(p->sink);
	if (p->fd >= 0)
		(void)close(p->fd);
	free(p);
}

void profiles__free(struct profiles *ps)
{
	if (!ps)
		return;
	for (size_t i = 0; i < ps->list.nr; i++)
		free_profile(ps->list.items[i]);
	vec_done(&ps->list);
	(void)pthread_mutex_destroy(&ps->lock);
	free(ps);
}

static void take_out(struct profiles *ps, const struct profile *p)
{
	for (size_t i = 0; i < ps->list.nr; i++)
		if (ps->list.items[i] == p)
			ps->list.items[i] = ps->list.items[--ps->list.nr];
}

/* ---- whoever wants one ---- */

static int begin_output(struct profile *p, bool sampled)
{
	uint32_t metrics = sampled ? kinds[p->kind].sampled_metrics : 0;

	p->fd = memfd_create("gpuprof-profile", MFD_CLOEXEC);
	if (p->fd < 0)
		return -errno;
	if (sink__new_fd_gzip(p->fd, &p->sink))
		return -ENOMEM;
	p->pprof = pprof__new(p->sink, metrics ? metrics : kinds[p->kind].metrics);
	return p->pprof ? 0 : -ENOMEM;
}

int profiles__ask(struct profiles *ps, enum profile_kind kind, int32_t pid, uint32_t seconds,
		  struct profile **ret_profile)
{
	struct profile *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	*p = (struct profile){.kind = kind, .pid = pid, .seconds = seconds, .fd = -1};
	err = begin_output(p, ps->sampled);
	(void)pthread_mutex_lock(&ps->lock);
	if (!err && ps->list.nr >= PROFILES_MAX)
		err = -EBUSY;
	err = err ? err : vec_push(&ps->list, p);
	(void)pthread_mutex_unlock(&ps->lock);
	if (err)
		free_profile(p);
	else
		*ret_profile = p;
	return err;
}

int profiles__get(struct profiles *ps, struct profile *p, int *ret_fd)
{
	int err = -EAGAIN;

	(void)pthread_mutex_lock(&ps->lock);
	if (p->state == DONE) {
		take_out(ps, p);
		err = p->err;
		if (!err)
			*ret_fd = take_fd(&p->fd);
		free_profile(p);
	}
	(void)pthread_mutex_unlock(&ps->lock);
	return err;
}

void profiles__abandon(struct profiles *ps, struct profile *p)
{
	(void)pthread_mutex_lock(&ps->lock);
	if (p->state == DONE) {
		take_out(ps, p);
		free_profile(p);
	} else {
		/* The reading thread may be working on it, and frees it. */
		p->abandoned = true;
		p->end_ns = 0;
	}
	(void)pthread_mutex_unlock(&ps->lock);
}

/* ---- the thread that captures ---- */

bool profiles__poll(struct profiles *ps, uint64_t now_ns, bool (*has)(void *arg, int32_t pid),
		    void *arg)
{
	bool cut = false;

	(void)pthread_mutex_lock(&ps->lock);
	for (size_t i = 0; i < ps->list.nr; i++) {
		struct profile *p = ps->list.items[i];

		if (p->state == NEW) {
			bool there = !p->pid || has(arg, p->pid);

			p->state = there ? ASKED : CUT;
			p->err = there ? 0 : -ESRCH;
		}
		if (p->state == RUNNING && now_ns >= p->end_ns)
			p->state = ENDING;
		cut |= p->state == ASKED || p->state == ENDING;
	}
	(void)pthread_mutex_unlock(&ps->lock);
	return cut;
}

void profiles__cut(struct profiles *ps, uint64_t next, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&ps->lock);
	for (size_t i = 0; i < ps->list.nr; i++) {
		struct profile *p = ps->list.items[i];

		if (p->state == ASKED) {
			p->state = RUNNING;
			p->first = next;
			p->end_ns = p->abandoned ? 0 : now_ns + p->seconds * SECOND_NS;
		} else if (p->state == ENDING) {
			p->state = CUT;
			p->end = next;
		}
	}
	(void)pthread_mutex_unlock(&ps->lock);
}

/* ---- the thread that reads recordings ---- */

static bool wants(const struct profile *p, uint64_t nr)
{
	return !p->err && !p->abandoned && p->state >= RUNNING && p->state <= CUT &&
	       p->first <= nr && (p->state != CUT || nr < p->end);
}

static bool is_over(const struct profile *p, uint64_t next)
{
	return p->state == CUT && p->end <= next;
}

struct few {
	struct profile *items[PROFILES_MAX];
	size_t nr;
};

/* Collects the profiles that want the recording, or (`over`) that are complete. They stay valid
 * without the lock: only this thread frees one that is not DONE. */
static struct few choose(struct profiles *ps, uint64_t nr, bool over)
{
	struct few few = {.nr = 0};

	(void)pthread_mutex_lock(&ps->lock);
	for (size_t i = 0; i < ps->list.nr; i++) {
		struct profile *p = ps->list.items[i];

		if (over ? is_over(p, nr) : wants(p, nr))
			few.items[few.nr++] = p;
	}
	(void)pthread_mutex_unlock(&ps->lock);
	return few;
}

static void set_error(struct profiles *ps, struct profile *p, int err)
{
	(void)pthread_mutex_lock(&ps->lock);
	p->err = p->err ? p->err : err;
	(void)pthread_mutex_unlock(&ps->lock);
}

void profiles__add(struct profiles *ps, uint64_t nr, const struct timeline *t, int err)
{
	struct few few = choose(ps, nr, false);

	for (size_t i = 0; i < few.nr; i++) {
		struct profile *p = few.items[i];

		set_error(ps, p, t ? pprof__add(p->pprof, t, p->pid) : err);
	}
}

void profiles__finish(struct profiles *ps, uint64_t next)
{
	struct few few = choose(ps, next, true);

	for (size_t i = 0; i < few.nr; i++) {
		struct profile *p = few.items[i];
		int err = p->err;

		err = err ? err : pprof__finish(p->pprof, kinds[p->kind].metric);
		err = err ? err : sink__finish(p->sink);
		set_error(ps, p, err);
		(void)pthread_mutex_lock(&ps->lock);
		p->state = DONE;
		if (p->abandoned) {
			take_out(ps, p);
			free_profile(p);
		}
		(void)pthread_mutex_unlock(&ps->lock);
	}
}

uint64_t profiles__nr(struct profiles *ps)
{
	uint64_t nr;

	(void)pthread_mutex_lock(&ps->lock);
	nr = ps->list.nr;
	(void)pthread_mutex_unlock(&ps->lock);
	return nr;
}
