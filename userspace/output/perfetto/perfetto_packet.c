/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Perfetto's packets. Each is written as a trace of one packet: concatenated traces are one trace.
 */
#include "output/perfetto/perfetto.h"

#include "output/format/protobuf_encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/hash.h"
#include "base/intern.h"

#include "perfetto.pb-c.h"

#define BLOCK_BYTES	   (1 << 20)
#define SEQUENCE	   1
#define STATE_CLEARED	   1
#define NEEDS_STATE	   2
#define MERGE_NOTHING	   2
#define UNIT_BYTES	   3
#define CLOCK_REALTIME_ID  1
#define CLOCK_MONOTONIC_ID 3
#define COUNTER_CPU_CLOCK  1

/* What texts are interned apart from each other. */
enum space { SPACE_CATEGORY, SPACE_NAME, SPACE_ARG, SPACE_TEXT, SPACE_NR };

/* New texts of one event: its category and name, names and values of its arguments. */
struct news {
	Perfetto__InternedName names[SPACE_NR][PERFETTO_ARGS_MAX];
	Perfetto__InternedName *name_pointers[SPACE_NR][PERFETTO_ARGS_MAX];
	Perfetto__InternedText texts[PERFETTO_ARGS_MAX];
	Perfetto__InternedText *text_pointers[PERFETTO_ARGS_MAX];
	size_t nr[SPACE_NR];
};

struct perfetto {
	struct sink *sink;
	struct intern *texts;
	struct hash iid_of[SPACE_NR];	/* interned text -> its number */
	struct hash known_of[SPACE_NR]; /* any text that stays -> the same */
	struct buf scratch, out;
	struct news news;
	int err;
};

void perfetto__send(struct perfetto *p, void *of)
{
	Perfetto__Trace trace = PERFETTO__TRACE__INIT;
	Perfetto__TracePacket *packet = of;

	packet->has_trusted_packet_sequence_id = true;
	packet->trusted_packet_sequence_id = SEQUENCE;
	trace.packet = &packet;
	trace.n_packet = 1;
	protobuf_encode(&trace, &p->out);
	if (p->out.nr >= BLOCK_BYTES)
		(void)perfetto__flush(p);
}

int perfetto__flush(struct perfetto *p)
{
	p->err = p->err ? p->err : sink__drain(p->sink, &p->out, 0);
	buf__clear(&p->out);
	return p->err;
}

/* One line of UTF-8; never NULL. */
const char *perfetto__keep(struct perfetto *p, const char *text)
{
	const char *kept;

	buf__clear(&p->scratch);
	buf__line(&p->scratch, text);
	kept = intern__get(p->texts, p->scratch.bytes ? p->scratch.bytes : "", p->scratch.nr);
	if (!kept || buf__error(&p->scratch))
		p->err = -ENOMEM;
	return kept ? kept : "";
}

static void add_new(struct perfetto *p, enum space space, const char *text, uint64_t iid)
{
	size_t i = p->news.nr[space]++;

	if (space == SPACE_TEXT) {
		perfetto__interned_text__init(&p->news.texts[i]);
		p->news.texts[i].has_iid = p->news.texts[i].has_str = true;
		p->news.texts[i].iid = iid;
		p->news.texts[i].str.data = (uint8_t *)(uintptr_t)text;
		p->news.texts[i].str.len = strlen(text);
		p->news.text_pointers[i] = &p->news.texts[i];
		return;
	}
	perfetto__interned_name__init(&p->news.names[space][i]);
	p->news.names[space][i].has_iid = true;
	p->news.names[space][i].iid = iid;
	p->news.names[space][i].name = (char *)(uintptr_t)text;
	p->news.name_pointers[space][i] = &p->news.names[space][i];
}

/* The text's number; the reader is told with this event if it is new. */
static uint64_t iid_of_any(struct perfetto *p, enum space space, const char *text)
{
	const char *kept = perfetto__keep(p, text);
	const uint64_t *known = hash__find(&p->iid_of[space], (uintptr_t)kept);
	uint64_t iid = p->iid_of[space].nr + 1;

	if (known)
		return *known;
	if (hash__set(&p->iid_of[space], (uintptr_t)kept, iid))
		p->err = -ENOMEM;
	else
		add_new(p, space, kept, iid);
	return iid;
}

