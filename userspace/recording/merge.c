/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Merges part by part, in the order in which they began, so that the events of a thread that is in
 * two parts stay in order of time. Whatever an event refers to is written right before the first
 * event that needs it.
 */
#include "recording/merge.h"

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"
#include "recording/event_kinds.h"
#include "recording/format.h"
#include "recording/merge_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PROCESSES_MAX 65536U
/* For the high halves of instances. The top bit stays free for whoever numbers ops inside the
 * process. */
#define THREADS_MAX 0x80000000U

static void merge__done(struct merge *m)
{
	for (size_t i = 0; i < m->parts.nr; i++) {
		struct part *p = &m->parts.items[i];

		hash__done(&p->processes);
		hash__done(&p->names);
		hash__done(&p->own.frames);
		hash__done(&p->own.stacks);
		hash__done(&p->own.inputs);
		hash__done(&p->own.threads);
		bits__done(&p->own.emitted_stacks);
		bits__done(&p->own.emitted_inputs);
	}
	vec_done(&m->parts);
	vec_done(&m->losses);
	intern__free(m->texts);
	hash__done(&m->process_of);
	hash__done(&m->name_of);
	hash__done(&m->loss_of);
}

static int too_many(struct merge *m, const char *what)
{
	return reason_set(m->why, -ENOSPC, "the recordings together have too many %s for one",
			  what);
}

/* ---- clocks ---- */

static void part__init(struct part *p, struct recording *rec, int64_t shift_ns)
{
	const char *boot_id = recording__meta(rec, "boot_id");
	uint64_t realtime_ns;

	*p = (struct part){.rec = rec, .boot_id = boot_id ? boot_id : ""};
	recording__window(rec, &p->start_ns, &p->end_ns, &realtime_ns);
	p->to_realtime_ns = (int64_t)(realtime_ns - p->start_ns + (uint64_t)shift_ns);
}

/* Sets what to add to each part's times. The result has the clock of the machine that has been up
 * longest: its distance to the time of day is the smallest, so no shift is negative. */
