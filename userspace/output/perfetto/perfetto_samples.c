/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Samples in Perfetto's trace. A thread on a CPU is a sample of perf's, from which the viewer makes
 * flame graphs. A waiting thread is a slice from the first to the last sample of that wait, or a
 * mark if there was one sample. Stacks and their frames are interned by our own ids.
 */
#include "output/format/stack_text.h"
#include "output/perfetto/perfetto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"

#include "perfetto.pb-c.h"

#define MODE_KERNEL	 1
#define MODE_USER	 2
#define ERROR_UNKNOWN	 0
#define ERROR_MAX_FRAMES 6
#define NEEDS_STATE	 2
#define PYTHON_MODULE	 "[python]"

struct samples {
	struct perfetto *p;
	const struct timeline *t;
	struct bits rows;	/* threads whose waits have a row */
	struct bits callstacks; /* of timeline.sampled_stacks: told */
	struct bits frames;	/* told */
	struct hash functions;	/* text, kept -> its number */
	struct hash mappings;	/* module, kept -> its number */
	struct buf text;
	int err;
};

static void samples__done(struct samples *s)
{
	bits__done(&s->rows);
	bits__done(&s->callstacks);
	bits__done(&s->frames);
	hash__done(&s->functions);
	hash__done(&s->mappings);
	buf__done(&s->text);
}

static void report(struct samples *s, Perfetto__InternedData *data)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	packet.interned_data = data;
	packet.has_sequence_flags = true;
	packet.sequence_flags = NEEDS_STATE;
	perfetto__send(s->p, &packet);
}

/* True the first time. */
static bool is_new(struct samples *s, struct bits *reported, size_t i)
{
	if (s->err || bits__has(reported, i))
		return false;
	s->err = bits__set(reported, i);
	return !s->err;
}

/* The number of a text, a new one (*ret_new) if it was not known. */
static uint64_t number(struct samples *s, struct hash *numbers, const char *kept, bool *ret_new)
{
	const uint64_t *known = hash__find(numbers, (uintptr_t)kept);
	uint64_t iid = numbers->nr + 1;

	*ret_new = !known;
	if (known)
		return *known;
	if (hash__set(numbers, (uintptr_t)kept, iid))
		s->err = -ENOMEM;
	return iid;
}

static void set_text(Perfetto__InternedText *to, uint64_t iid, const char *text)
{
	perfetto__interned_text__init(to);
	to->has_iid = to->has_str = true;
	to->iid = iid;
	to->str.data = (uint8_t *)(uintptr_t)text;
	to->str.len = strlen(text);
}

static uint64_t function_of(struct samples *s, const struct recording_frame *f)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__InternedText name, *pointer = &name;
	const char *kept;
	uint64_t iid;
	bool fresh;

	buf__clear(&s->text);
	if (f->kind == RECORDING_FRAME_PYTHON)
		buf__printf(&s->text, "%s (%s:%u)", f->function, f->file, f->line);
	else
		stack_text_function(&s->text, f);
	kept = perfetto__keep(s->p, s->text.bytes ? s->text.bytes : "");
	iid = number(s, &s->functions, kept, &fresh);
	if (!fresh)
		return iid;
	set_text(&name, iid, kept);
	data.function_names = &pointer;
	data.n_function_names = 1;
	report(s, &data);
	return iid;
}

static uint64_t mapping_of(struct samples *s, const struct recording_frame *f)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__InternedText path, build_id, *path_pointer = &path, *build_pointer = &build_id;
	Perfetto__Mapping mapping = PERFETTO__MAPPING__INIT, *pointer = &mapping;
	const char *module = f->kind == RECORDING_FRAME_PYTHON ? PYTHON_MODULE : f->module;
	const char *kept = perfetto__keep(s->p, *module ? module : "[not known]");
	uint64_t iid;
	bool fresh;

	iid = number(s, &s->mappings, kept, &fresh);
	if (!fresh)
		return iid;
	set_text(&path, iid, kept);
	set_text(&build_id, iid, f->kind == RECORDING_FRAME_PYTHON ? "" : f->build_id);
	mapping.has_iid = mapping.has_build_id = true;
	mapping.iid = mapping.build_id = iid;
	mapping.path_string_ids = &iid;
	mapping.n_path_string_ids = 1;
	data.mapping_paths = &path_pointer;
	data.build_ids = &build_pointer;
	data.mappings = &pointer;
	data.n_mapping_paths = data.n_build_ids = data.n_mappings = 1;
	report(s, &data);
	return iid;
}

/* Frames have the recording's ids, plus one. */
static void report_frame(struct samples *s, uint32_t id)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__Frame frame = PERFETTO__FRAME__INIT, *pointer = &frame;
	struct recording_frame f;

	if (!is_new(s, &s->frames, id))
		return;
	f = recording__frame(s->t->recording, id);
	frame.has_iid = frame.has_function_name_id = frame.has_mapping_id = true;
	frame.iid = (uint64_t)id + 1;
	frame.function_name_id = function_of(s, &f);
	frame.mapping_id = mapping_of(s, &f);
	frame.has_rel_pc = true;
	frame.rel_pc = f.kind == RECORDING_FRAME_PYTHON ? 0 : f.address;
	data.frames = &pointer;
	data.n_frames = 1;
	report(s, &data);
}