/* Of a text that stays where it is. */
static uint64_t iid_of(struct perfetto *p, enum space space, const char *text)
{
	const uint64_t *known = hash__find(&p->known_of[space], (uintptr_t)text);
	uint64_t iid;

	if (known)
		return *known;
	iid = iid_of_any(p, space, text);
	if (hash__set(&p->known_of[space], (uintptr_t)text, iid))
		p->err = -ENOMEM;
	return iid;
}

/* ---- tracks ---- */

void perfetto__track(struct perfetto *p, const struct perfetto_track *track)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackDescriptor d = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;
	Perfetto__ThreadDescriptor thread = PERFETTO__THREAD_DESCRIPTOR__INIT;
	Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
	char *name = (char *)(uintptr_t)perfetto__keep(p, track->name);
	char *cmdline = (char *)(uintptr_t)perfetto__keep(p, track->cmdline ? track->cmdline : "");

	d.has_uuid = true;
	d.uuid = track->uuid;
	d.has_parent_uuid = track->parent != 0;
	d.parent_uuid = track->parent;
	process.has_pid = thread.has_pid = thread.has_tid = counter.has_unit = true;
	process.pid = thread.pid = (int32_t)track->pid;
	process.process_name = thread.thread_name = name;
	process.cmdline = &cmdline;
	process.n_cmdline = 1;
	thread.tid = (int32_t)track->tid;
	counter.unit = UNIT_BYTES;
	d.process = track->is_process ? &process : NULL;
	d.thread = track->is_thread ? &thread : NULL;
	d.counter = track->is_counter ? &counter : NULL;
	if (!track->is_process && !track->is_thread) {
		d.name = name;
		/* Two rows of one name stay two. */
		d.has_sibling_merge_behavior = true;
		d.sibling_merge_behavior = MERGE_NOTHING;
	}
	packet.track_descriptor = &d;
	perfetto__send(p, &packet);
}

/* ---- events ---- */

void perfetto_u64(struct perfetto_event *e, const char *name, uint64_t value)
{
	if (e->args_nr < PERFETTO_ARGS_MAX)
		e->args[e->args_nr++] =
			(struct perfetto_arg){.name = name, .kind = PERFETTO_U64, .u64 = value};
}

void perfetto_i64(struct perfetto_event *e, const char *name, int64_t value)
{
	if (e->args_nr < PERFETTO_ARGS_MAX)
		e->args[e->args_nr++] =
			(struct perfetto_arg){.name = name, .kind = PERFETTO_I64, .i64 = value};
}

void perfetto_text(struct perfetto_event *e, const char *name, const char *value)
{
	if (e->args_nr < PERFETTO_ARGS_MAX)
		e->args[e->args_nr++] =
			(struct perfetto_arg){.name = name, .kind = PERFETTO_TEXT, .text = value};
}

static void set_arg(struct perfetto *p, Perfetto__DebugAnnotation *a,
		    const struct perfetto_arg *arg)
{
	perfetto__debug_annotation__init(a);
	a->has_name_iid = true;
	a->name_iid = iid_of(p, SPACE_ARG, arg->name);
	a->has_uint_value = arg->kind == PERFETTO_U64;
	a->has_int_value = arg->kind == PERFETTO_I64;
	a->has_string_value_iid = arg->kind == PERFETTO_TEXT;
	if (arg->kind == PERFETTO_U64)
		a->uint_value = arg->u64;
	else if (arg->kind == PERFETTO_I64)
		a->int_value = arg->i64;
	else
		a->string_value_iid = iid_of(p, SPACE_TEXT, arg->text);
}

static void set_interned(struct perfetto *p, Perfetto__InternedData *d)
{
	const size_t *nr = p->news.nr;

	d->event_categories = p->news.name_pointers[SPACE_CATEGORY];
	d->n_event_categories = nr[SPACE_CATEGORY];
	d->event_names = p->news.name_pointers[SPACE_NAME];
	d->n_event_names = nr[SPACE_NAME];
	d->debug_annotation_names = p->news.name_pointers[SPACE_ARG];
	d->n_debug_annotation_names = nr[SPACE_ARG];
	d->debug_annotation_string_values = p->news.text_pointers;
	d->n_debug_annotation_string_values = nr[SPACE_TEXT];
}