static void set_shifts(struct merge *m)
{
	int64_t least_ns = INT64_MAX;

	if (merge_one_clock(m))
		return;
	for (size_t i = 0; i < m->parts.nr; i++)
		if (m->parts.items[i].to_realtime_ns < least_ns)
			least_ns = m->parts.items[i].to_realtime_ns;
	for (size_t i = 0; i < m->parts.nr; i++) {
		struct part *p = &m->parts.items[i];

		p->shift_ns = (int64_t)((uint64_t)p->to_realtime_ns - (uint64_t)least_ns);
		p->start_ns += (uint64_t)p->shift_ns;
		p->end_ns += (uint64_t)p->shift_ns;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static bool has_numbers_of_capture(const struct recording *r)
{
	const char *mode = recording__meta(r, "mode");

	return (!mode || strcmp(mode, "sample") != 0) && !recording__meta(r, "merged");
}

/* Gives parts of one capture the same numbers. Exceptions are parts of samples, which reuse their
 * numbers, and merged ones, which were numbered anew. The parts must not move from here on. */
static void set_numbers(struct merge *m)
{
	for (size_t i = 0; i < m->parts.nr; i++) {
		struct part *p = &m->parts.items[i];
		const char *id = recording__meta(p->rec, "capture_id");

		if (!has_numbers_of_capture(p->rec))
			id = NULL;
		p->numbers = &p->own;
		for (size_t j = 0; id && j < i; j++) {
			const char *other = recording__meta(m->parts.items[j].rec, "capture_id");

			if (!other || strcmp(other, id) != 0 ||
			    !has_numbers_of_capture(m->parts.items[j].rec))
				continue;
			p->numbers = m->parts.items[j].numbers;
			break;
		}
	}
}

static int write_window(struct merge *m)
{
	const struct part *first = &m->parts.items[0];
	uint64_t end_ns = 0;

	for (size_t i = 0; i < m->parts.nr; i++)
		if (m->parts.items[i].end_ns > end_ns)
			end_ns = m->parts.items[i].end_ns;
	return recording_writer__window(m->w, first->start_ns, end_ns,
					first->start_ns + (uint64_t)first->to_realtime_ns -
						(uint64_t)first->shift_ns);
}

/* ---- processes ---- */

static const char *identity(struct merge *m, const struct recording_process *p)
{
	char text[256];

	/* Without a boot id two parts cannot be known to hold the same process. */
	(void)snprintf(text, sizeof(text), "%s %d %llu %td", m->part->boot_id, p->pid,
		       (unsigned long long)p->start_boot_ns,
		       *m->part->boot_id ? 0 : m->part - m->parts.items + 1);
	return intern__str(m->texts, text);
}

static bool overlaps_earlier(const struct merge *m, uint32_t number)
{
	for (const struct part *p = m->parts.items; p < m->part; p++) {
		if (p->end_ns <= m->part->start_ns)
			continue;
		for (size_t i = 0; i < p->processes.cap; i++)
			if (p->processes.used[i] && p->processes.slots[i].value == number)
				return true;
	}
	return false;
}

static int add_process(struct merge *m, const struct recording_process *p)
{
	const char *id = identity(m, p);
	struct recording_process copy = *p;
	const uint64_t *known;

	if (!id)
		return -ENOMEM;
	known = hash__find(&m->process_of, (uintptr_t)id);
	if (known && overlaps_earlier(m, (uint32_t)*known))
		return reason_set(m->why, -EINVAL,
				  "two of the recordings hold process %d at the same time: merge "
				  "only one of them",
				  p->pid);
	copy.index = known ? (uint32_t)*known : m->processes_nr;
	if (copy.index >= PROCESSES_MAX)
		return too_many(m, "processes");
	m->processes_nr += !known;
	if (hash__set(&m->process_of, (uintptr_t)id, copy.index) ||
	    hash__set(&m->part->processes, p->index, copy.index))
		return -ENOMEM;
	return recording_writer__process(m->w, &copy);
}

/* A process that nothing describes gets a number of its own. */
static int move_process(struct merge *m, uint16_t *process)
{
	const uint64_t *known = hash__find(&m->part->processes, *process);

	if (!known) {
		if (m->processes_nr >= PROCESSES_MAX)
			return too_many(m, "processes");
		if (hash__set(&m->part->processes, *process, m->processes_nr++))
			return -ENOMEM;
		known = hash__find(&m->part->processes, *process);
	}
	*process = (uint16_t)*known;
	return 0;
}

/* ---- what events refer to ---- */

/* Finds the result's number of a name, and writes the name when it is new. 0 or -errno. */
static int number_name(struct merge *m, const char *name, const char *overload,
		       uint32_t *ret_number)
{
	const char *both[] = {intern__str(m->texts, name), intern__str(m->texts, overload)};
	const char *key;
	const uint64_t *known;
	int err;

	/* Equal interned texts have equal addresses. */
	key = both[0] && both[1] ? intern__get(m->texts, (const char *)both, sizeof(both)) : NULL;
	if (!key)
		return -ENOMEM;
	known = hash__find(&m->name_of, (uintptr_t)key);
	*ret_number = known ? (uint32_t)*known : m->names_nr + 1;
	if (known)
		return 0;
	if (*ret_number >= RECORDING_NAME_IDS)
		return too_many(m, "names");
	err = recording_writer__name(m->w, ++m->names_nr, name, overload);
	return err ? err : hash__set(&m->name_of, (uintptr_t)key, m->names_nr);
}

static int move_name(struct merge *m, uint32_t *id)
{
	const uint64_t *known = hash__find(&m->part->names, *id);
	const char *name, *overload;
	uint32_t number = 0;
	int err;

	if (known) {
		*id = (uint32_t)*known;
		return 0;
	}
	name = recording__name(m->part->rec, *id, &overload);
	err = number_name(m, name, overload, &number);
	err = err ? err : hash__set(&m->part->names, *id, number);
	*id = number;
	return err;
}

static int move_frame(struct merge *m, uint32_t *id)
{
	struct hash *frames = &m->part->numbers->frames;
	const uint64_t *known = hash__find(frames, *id);
	uint32_t was, name, scope;
	const struct recording_line *lines;
	struct recording_frame frame;
	size_t lines_nr;
	int err;

	if (known) {
		*id = (uint32_t)*known;
		return 0;
	}
	if (m->frames_nr + 1 >= RECORDING_STACK_IDS)
		return too_many(m, "frames");
	frame = recording__frame(m->part->rec, *id);
	if (hash__set(frames, *id, ++m->frames_nr))
		return -ENOMEM;
	was = *id;
	*id = m->frames_nr;
	err = recording_writer__frame(m->w, *id, &frame);
	lines = recording__frame_lines(m->part->rec, was, &lines_nr);
	if (!err && lines)
		err = recording_writer__frame_lines(m->w, *id, lines, lines_nr);
	if (err || !recording__frame_op(m->part->rec, was, &name, &scope))
		return err;
	err = move_name(m, &name);
	return err ? err : recording_writer__frame_op(m->w, *id, name, scope);
}

/* Writes a stack. One that its recording lacks stays out of the result, unless another recording of
 * that capture has it. */
static int emit_stack(struct merge *m, uint32_t id, uint32_t number)
{
	uint32_t moved[RECORDING_STACK_FRAMES], flags;
	const uint32_t *frames;
	size_t nr, kept = 0;

	frames = recording__stack(m->part->rec, id, &nr, &flags);
	for (size_t i = 0; i < nr; i++) {
		uint32_t *frame = &moved[kept];
		int err;

		/* Inlined functions come with the lines of the frame that they are in. */
		if (frames[i] >= RECORDING_STACK_IDS)
			continue;
		*frame = frames[i];
		err = *frame ? move_frame(m, frame) : 0;
		if (err)
			return err;
		kept++;
	}
	if (!frames)
		return 0;
	if (bits__set(&m->part->numbers->emitted_stacks, number))
		return -ENOMEM;
	return recording_writer__stack(m->w, number, flags, moved, kept);
}

/* Replaces *id by its number in `numbers`; a new id gets the next number. 0 or -errno. */
static int number_of(struct merge *m, struct hash *numbers, uint32_t *nr, uint32_t end,
		     const char *what, uint32_t *id)
{
	const uint64_t *known = hash__find(numbers, *id);

	if (known) {
		*id = (uint32_t)*known;
		return 0;
	}
	if (*nr + 1 >= end)
		return too_many(m, what);
	if (hash__set(numbers, *id, ++*nr))
		return -ENOMEM;
	*id = *nr;
	return 0;
}

static int move_stack(struct merge *m, uint32_t *id)
{
	struct numbers *n = m->part->numbers;
	uint32_t theirs = *id;
	int err = number_of(m, &n->stacks, &m->stacks_nr, RECORDING_STACK_IDS, "stacks", id);

	return err || bits__has(&n->emitted_stacks, *id) ? err : emit_stack(m, theirs, *id);
}

static int move_inputs(struct merge *m, uint32_t *id)
{
	if (*id == GP_INPUTS_LOST)
		return 0;
	return number_of(m, &m->part->numbers->inputs, &m->inputs_nr, GP_INPUTS_LOST,
			 "lists of inputs", id);
}

/* Whether the result already has this list of inputs. */
static bool is_emitted(struct merge *m, const void *event, int *err)
{
	struct bits *emitted = &m->part->numbers->emitted_inputs;
	const struct gp_ev_inputs *ev = event;

	if (ev->head.kind != GP_EV_INPUTS)
		return false;
	if (bits__has(emitted, ev->inputs_id))
		return true;
	*err = bits__set(emitted, ev->inputs_id);
	return false;
}

/* An instance is the thread's number, then a number that counts up on that thread. */
static int move_instance(struct merge *m, uint64_t *instance)
{
	struct hash *threads = &m->part->numbers->threads;
	const uint64_t *known = hash__find(threads, *instance >> 32);

	if (!known) {
		if (m->threads_nr + 1 >= THREADS_MAX)
			return too_many(m, "threads");
		if (hash__set(threads, *instance >> 32, ++m->threads_nr))
			return -ENOMEM;
		known = hash__find(threads, *instance >> 32);
	}
	*instance = *known << 32 | (uint32_t)*instance;
	return 0;
}

/* ---- events ---- */

static int move_id(struct merge *m, char *event, size_t bytes, uint16_t at,
		   int (*move)(struct merge *, uint32_t *))
{
	uint32_t id;
	int err;

	if (!at || bytes < at + sizeof(id))
		return 0;
	memcpy(&id, event + at, sizeof(id));
	err = id ? move(m, &id) : 0;
	memcpy(event + at, &id, sizeof(id));
	return err;
}

static int move_instances(struct merge *m, char *event, const uint16_t at[EVENT_FIELDS_MAX])
{
	for (int i = 0; i < EVENT_FIELDS_MAX && at[i]; i++) {
		uint64_t instance;
		int err;

		memcpy(&instance, event + at[i], sizeof(instance));
		err = instance ? move_instance(m, &instance) : 0;
		if (err)
			return err;
		memcpy(event + at[i], &instance, sizeof(instance));
	}
	return 0;
}

/* Adds the part's shift. False if the sum overflows. */
static bool move_time(const struct merge *m, char *event, size_t at)
{
	uint64_t time_ns, moved_ns;

	memcpy(&time_ns, event + at, sizeof(time_ns));
	moved_ns = time_ns ? time_ns + (uint64_t)m->part->shift_ns : 0;
	memcpy(event + at, &moved_ns, sizeof(moved_ns));
	return moved_ns >= time_ns;
}

static bool move_times(const struct merge *m, char *event, const struct event_kind *kind)
{
	bool fits = move_time(m, event, offsetof(struct gp_ev_head, time_ns));

	if (kind->start_ns)
		fits = move_time(m, event, kind->start_ns) && fits;
	if (kind->queued_ns)
		fits = move_time(m, event, kind->queued_ns) && fits;
	return fits;
}

static int move_event(const void *event, size_t bytes, void *arg)
{
	union {
		struct gp_ev_head head;
		char bytes[FORMAT_EVENT_MAX];
	} copy;
	struct merge *m = arg;
	const struct event_kind *kind = event_kind_of(event);
	int err;

	if (bytes > sizeof(copy))
		return 0;
	memcpy(copy.bytes, event, bytes);
	if (!move_times(m, copy.bytes, kind)) {
		m->dropped_nr++;
		return 0;
	}
	err = move_process(m, &copy.head.process);
	err = err ? err : move_instances(m, copy.bytes, kind->instances);
	for (int i = 0; i < EVENT_FIELDS_MAX; i++)
		err = err ? err : move_id(m, copy.bytes, bytes, kind->name_ids[i], move_name);
	err = err ? err : move_id(m, copy.bytes, bytes, kind->stack_id, move_stack);
	err = err ? err : move_id(m, copy.bytes, bytes, kind->inputs_id, move_inputs);
	if (err || is_emitted(m, copy.bytes, &err))
		return err;
	return err ? err : recording_writer__event(m->w, copy.bytes, bytes);
}

static int move_part(struct merge *m, struct part *p)
{
	m->part = p;
	for (size_t i = 0; i < recording__processes(p->rec); i++) {
		int err = add_process(m, recording__process_at(p->rec, i));

		if (err)
			return err;
	}
	return recording__each_event(p->rec, move_event, m);
}

int recording_merge(struct recording *const *parts, size_t parts_nr,
		    const struct merge_clocks *clocks, struct recording_writer *w,
		    struct reason *why)
{
	CLEANUP(merge__done)
	struct merge m = {.w = w, .clocks = clocks, .why = why, .texts = intern__new()};
	int err;

	(void)reason_set(why, 0, "%s", "");
	if (!m.texts || vec_reserve(&m.parts, parts_nr))
		return reason_set(why, -ENOMEM, "out of memory");
	for (size_t i = 0; i < parts_nr; i++)
		if (recording__meta(parts[i], "steps"))
			return reason_set(why, -EINVAL,
					  "a recording by steps (--steps, --schedule) holds more "
					  "than its window says and cannot be merged");
	for (size_t i = 0; i < parts_nr; i++)
		part__init(&m.parts.items[m.parts.nr++], parts[i],
			   clocks ? clocks->shifts_ns[i] : 0);
	set_shifts(&m);
	qsort(m.parts.items, m.parts.nr, sizeof(*m.parts.items), by_start);
	set_numbers(&m);
	err = merge_write_metas(&m);
	for (size_t i = 0; i < m.parts.nr && !err; i++)
		err = move_part(&m, &m.parts.items[i]);
	err = err ? err : merge_write_losses(&m);
	err = err ? err : write_window(&m);
	if (err && why && !*why->text)
		return reason_set(why, err, "cannot merge: %s", strerror(-err));
	return err;
}
