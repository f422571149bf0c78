/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The middle of a capture without a kernel and without a process that is traced: fake sources of
 * events, and real recordings.
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

#include "capture/control/control.h"
#include "capture/control/controller.h"
#include "capture/metadata.h"
#include "capture/process/process_set.h"
#include "common/clock.h"
#include "fake_sources.h"
#include "sample.h"

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