static void set_names(struct perfetto *p, Perfetto__TrackEvent *t, const struct perfetto_event *e,
		      uint64_t *category)
{
	if (!e->name)
		return;
	*category = iid_of(p, SPACE_CATEGORY, e->category);
	t->category_iids = category;
	t->n_category_iids = 1;
	t->has_name_iid = true;
	t->name_iid = iid_of(p, SPACE_NAME, e->name);
}

void perfetto__event(struct perfetto *p, const struct perfetto_event *e)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackEvent t = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__InternedData interned = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__DebugAnnotation args[PERFETTO_ARGS_MAX], *pointers[PERFETTO_ARGS_MAX];
	uint64_t category;

	memset(p->news.nr, 0, sizeof(p->news.nr));
	t.has_type = t.has_track_uuid = true;
	t.type = e->type;
	t.track_uuid = e->track;
	t.has_counter_value = e->type == PERFETTO_COUNTER;
	t.counter_value = e->value;
	t.flow_ids = (uint64_t *)(uintptr_t)e->flows;
	t.n_flow_ids = e->flows_nr;
	set_names(p, &t, e, &category);
	for (size_t i = 0; i < e->args_nr; i++) {
		set_arg(p, &args[i], &e->args[i]);
		pointers[i] = &args[i];
	}
	t.debug_annotations = pointers;
	t.n_debug_annotations = e->args_nr;
	set_interned(p, &interned);
	packet.interned_data = &interned;
	packet.track_event = &t;
	packet.has_timestamp = packet.has_sequence_flags = true;
	packet.timestamp = e->time_ns;
	packet.sequence_flags = NEEDS_STATE;
	perfetto__send(p, &packet);
}

/* ---- the whole ---- */

static void send_first(struct perfetto *p, const struct timeline *t)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
	Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	Perfetto__Clock clocks[2] = {PERFETTO__CLOCK__INIT, PERFETTO__CLOCK__INIT};
	Perfetto__Clock *pointers[2] = {&clocks[0], &clocks[1]};
	Perfetto__PerfSampleDefaults samples = PERFETTO__PERF_SAMPLE_DEFAULTS__INIT;
	Perfetto__Timebase timebase = PERFETTO__TIMEBASE__INIT;

	for (int i = 0; i < 2; i++)
		clocks[i].has_clock_id = clocks[i].has_timestamp = true;
	clocks[0].clock_id = CLOCK_MONOTONIC_ID;
	clocks[0].timestamp = t->start_ns;
	clocks[1].clock_id = CLOCK_REALTIME_ID;
	clocks[1].timestamp = t->start_ns + t->realtime_offset_ns;
	snapshot.clocks = pointers;
	/* Without the second one there is nothing to convert. */
	snapshot.n_clocks = t->realtime_offset_ns ? 2 : 1;
	snapshot.has_primary_trace_clock = defaults.has_timestamp_clock_id = true;
	snapshot.primary_trace_clock = defaults.timestamp_clock_id = CLOCK_MONOTONIC_ID;
	timebase.has_frequency = timebase.has_counter = true;
	timebase.frequency = (uint64_t)(timeline__sample_hz(t) + 0.5);
	timebase.counter = COUNTER_CPU_CLOCK;
	samples.timebase = &timebase;
	if (timebase.frequency)
		defaults.perf_sample_defaults = &samples;
	packet.clock_snapshot = &snapshot;
	packet.trace_packet_defaults = &defaults;
	packet.has_sequence_flags = true;
	packet.sequence_flags = STATE_CLEARED;
	perfetto__send(p, &packet);
}

struct perfetto *perfetto__new(struct sink *s, const struct timeline *t)
{
	struct perfetto *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->sink = s;
	p->texts = intern__new();
	if (!p->texts) {
		perfetto__free(p);
		return NULL;
	}
	send_first(p, t);
	return p;
}

void perfetto__free(struct perfetto *p)
{
	if (!p)
		return;
	intern__free(p->texts);
	for (int i = 0; i < SPACE_NR; i++) {
		hash__done(&p->iid_of[i]);
		hash__done(&p->known_of[i]);
	}
	buf__done(&p->scratch);
	buf__done(&p->out);
	free(p);
}
