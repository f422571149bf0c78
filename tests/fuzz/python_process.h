/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The simulated process of fuzz_python.c, the kernel's helpers for it, and a plain walk of its
 * stack. To be included once, before anything else of the kernel's programs.
 */
#ifndef GP_FUZZ_PYTHON_PROCESS_H
#define GP_FUZZ_PYTHON_PROCESS_H

#include "python.bpf.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BASE  0x7e0000000000ULL
#define PAGES 48
#define PAGE  4096ULL
#define SELF  0x7e1234567000ULL /* the thread's pointer */

#define STACKS_ROOM 8

/* ---- the process ---- */

static uint8_t memory[PAGES * PAGE];
static bool is_mapped[PAGES];
static uint64_t reads, change_at, change_where, change_to;
static bool has_changed;

static bool is_there(uint64_t address, uint64_t bytes)
{
	if (address < BASE || bytes > sizeof(memory) || address - BASE > sizeof(memory) - bytes)
		return false;
	for (uint64_t at = (address - BASE) / PAGE;
	     bytes && at <= (address - BASE + bytes - 1) / PAGE; at++)
		if (!is_mapped[at])
			return false;
	return true;
}

static void put(uint64_t address, const void *from, size_t bytes)
{
	if (address >= BASE && address - BASE <= sizeof(memory) - bytes)
		memcpy(memory + (address - BASE), from, bytes);
}

static void put_word(uint64_t address, uint64_t value)
{
	put(address, &value, sizeof(value));
}

static bool get(uint64_t address, void *to, size_t bytes)
{
	if (!is_there(address, bytes))
		return false;
	memcpy(to, memory + (address - BASE), bytes);
	return true;
}

/* ---- the helpers ---- */

static struct task_struct task = {.thread.fsbase = SELF};
static struct python_thread *thread;
static struct python_windows *windows;
static struct gp_python *layout;
static struct counters *counts;
static uint64_t stack_keys[STACKS_ROOM];
static uint32_t stack_ids[STACKS_ROOM], stacks_here;
static uint64_t quick[GP_QUICK_STACKS];
static bool ring_is_full;

/* The stack that was told of last, and under which id. */
static struct gp_stack_frame last_frames[GP_STACK_FRAMES];
static uint32_t last_id, last_nr;
static uint8_t last_flags;

struct field {
	size_t at, bytes;
};

/* Aborts if a copy begins in the memory at `of` and does not stay in one of its fields. */
static void check_copy_in(const void *of, size_t of_bytes, const struct field *fields, size_t nr,
			  const void *to, uint64_t bytes)
{
	size_t at = (size_t)((const char *)to - (const char *)of);

	if ((const char *)to < (const char *)of || at >= of_bytes)
		return;
	for (size_t i = 0; i < nr; i++)
		if (at >= fields[i].at && at + bytes <= fields[i].at + fields[i].bytes)
			return;
	abort();
}

/* A copy must stay in the field that it is for. */
static void check_copy(const void *to, uint64_t bytes)
{
	static const struct field of_thread[] = {
		{offsetof(struct python_thread, state), sizeof(thread->state)},
		{offsetof(struct python_thread, check), sizeof(thread->check)},
		{offsetof(struct python_thread, search.interp), 8},
		{offsetof(struct python_thread, search.tstate), 8},
		{offsetof(struct python_thread, made), 40},
		{offsetof(struct python_thread, made.name), sizeof(thread->made.name)},
		{offsetof(struct python_thread, made.lines_bytes), 8},
		{offsetof(struct python_thread, made.lines), sizeof(thread->made.lines)},
	};
	static const struct field of_windows[] = {
		{offsetof(struct python_windows, read), GP_PYTHON_WINDOW_BYTES},
		{offsetof(struct python_windows, read) + GP_PYTHON_WINDOW_BYTES,
		 GP_PYTHON_BEHIND_BYTES},
	};

	check_copy_in(thread, sizeof(*thread), of_thread, sizeof(of_thread) / sizeof(*of_thread),
		      to, bytes);
	check_copy_in(windows, sizeof(*windows), of_windows,
		      sizeof(of_windows) / sizeof(*of_windows), to, bytes);
}

long bpf_probe_read_user(void *to, __u32 bytes, const void *from)
{
	if (reads++ == change_at) {
		put_word(change_where, change_to);
		has_changed = true;
	}
	check_copy(to, bytes);
	if (get((uint64_t)from, to, bytes))
		return 0;
	memset(to, 0, bytes);
	return -14;
}

long bpf_loop(__u32 nr, void *fn, void *arg, __u64 flags)
{
	long (*call)(__u64, void *) = (long (*)(__u64, void *))fn;
	__u32 i = 0;

	while (i < nr && !call(i, arg))
		i++;
	return i;
}

void *bpf_map_lookup_elem(void *map, const void *key)
{
	uint32_t index = *(const uint32_t *)key;

	if (map == (void *)&pythons)
		return index ? NULL : layout;
	if (map == (void *)&counters)
		return counts;
	if (map == (void *)&quick_stacks)
		return index < GP_QUICK_STACKS ? &quick[index] : NULL;
	if (map != (void *)&stacks)
		abort();
	for (uint32_t i = 0; i < stacks_here; i++)
		if (stack_keys[i] == *(const uint64_t *)key)
			return &stack_ids[i];
	return NULL;
}

