/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The middle of a capture without a kernel and without a process that is traced: a probe session
 * and collectors that do as the test says, and real recordings. It stands in for
 * probe/session/session.c and capture/collector/client.c, so it is in a header: few tests want
 * that.
 */
#ifndef GP_UNIT_FAKE_CAPTURE_H
#define GP_UNIT_FAKE_CAPTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "capture/collector/client.h"
#include "capture/control/control.h"
#include "capture/control/controller.h"
#include "capture/metadata.h"
#include "capture/process/process_set.h"
#include "probe/session/session.h"
#include "sample.h"

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

/* ---- a capture of them ---- */

#define FAKE_RECORDINGS 8

struct fake {
	struct capture_options options;
	struct capture_run run;
	struct probe_session *probes;
	struct recording_set recordings;
	struct symbol_tables symbols;
	struct process_set processes;
	struct event_writer writer;
	struct control control;
	struct controllers controllers;
	struct metadata metadata;
	struct traced_process *process;	    /* number 0, this one */
	struct collector_client *collector; /* in it */
};

/* The path of a fake's recording `nr`, as capture_options.recording_path. */
static inline char *fake_path(void *arg, unsigned int nr)
{
	char name[32];

	(void)arg;
	(void)snprintf(name, sizeof(name), "fake%u.gpuprof", nr);
	return strdup(sample_path(name));
}

static inline void fake_join(struct fake *f, uint32_t features)
{
	struct collector_meanwhile none = {0};
	struct traced_process *m = calloc(1, sizeof(*m));
	struct target_process *p = NULL;

	assert_non_null(m);
	assert_int_equal(target_process__new(getpid(), NULL, &p), 0);
	assert_int_equal(traced_process__init(m, p, NULL), 0);
	assert_int_equal(process_table__add(&f->processes.table, m), 0);
	m->job.rank = m->job.world_size = -1;
	assert_int_equal(collector_client__new(p, m->index, features, false, NULL, none, NULL,
					       &m->collector),
			 0);
	f->process = m;
	f->collector = m->collector;
}

/* Not started; its options may be changed until fake_start(). The collector has `features`. */
static inline struct fake *fake_new(uint32_t features)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->options.recording_path = fake_path;
	f->options.ops = true;
	f->recordings.options = f->processes.options = f->writer.options = f->control.options =
		&f->options;
	f->recordings.run = f->processes.run = f->control.run = &f->run;
	f->processes.recordings = f->writer.recordings = f->control.recordings = &f->recordings;
	f->processes.symbols = f->writer.symbols = &f->symbols;
	f->control.processes = &f->processes;
	f->writer.threads = &f->processes.threads;
	f->control.counts = &f->writer.counts;
	assert_int_equal(probe_session__new(NULL, NULL, &f->probes), 0);
	f->processes.probes = f->writer.probes = f->control.probes = f->probes;
	assert_int_equal(metadata__init(&f->metadata, &f->control), 0);
	f->recordings.hooks = (struct recording_hooks){
		.describe = metadata__describe,
		.write_losses = metadata__write_losses,
		.finish = metadata__finish,
		.finished = metadata__finished,
		.arg = &f->metadata,
	};
	assert_int_equal(symbol_tables__init(&f->symbols, &f->recordings.segments, &f->options), 0);
	f->recordings.keeps = true;
	fake_join(f, features);
	return f;
}

/* As capture__start() does. */
static inline void fake_start(struct fake *f)
{
	f->run.start_ns = clock_now_ns();
	if (!capture_is_by_steps(&f->options)) {
		assert_int_equal(recording_set__open(&f->recordings, NULL), 0);
		assert_int_equal(recording_set__begin(&f->recordings, f->run.start_ns), 0);
	}
	f->run.started = true;
	controllers__prepare(&f->controllers);
	cost_start(&f->control);
	assert_int_equal(controllers__start(&f->controllers), 0);
}

static inline void fake_poll(struct fake *f)
{
	controllers__poll(&f->controllers, &f->run.failed);
}

/* As capture__stop() does. */
static inline void fake_stop(struct fake *f)
{
	struct segments *s = &f->recordings.segments;

	f->run.end_ns = clock_now_ns();
	f->run.stopped = true;
	if (s->draining)
		assert_int_equal(recording_set__end(&f->recordings, &s->draining), 0);
	assert_int_equal(controllers__end(&f->controllers), 0);
	if (s->current && s->current->start_ns) {
		s->current->end_ns = f->run.end_ns;
		assert_int_equal(recording_set__end(&f->recordings, &s->current), 0);
	}
}

static inline void fake_free(struct fake *f)
{
	recording_set__done(&f->recordings);
	controllers__done(&f->controllers);
	process_set__done(&f->processes);
	probe_session__free(f->probes);
	metadata__done(&f->metadata);
	symbol_tables__done(&f->symbols);
	free(f);
}

/* ---- what recordings say ---- */

/* Events of one kind in recording `nr`, and the last of them. */
struct fake_seen {
	uint8_t kind;
	size_t nr;
	union {
		struct gp_ev_head head;
		char bytes[512];
	} last;
	char name[64]; /* of the last, where it is an op */
};

struct fake_reading {
	struct fake_seen *seen;
	struct recording *r;
};

static int fake_see(const void *event, size_t bytes, void *arg)
{
	const struct fake_reading *f = arg;
	const struct gp_ev_head *head = event;
	const struct gp_ev_op *op = event;

	if (head->kind != f->seen->kind)
		return 0;
	f->seen->nr++;
	memcpy(&f->seen->last, event,
	       bytes < sizeof(f->seen->last) ? bytes : sizeof(f->seen->last));
	if (head->kind == GP_EV_OP)
		(void)snprintf(f->seen->name, sizeof(f->seen->name), "%s",
			       recording__name(f->r, op->name_id, NULL));
	return 0;
}

static inline struct fake_seen fake_read(unsigned int nr, uint8_t kind)
{
	struct fake_seen seen = {.kind = kind};
	char *path = fake_path(NULL, nr);
	struct fake_reading f = {.seen = &seen};

	assert_int_equal(recording__open(path, NULL, &f.r), 0);
	assert_null(recording__damage(f.r));
	assert_int_equal(recording__each_event(f.r, fake_see, &f), 0);
	recording__free(f.r);
	free(path);
	return seen;
}

#endif /* GP_UNIT_FAKE_CAPTURE_H */
