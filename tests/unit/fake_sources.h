/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A probe session and collectors that do as the test says. They stand in for
 * probe/session/session.c and capture/collector/client.c at link time, so they are in a header: few
 * tests want that.
 */
#ifndef GP_UNIT_FAKE_SOURCES_H
#define GP_UNIT_FAKE_SOURCES_H

#include "base/buf.h"
#include "capture/collector/client.h"
#include "common/clock.h"
#include "probe/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the probe session ---- */

/* What the capture has done to it, and what it is to give. */
struct probe_session {
	bool paused;
	uint64_t period_ns; /* of samples */
	uint32_t lifts_nr, places_nr, unwinds_nr, renews_nr;
	uint64_t hits;
	/* Events in its ring, each behind its length; drained once. */
	struct buf ring;
};

static inline void fake_ring_add(struct probe_session *s, const void *event, size_t bytes)
{
	uint64_t nr = bytes;

	buf__add(&s->ring, &nr, sizeof(nr));
	buf__add(&s->ring, event, bytes);
	buf__add(&s->ring, (const char[8]){0}, -bytes & 7);
}

static int fake_ring_drain(struct buf *from, int (*fn)(const void *, size_t, void *), void *arg)
{
	struct buf ring = *from;
	int nr = 0, err = 0;

	*from = (struct buf){0};
	for (size_t at = 0; at < ring.nr && !err; nr++) {
		uint64_t bytes;

		memcpy(&bytes, ring.bytes + at, sizeof(bytes));
		at += sizeof(bytes);
		err = fn(ring.bytes + at, bytes, arg);
		at += (bytes + 7) & ~7ULL;
	}
	buf__done(&ring);
	return err < 0 ? err : nr;
}

int probe_session__new(const struct probe_options *o, struct reason *why,
		       struct probe_session **ret_session)
{
	(void)o;
	(void)why;
	*ret_session = calloc(1, sizeof(**ret_session));
	return *ret_session ? 0 : -ENOMEM;
}

void probe_session__free(struct probe_session *s)
{
	if (s)
		buf__done(&s->ring);
	free(s);
}

const char *probe_session__no_bpf(const struct probe_session *s)
{
	(void)s;
	return NULL;
}

int probe_session__attach(struct probe_session *s, const struct target_process *p, uint16_t index,
			  uint32_t groups, struct reason *why)
{
	(void)s, (void)p, (void)index, (void)groups, (void)why;
	return 0;
}

bool probe_session__sees_forks(const struct probe_session *s)
{
	(void)s;
	return true;
}

void probe_session__set_stack_tops(struct probe_session *s, uint16_t index, uint64_t address)
{
	(void)s, (void)index, (void)address;
}

int probe_session__set_python(struct probe_session *s, const struct target_process *p,
			      uint16_t index, const struct gp_python *python, uint64_t dealloc)
{
	(void)s, (void)p, (void)index, (void)python, (void)dealloc;
	return 0;
}

int probe_session__set_code(struct probe_session *s, uint16_t index, const struct target_process *p)
{
	(void)s, (void)index, (void)p;
	return 0;
}

uint32_t probe_session__maps_changes(const struct probe_session *s, uint16_t index)
{
	(void)s, (void)index;
	return 0;
}

struct maps_moves probe_session__maps_moves(const struct probe_session *s, uint16_t index)
{
	(void)s, (void)index;
	return (struct maps_moves){0};
}

int probe_session__load_unwind(struct probe_session *s, uint16_t index, uint64_t address)
{
	(void)index, (void)address;
	s->unwinds_nr++;
	return 0;
}

int probe_session__load_unwind_of(struct probe_session *s, uint16_t index, const char *prefix)
{
	(void)s, (void)index, (void)prefix;
	return 0;
}

void probe_session__resume(struct probe_session *s, uint16_t index)
{
	(void)s, (void)index;
}

uint32_t probe_session__detach_api(struct probe_session *s, uint16_t index)
{
	(void)s, (void)index;
	return 0;
}

void probe_session__detach(struct probe_session *s, uint16_t index, bool has_ended)
{
	(void)s, (void)index, (void)has_ended;
}

void probe_session__lift(struct probe_session *s, uint16_t index)
{
	(void)index;
	s->lifts_nr++;
}

void probe_session__place(struct probe_session *s, const struct target_process *p, uint16_t index)
{
	(void)p, (void)index;
	s->places_nr++;
}

void probe_session__start(struct probe_session *s)
{
	(void)s;
}

void probe_session__pause(struct probe_session *s, bool pause)
{
	s->paused = pause;
}

void probe_session__stop(struct probe_session *s)
{
	(void)s;
}

int probe_session__ring_fd(const struct probe_session *s)
{
	(void)s;
	return -1;
}

int probe_session__drain(struct probe_session *s, int (*fn)(const void *, size_t, void *),
			 void *arg)
{
	return fake_ring_drain(&s->ring, fn, arg);
}

size_t probe_session__names(const struct probe_session *s)
{
	(void)s;
	return 2;
}

struct probe_name probe_session__name(const struct probe_session *s, size_t i)
{
	(void)s;
	return i ? (struct probe_name){2, "aten::mm", "out"}
		 : (struct probe_name){1, "aten::add", ""};
}

void probe_session__losses(const struct probe_session *s, uint64_t losses[GP_LOSS_NR])
{
	(void)s;
	memset(losses, 0, GP_LOSS_NR * sizeof(*losses));
}