long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	if (map != (void *)&stacks || bpf_map_lookup_elem(map, key))
		abort();
	if (stacks_here == STACKS_ROOM)
		return -7;
	stack_keys[stacks_here] = *(const uint64_t *)key;
	stack_ids[stacks_here++] = *(const uint32_t *)value;
	return 0;
}

long bpf_map_delete_elem(void *map, const void *key)
{
	if (map != (void *)&stacks || !stacks_here ||
	    stack_keys[--stacks_here] != *(const uint64_t *)key)
		abort();
	return 0;
}

void *bpf_task_storage_get(void *map, struct task_struct *whose, void *value, __u64 flags)
{
	return map == (void *)&python_windows ? (void *)windows : thread;
}

struct task_struct *bpf_get_current_task_btf(void)
{
	return &task;
}

__u64 bpf_get_current_pid_tgid(void)
{
	return 1;
}

void *bpf_ringbuf_reserve(void *map, __u64 bytes, __u64 flags)
{
	abort();
}

void bpf_ringbuf_submit(void *event, __u64 flags)
{
	abort();
}

__u64 bpf_ringbuf_query(void *map, __u64 flags)
{
	return 0;
}

long bpf_ringbuf_output(void *map, void *event, __u64 bytes, __u64 flags)
{
	const struct gp_ev_stack *stack = event;

	if (!stack->frames_nr || stack->frames_nr > GP_STACK_FRAMES ||
	    bytes != sizeof(*stack) + stack->frames_nr * sizeof(struct gp_stack_frame) ||
	    stack->head.flags & ~(GP_STACK_TRUNCATED | GP_STACK_INCOMPLETE))
		abort();
	if (ring_is_full)
		return -11;
	last_id = stack->stack_id;
	last_nr = stack->frames_nr;
	last_flags = stack->head.flags;
	memcpy(last_frames, stack + 1, bytes - sizeof(*stack));
	return 0;
}

/* ---- a plain walk ---- */

struct plain {
	uint64_t codes[GP_STACK_FRAMES];
	int32_t lasti[GP_STACK_FRAMES];
	uint32_t nr;
	uint32_t flags;
	bool is_lost; /* the lists do not lead to the thread's state */
};

static bool word(uint64_t address, uint64_t *ret_word)
{
	return get(address, ret_word, sizeof(*ret_word));
}

static bool plain_innermost(uint64_t state, uint64_t *ret_frame)
{
	return word(state + layout->state_frame, ret_frame) &&
	       (!layout->has_cframe || word(*ret_frame + layout->cframe_frame, ret_frame));
}

/* The innermost frame of that of the thread's states which has one, 0: none has. False: not known.
 */
static bool plain_find(uint64_t *ret_frame)
{
	uint64_t interp, state, id, frame;
	int left = PYTHON_SEARCH_MAX, framed = 0;

	*ret_frame = 0;
	for (bool ok = word(layout->interpreters, &interp); interp || !ok;
	     ok = word(interp + layout->interp_next, &interp)) {
		if (!ok || !left-- || !word(interp + layout->interp_threads, &state))
			return false;
		while (state) {
			if (!left-- || !word(state + layout->state_thread_id, &id))
				return false;
			if (id == SELF && !plain_innermost(state, &frame))
				return false;
			if (id == SELF && frame) {
				*ret_frame = frame;
				framed++;
			}
			if (!word(state + 8, &state))
				return false;
		}
	}
	return framed <= 1;
}

/* Adds the function of the frame at `at`, if it is one. False if it cannot be read. */
static bool plain_add(struct plain *p, uint64_t at)
{
	uint8_t frame[GP_PYTHON_FRAME_BYTES], check[GP_PYTHON_CHECK_BYTES];
	uint64_t code, instr;

	if (!get(at, frame, layout->frame_bytes))
		return false;
	if (layout->frame_owner != GP_PYTHON_NO_FIELD && frame[layout->frame_owner] >= 3)
		return true;
	memcpy(&code, frame + layout->frame_code, 8);
	memcpy(&instr, frame + layout->frame_instr, 8);
	code &= layout->code_mask;
	if (!get(code + layout->code_check, check, sizeof(check)))
		return false;
	p->codes[p->nr] = code;
	p->lasti[p->nr++] = (int32_t)(layout->is_index ? instr : instr - code - layout->code_start);
	return true;
}

static void plain_walk(struct plain *p)
{
	uint64_t frame;

	memset(p, 0, sizeof(*p));
	p->is_lost = !plain_find(&frame);
	if (p->is_lost)
		p->flags = GP_STACK_INCOMPLETE;
	for (int i = 0; frame && !p->flags; i++) {
		if (p->nr == GP_STACK_FRAMES)
			p->flags = GP_STACK_TRUNCATED;
		else if (i == PYTHON_WALK_MAX || !plain_add(p, frame + layout->frame_at) ||
			 !word(frame + layout->frame_at + layout->frame_back, &frame))
			p->flags = GP_STACK_INCOMPLETE;
	}
}

#endif /* GP_FUZZ_PYTHON_PROCESS_H */
