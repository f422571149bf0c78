/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Python's thread states and frames by process_vm_readv. Nothing stops the threads: every count is
 * bounded, a code object is believed only with its checksum, and one whose frame changed meanwhile
 * has a stack that is not whole.
 */
#include "capture/process/python_threads.h"

#include "capture/process/process_record.h"
#include "capture/symbols/python_code.h"
#include "inspect/access/memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STATES_MAX 1024
#define WALK_MAX   (2 * GP_STACK_FRAMES)

/* glibc's struct pthread on x86-64 and aarch64 has the thread's id at one of these. */
static const uint16_t tid_at[] = {720, 208};

struct thread_walk {
	struct gp_ev_stack event;
	struct gp_stack_frame frames[GP_STACK_FRAMES];
};

static bool read_word(const struct target_python *py, uint64_t address, uint64_t *ret_word)
{
	return !target_memory_read(py->pid, address, ret_word, sizeof(*ret_word));
}

static uint64_t field(const uint8_t *chunk, size_t offset)
{
	uint64_t word;

	memcpy(&word, chunk + offset, sizeof(word));
	return word;
}

/* Of the thread with this pthread_self(); 0: not known. */
static uint32_t tid_of(const struct target_python *py, uint64_t self)
{
	for (size_t i = 0; i < sizeof(tid_at) / sizeof(*tid_at); i++) {
		char path[64];
		uint32_t tid;

		if (target_memory_read(py->pid, self + tid_at[i], &tid, sizeof(tid)) || !tid)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%u", (int)py->pid, tid);
		if (!access(path, F_OK))
			return tid;
	}
	return 0;
}

/* One frame's code and place in it, if it is a Python function's. */
static bool add_frame(const struct target_python *py, const uint8_t *frame, struct thread_walk *w)
{
	const struct gp_python *l = &py->walk;
	struct gp_stack_frame *to = &w->frames[w->event.frames_nr];
	uint64_t address = field(frame, l->frame_code) & l->code_mask;
	uint64_t instr = field(frame, l->frame_instr);
	uint8_t code[PYTHON_CODE_BYTES];

	if (l->frame_owner != GP_PYTHON_NO_FIELD &&
	    frame[l->frame_owner] >= GP_PYTHON_OWNER_INTERPRETER)
		return true;
	if (target_python_code(py, address, code))
		return false;
	to->code = address;
	to->check = target_python_check(py, code);
	to->lasti = (int32_t)(l->is_index ? instr : instr - address - l->code_start);
	w->event.frames_nr++;
	return true;
}

static void walk_thread(const struct target_python *py, uint64_t state, struct thread_walk *w)
{
	const struct gp_python *l = &py->walk;
	uint8_t chunk[GP_PYTHON_FRAME_BYTES];
	uint64_t frame = 0;
	bool ok = read_word(py, state + l->state_frame, &frame);

	if (ok && l->has_cframe && frame)
		ok = read_word(py, frame + l->cframe_frame, &frame);
	for (int i = 0; ok && frame && w->event.frames_nr < GP_STACK_FRAMES; i++) {
		ok = i < WALK_MAX &&
		     !target_memory_read(py->pid, frame + l->frame_at, chunk, l->frame_bytes) &&
		     add_frame(py, chunk, w);
		frame = field(chunk, l->frame_back);
	}
	if (!ok)
		w->event.head.flags = GP_STACK_INCOMPLETE;
	else if (frame)
		w->event.head.flags = GP_STACK_TRUNCATED;
}

static int write_thread(struct process_set *s, struct traced_process *m, uint16_t number,
			uint64_t state, uint64_t now_ns)
{
	const struct target_python *py = python_codes__python(m->python);
	struct gp_ev_thread_stack ev = {
		.head = {.kind = GP_EV_THREAD_STACK, .process = number, .time_ns = now_ns}};
	struct thread_walk w = {.event.head = {.kind = GP_EV_STACK, .process = m->index}};
	struct segment *to = s->recordings->segments.current;
	int64_t stack;
	uint64_t self;
	int err;

	if (!read_word(py, state + py->walk.state_thread_id, &self))
		return 0;
	ev.head.tid = tid_of(py, self);
	walk_thread(py, state, &w);
	if (!w.event.frames_nr || !ev.head.tid)
		return 0;
	w.event.stack_id = ++s->symbols->thread_stacks_nr;
	stack = stacks__number(&s->symbols->stacks, SOURCE_THREADS, w.event.stack_id);
	if (stack <= 0)
		return (int)stack;
	ev.stack_id = (uint32_t)stack;
	err = stacks__emit(&s->symbols->stacks, to, ev.stack_id);
	err = err ? err
		  : stacks__put(&s->symbols->stacks, m->python, SOURCE_THREADS, &w.event,
				sizeof(w));
	return err ? err : recording_writer__event(to->writer, &ev, sizeof(ev));
}

static int write_threads(struct process_set *s, struct traced_process *m, uint16_t number,
			 uint64_t now_ns)
{
	const struct target_python *py = python_codes__python(m->python);
	const struct gp_python *l = &py->walk;
	uint64_t interp = 0, state;
	int nr = 0, err = 0;

	if (!read_word(py, l->interpreters, &interp))
		return 0;
	while (interp && nr < STATES_MAX && !err) {
		if (!read_word(py, interp + l->interp_threads, &state))
			return 0;
		for (; state && nr < STATES_MAX && !err; nr++) {
			err = write_thread(s, m, number, state, now_ns);
			if (!read_word(py, state + 8, &state))
				break;
		}
		if (!read_word(py, interp + l->interp_next, &interp))
			return err;
		nr++;
	}
	return err;
}

int python_threads_write(struct process_set *s, uint64_t now_ns)
{
	int err = 0;

	for (size_t i = 0; i < s->table.nr && !err; i++) {
		struct traced_process *m = s->table.items[i];
		struct segment *to = s->recordings->segments.current;
		uint16_t number;

		if (m->end || !m->python || !to || to->broken)
			continue;
		err = process_record__emit(m, to, &number);
		err = err ? err : write_threads(s, m, number, now_ns);
		err = err == -ENOSPC && !recording_writer__error(to->writer)
			      ? 0
			      : recording_set__note_error(s->recordings, to, err);
	}
	return err;
}