uint64_t probe_session__hits(const struct probe_session *s)
{
	return s->hits;
}

void probe_session__cost(const struct probe_session *s, struct probe_cost *ret_cost)
{
	*ret_cost = (struct probe_cost){.hits = s->hits};
}

uint64_t probe_session__sampler_ns(const struct probe_session *s)
{
	(void)s;
	return 0;
}

uint64_t probe_session__sampling_ns(const struct probe_session *s)
{
	(void)s;
	return 0;
}

int probe_session__set_sample_period(struct probe_session *s, uint64_t period_ns)
{
	s->period_ns = period_ns;
	return 0;
}

bool probe_session__samples_by_tick(const struct probe_session *s)
{
	(void)s;
	return false;
}

void probe_session__renew_samples(struct probe_session *s)
{
	s->renews_nr++;
}

void probe_session__summary(const struct probe_session *s, struct probe_summary *ret_summary)
{
	(void)s;
	*ret_summary = (struct probe_summary){.method = "fake"};
}

/* ---- collectors ---- */

/* Follows what it is asked for when the test says so: fake_collector_obey(). */
struct collector_client {
	uint32_t whole, wanted, active; /* enum gp_feature bits */
	bool stopped;
	struct buf ring;
};

static inline void fake_collector_obey(struct collector_client *g)
{
	g->active = g->wanted;
}

int collector_client__new(const struct target_process *p, uint16_t index, uint32_t features,
			  bool any_cupti, const struct gp_python *python,
			  struct collector_meanwhile meanwhile, struct reason *why,
			  struct collector_client **ret_collector)
{
	(void)p, (void)index, (void)any_cupti, (void)python, (void)meanwhile;
	*ret_collector = calloc(1, sizeof(**ret_collector));
	if (!*ret_collector)
		return reason_set(why, -ENOMEM, "out of memory");
	(*ret_collector)->whole = (*ret_collector)->wanted = (*ret_collector)->active = features;
	return 0;
}

int collector_client__adopt(const struct target_process *p, uint16_t index, bool any_cupti,
			    struct collector_meanwhile meanwhile, struct reason *why,
			    struct collector_client **ret_collector)
{
	return collector_client__new(p, index, GP_FEATURE_CUPTI, any_cupti, NULL, meanwhile, why,
				     ret_collector);
}

bool collector_client__failed_features(const struct collector_client *g, uint32_t features,
				       struct reason *ret_why)
{
	(void)g, (void)features, (void)ret_why;
	return false;
}

uint32_t collector_client__active(const struct collector_client *g)
{
	return g->active;
}

uint64_t collector_client__stack_cache(const struct collector_client *g)
{
	(void)g;
	return 0;
}

void collector_client__feature_error(const struct collector_client *g, const char *what,
				     struct reason *ret_why)
{
	(void)g, (void)what, (void)ret_why;
}

bool collector_client__requested(const struct collector_client *g, uint32_t features)
{
	return (g->wanted & features) == features;
}

bool collector_client__supports(const struct collector_client *g, uint32_t features)
{
	return g->whole & features;
}

void collector_client__request(struct collector_client *g, uint32_t features)
{
	g->whole |= features;
	g->wanted |= features;
}

void collector_client__release(struct collector_client *g, uint32_t features)
{
	g->whole &= ~features;
	g->wanted &= ~features;
}

void collector_client__retain(struct collector_client *g, uint32_t features, collector_event_fn fn,
			      void *arg)
{
	(void)fn, (void)arg;
	g->whole &= features;
	g->wanted &= features;
}

void collector_client__only(struct collector_client *g, uint32_t features)
{
	g->wanted = features & (g->whole | GP_FEATURE_STEPS | GP_FEATURE_CUPTI_HELD);
}

bool collector_client__follows(const struct collector_client *g)
{
	return g->active == g->wanted;
}

int collector_client__take(struct collector_client *g, collector_event_fn fn, void *arg)
{
	return fake_ring_drain(&g->ring, fn, arg);
}

int collector_client__drain(struct collector_client *g, collector_event_fn fn, void *arg)
{
	return fake_ring_drain(&g->ring, fn, arg);
}

uint64_t collector_client__drain_deadline_ns(const struct collector_client *g)
{
	(void)g;
	return SECOND_NS;
}

void collector_client__begin(struct collector_client *g)
{
	(void)g;
}

void collector_client__stop(struct collector_client *g, bool gone, collector_event_fn fn, void *arg)
{
	(void)gone;
	g->stopped = true;
	if (fn)
		(void)fake_ring_drain(&g->ring, fn, arg);
}

bool collector_client__has_exited(const struct collector_client *g)
{
	(void)g;
	return false;
}

void collector_client__timed(const struct collector_client *g, struct callback_cost *cost)
{
	(void)g, (void)cost;
}

uint64_t collector_client__thread_cpu_ns(const struct collector_client *g)
{
	(void)g;
	return 0;
}

uint64_t collector_client__take_held_ns(struct collector_client *g)
{
	(void)g;
	return 0;
}

void collector_client__losses(const struct collector_client *g, uint64_t losses[GP_LOSS_NR])
{
	(void)g, (void)losses;
}

void collector_client__free(struct collector_client *g, const struct target_process *p, bool gone)
{
	(void)p, (void)gone;
	buf__done(&g->ring);
	free(g);
}

#endif /* GP_UNIT_FAKE_SOURCES_H */