/* Stacks have the timeline's numbers, plus one. */
static void report_callstack(struct samples *s, uint32_t i)
{
	const struct tl_sampled_stack *stack = &s->t->sampled_stacks.items[i];
	CLEANUP(cleanup_free) uint64_t *frames = NULL;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__Callstack callstack = PERFETTO__CALLSTACK__INIT, *pointer = &callstack;

	if (!is_new(s, &s->callstacks, i))
		return;
	frames = calloc(stack->nr, sizeof(*frames));
	if (!frames) {
		s->err = -ENOMEM;
		return;
	}
	for (uint32_t k = 0; k < stack->nr; k++) {
		report_frame(s, stack->frames[k]);
		frames[stack->nr - 1 - k] = (uint64_t)stack->frames[k] + 1;
	}
	callstack.has_iid = true;
	callstack.iid = (uint64_t)i + 1;
	callstack.frame_ids = frames;
	callstack.n_frame_ids = stack->nr;
	data.callstacks = &pointer;
	data.n_callstacks = 1;
	report(s, &data);
}

/* ---- threads on a CPU ---- */

static void put_moment(struct samples *s, const struct tl_sample *x)
{
	const struct tl_sampled_stack *stack = &s->t->sampled_stacks.items[x->stack];
	const struct tl_thread *thread = &s->t->threads.items[x->thread];
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__PerfSample sample = PERFETTO__PERF_SAMPLE__INIT;

	if (stack->nr)
		report_callstack(s, x->stack);
	sample.has_pid = sample.has_tid = sample.has_cpu_mode = true;
	sample.pid = (uint32_t)s->t->processes.items[thread->process].row_pid;
	sample.tid = thread->tid;
	sample.cpu_mode = x->flags & GP_SAMPLE_KERNEL ? MODE_KERNEL : MODE_USER;
	sample.has_callstack_iid = stack->nr;
	sample.callstack_iid = (uint64_t)x->stack + 1;
	sample.has_unwind_error = !stack->nr || tl_stack_is_cut(stack->flags);
	sample.unwind_error = stack->flags & GP_STACK_TRUNCATED ? ERROR_MAX_FRAMES : ERROR_UNKNOWN;
	packet.perf_sample = &sample;
	packet.has_timestamp = packet.has_sequence_flags = true;
	packet.timestamp = x->start_ns;
	packet.sequence_flags = NEEDS_STATE;
	perfetto__send(s->p, &packet);
}

/* ---- threads on none ---- */

static const char *stack_text(struct samples *s, const struct tl_sampled_stack *stack)
{
	const struct tl_stack of = {
		.id = stack->id, .flags = stack->flags, .nr = stack->nr, .frames = stack->frames};

	buf__clear(&s->text);
	stack_text_all(&s->text, s->t->recording, &of);
	return perfetto__keep(s->p, s->text.bytes ? s->text.bytes : "");
}

static void put_row(struct samples *s, uint32_t thread, uint64_t row, uint64_t parent)
{
	const struct perfetto_track track = {.uuid = row, .parent = parent, .name = "off CPU"};

	if (is_new(s, &s->rows, thread))
		perfetto__track(s->p, &track);
}

static void put_wait(struct samples *s, const struct tl_sample *x, uint64_t row)
{
	const struct tl_sampled_stack *stack = &s->t->sampled_stacks.items[x->stack];
	struct perfetto_event e = {
		.type = x->end_ns > x->start_ns ? PERFETTO_BEGIN : PERFETTO_INSTANT,
		.track = row,
		.time_ns = x->start_ns,
		.category = "sample",
		.name = timeline__activity(s->t, x),
	};

	perfetto_u64(&e, "Samples", x->nr);
	perfetto_u64(&e, "Estimated ns", x->weight_ns);
	if (stack->ops_nr)
		perfetto_text(&e, "Operator", s->t->stack_ops.items[stack->ops_at].name);
	if (stack->nr)
		perfetto_text(&e, "Call stack", stack_text(s, stack));
	perfetto__event(s->p, &e);
	if (e.type == PERFETTO_INSTANT)
		return;
	e = (struct perfetto_event){.type = PERFETTO_END, .track = row, .time_ns = x->end_ns};
	perfetto__event(s->p, &e);
}

int perfetto_samples(struct perfetto *p, const struct timeline *t)
{
	CLEANUP(samples__done) struct samples s = {.p = p, .t = t};

	for (size_t i = 0; i < t->samples.nr && !s.err; i++) {
		const struct tl_sample *x = &t->samples.items[i];
		uint64_t row;

		if (x->flags & GP_SAMPLE_RUNNING) {
			put_moment(&s, x);
			continue;
		}
		row = perfetto_number(PERFETTO_OF_WAITS, x->thread);
		put_row(&s, x->thread, row, perfetto_number(PERFETTO_OF_THREAD, x->thread));
		put_wait(&s, x, row);
	}
	return s.err ? s.err : buf__error(&s.text);
}
