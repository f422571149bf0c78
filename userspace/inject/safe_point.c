/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Decides whether a thread is at a safe point. A lock that another thread holds is no danger: that
 * thread runs on, and ours waits for it as any caller of dlopen would.
 */
#include "inject/safe_point.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#define USER_CS_64	       0x33
#define STACK_SCAN_BYTES       (1u << 20)
#define BLOCK_WORDS	       4096
#define STACK_FREE_BYTES       1024
#define TCB_BYTES	       0x400
#define GET_RSEQ_CONFIGURATION 0x420f

const char *safety_text(enum safety s)
{
	switch (s) {
	case UNSAFE_CODE:
		return "always inside the allocator, the loader, fork or thread creation";
	case UNSAFE_STACK:
		return "on a stack that is too small or not a stack";
	case UNSAFE_THREAD:
		return "without a thread control block of the C library";
	case UNSAFE_SEQUENCE:
		return "in a restartable sequence";
	case UNSAFE_MODE:
		return "running 32-bit code";
	default:
		return "at a safe point";
	}
}

/* Whether the thread has a control block of its own. glibc's points to itself twice and holds the
 * thread's id; a thread from a bare clone() shares another one's block, or has none, and would take
 * locks in the other's name. */
static bool has_control_block(const struct tracee *t, const struct user_regs_struct *r,
			      pid_t ns_tid)
{
	unsigned char block[TCB_BYTES];
	uint64_t self;
	int32_t id;

	if (!r->fs_base || tracee_read(t, r->fs_base, block, sizeof(block)))
		return false;
	memcpy(&self, block, sizeof(self));
	if (self != r->fs_base)
		return false;
	memcpy(&self, block + 16, sizeof(self));
	if (self != r->fs_base)
		return false;
	for (size_t at = 64; at + sizeof(id) <= sizeof(block); at += sizeof(id)) {
		memcpy(&id, block + at, sizeof(id));
		if (id == ns_tid)
			return true;
	}
	return false;
}

/* Whether it is in a restartable sequence: the kernel would see that rip has left it and consider
 * it done. */
static bool in_restartable_sequence(const struct tracee *t, const struct user_regs_struct *r)
{
	struct {
		uint64_t address;
		uint32_t bytes, signature, flags, padding;
	} config = {0};
	struct {
		uint32_t version, flags;
		uint64_t start, bytes, abort;
	} sequence;
	uint64_t at;

	if (ptrace(GET_RSEQ_CONFIGURATION, t->tid, (void *)sizeof(config), &config) <= 0 ||
	    !config.address || tracee_read(t, config.address + 8, &at, sizeof(at)) || !at)
		return false;
	if (tracee_read(t, at, &sequence, sizeof(sequence)))
		return true;
	return r->rip - sequence.start < sequence.bytes;
}

struct scan {
	bool unsafe;	     /* a word points into code that may hold a lock */
	bool foreign;	     /* a word points into code outside the C library */
	bool signal_handler; /* a word is the return address of a signal handler */
	bool in_range;	     /* a word points into a given range */
	bool whole;	     /* the end of the stack was reached */
};

struct scan_for {
	const struct c_library *c;
	const struct memory_map *map;
	const struct range *ranges;
	size_t ranges_nr;
};

static void note_word(uint64_t word, const struct scan_for *what, struct scan *s)
{
	const struct c_library *c = what->c;
	const struct mapping *m;

	if (ranges_hold(what->ranges, what->ranges_nr, word))
		s->in_range = true;
	if (word < 4096 || word > INT64_MAX)
		return;
	if (ranges_hold(c->unsafe.items, c->unsafe.nr, word))
		s->unsafe = true;
	for (size_t i = 0; i < c->signal_returns.nr; i++)
		if (c->signal_returns.items[i] == word)
			s->signal_handler = true;
	if (s->foreign || ranges_hold(c->own.items, c->own.nr, word))
		return;
	m = memory_map__find(what->map, word);
	s->foreign = m && m->executable;
}

static int scan_stack(const struct tracee *t, const struct mapping *stack, uint64_t rsp,
		      const struct scan_for *what, struct scan *s)
{
	uint64_t words[BLOCK_WORDS];
	uint64_t at = rsp & ~7ull, end = stack->end;
	size_t bytes;

	s->whole = end - at <= STACK_SCAN_BYTES;
	if (!s->whole)
		end = at + STACK_SCAN_BYTES;
	for (; at < end; at += bytes) {
		bytes = end - at < sizeof(words) ? end - at : sizeof(words);
		if (tracee_read(t, at, words, bytes))
			return -EFAULT;
		for (size_t i = 0; i < bytes / sizeof(words[0]); i++)
			note_word(words[i], what, s);
	}
	return 0;
}

/* Whether the thread is in a system call that waits, or that otherwise does not work on mappings as
 * the C library does under its locks. */
static bool in_waiting_call(const struct user_regs_struct *r)
{
	static const uint16_t memory_calls[] = {SYS_mmap,   SYS_munmap,	 SYS_mprotect,
						SYS_mremap, SYS_madvise, SYS_brk,
						SYS_clone,  435 /* clone3 */};

	if ((int64_t)r->orig_rax < 0)
		return false;
	for (size_t i = 0; i < sizeof(memory_calls) / sizeof(memory_calls[0]); i++)
		if (memory_calls[i] == r->orig_rax)
			return false;
	return true;
}

/* Whether the address is a signal return; a frame's address may be one less than where it returns
 * to. */
static bool is_signal_return(const struct c_library *c, uint64_t address)
{
	for (size_t i = 0; i < c->signal_returns.nr; i++)
		if (address == c->signal_returns.items[i] ||
		    address + 1 == c->signal_returns.items[i])
			return true;
	return false;
}

/*
 * Whether the C library was entered by a named function. If the outermost of its frames has no
 * name, the named function has left its frame to it (dladdr() does): it can be any function, and
 * hold a lock. A function that waits holds none.
 */
static bool entered_by_name(const uint64_t *frames, int nr, const struct c_library *c, bool waiting)
{
	bool innermost = true, own, outer_own;

	for (int i = 0; i + 1 < nr; i++) {
		own = ranges_hold(c->own.items, c->own.nr, frames[i]);
		outer_own = ranges_hold(c->own.items, c->own.nr, frames[i + 1]);
		if (!own || is_signal_return(c, frames[i])) {
			innermost = false;
			continue;
		}
		if (!outer_own && !ranges_hold(c->named.items, c->named.nr, frames[i]) &&
		    !(innermost && waiting))
			return false;
	}
	return true;
}

/* Decides by the exact frames: all are known, none is in code that may hold a lock, and at least
 * one is outside the C library (a thread that is just starting or ending has none). */
static bool frames_are_safe(const struct tracee *t, struct unwinder *u,
			    const struct memory_map *map, const struct c_library *c,
			    const struct user_regs_struct *r)
{
	uint64_t addresses[UNWIND_FRAMES_MAX];
	struct scan_for what = {.c = c, .map = map};
	struct scan s = {0};
	int nr = unwinder__all_frames(u, t, r, addresses);

	for (int i = 0; i < nr; i++)
		note_word(addresses[i], &what, &s);
	return nr > 0 && !s.unsafe && s.foreign &&
	       entered_by_name(addresses, nr, c, in_waiting_call(r));
}

enum safety safe_point_check(const struct tracee *t, struct unwinder *u,
			     const struct memory_map *map, const struct c_library *c, pid_t ns_tid,
			     const struct user_regs_struct *r)
{
	struct scan_for what = {.c = c, .map = map};
	const struct mapping *stack = memory_map__find(map, r->rsp);
	struct scan s = {0};

	if (r->cs != USER_CS_64)
		return UNSAFE_MODE;
	if (!stack || !stack->writable || !stack->private ||
	    (!stack->grows && r->rsp - stack->start < STACK_FREE_BYTES))
		return UNSAFE_STACK;
	if (!has_control_block(t, r, ns_tid))
		return UNSAFE_THREAD;
	note_word(r->rip, &what, &s);
	if (s.unsafe)
		return UNSAFE_CODE;
	if (in_restartable_sequence(t, r))
		return UNSAFE_SEQUENCE;
	if (scan_stack(t, stack, r->rsp, &what, &s))
		return UNSAFE_STACK;
	if (!s.unsafe && s.foreign && !s.signal_handler && s.whole && in_waiting_call(r))
		return SAFE;
	return frames_are_safe(t, u, map, c, r) ? SAFE : UNSAFE_CODE;
}

bool thread_is_in(const struct tracee *t, struct unwinder *u, const struct memory_map *map,
		  const struct c_library *c, const struct user_regs_struct *r, uint64_t start,
		  uint64_t end)
{
	const struct range range = {start, end};
	struct scan_for what = {.c = c, .map = map, .ranges = &range, .ranges_nr = 1};
	const struct mapping *stack = memory_map__find(map, r->rsp);
	uint64_t addresses[UNWIND_FRAMES_MAX];
	struct scan s = {0};
	int nr;

	note_word(r->rip, &what, &s);
	if (s.in_range || !stack || scan_stack(t, stack, r->rsp, &what, &s))
		return true;
	if (!s.in_range && s.whole && !s.signal_handler)
		return false;
	nr = unwinder__all_frames(u, t, r, addresses);
	s.in_range = false;
	for (int i = 0; i < nr; i++)
		note_word(addresses[i], &what, &s);
	return nr <= 0 || s.in_range;
}

/* Whether the thread is certainly outside of these ranges, and of code that may hold a lock,
 * without unwinding it. */
static bool is_clearly_outside(const struct tracee *t, const struct scan_for *what,
			       const struct user_regs_struct *r)
{
	const struct mapping *stack = memory_map__find(what->map, r->rsp);
	struct scan s = {0};

	note_word(r->rip, what, &s);
	if (s.in_range || s.unsafe || !stack || scan_stack(t, stack, r->rsp, what, &s))
		return false;
	return !s.in_range && !s.unsafe && s.whole && !s.signal_handler;
}

static bool ranges_hold_any(const struct range *ranges, size_t ranges_nr, const uint64_t *addresses,
			    int nr)
{
	for (int i = 0; i < nr; i++)
		if (ranges_hold(ranges, ranges_nr, addresses[i]))
			return true;
	return false;
}

static bool list_holds_any(const struct range_list *list, const uint64_t *addresses, int nr)
{
	return ranges_hold_any(list->ranges.items, list->ranges.nr, addresses, nr);
}

/* Whether the outermost function outside the C library is in one of the ranges. */
static bool begins_in(const struct range *ranges, size_t ranges_nr, const struct c_library *c,
		      const uint64_t *addresses, int nr)
{
	while (nr && ranges_hold(c->own.items, c->own.nr, addresses[nr - 1]))
		nr--;
	return nr && ranges_hold(ranges, ranges_nr, addresses[nr - 1]);
}

/* Whether a thread whose frames end at code without unwind information has left the ranges. Frames
 * are missing then, but such libraries call no other files, except the kernel's, so a thread that
 * is in another file has left them. */
static bool has_left(const struct range_list *list, const struct memory_map *map,
		     const struct c_library *c, const uint64_t *addresses, int nr)
{
	const struct mapping *m;

	for (int i = 0; i < nr; i++) {
		if (ranges_hold(c->own.items, c->own.nr, addresses[i]))
			continue;
		m = memory_map__find(map, addresses[i]);
		return m && m->inode && !list_holds_any(list, addresses + i, 1);
	}
	return false;
}

/* Whether the system call does nothing but wait. */
static bool sleeps(const struct user_regs_struct *r)
{
	static const uint16_t calls[] = {SYS_futex,	SYS_poll,	    SYS_ppoll,
					 SYS_select,	SYS_pselect6,	    SYS_epoll_wait,
					 SYS_nanosleep, SYS_clock_nanosleep};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i] == r->orig_rax)
			return true;
	return false;
}

enum whereabouts thread_whereabouts(const struct tracee *t, struct unwinder *u,
				    const struct memory_map *map, const struct c_library *c,
				    const struct user_regs_struct *r,
				    const struct range_list *libraries,
				    const struct range_list *waiting)
{
	struct scan_for what = {.c = c,
				.map = map,
				.ranges = libraries->ranges.items,
				.ranges_nr = libraries->ranges.nr};
	uint64_t addresses[UNWIND_FRAMES_MAX];
	bool whole;
	int nr;

	if ((int64_t)r->orig_rax >= 0 && !in_waiting_call(r))
		return WHERE_WITHIN;
	if (is_clearly_outside(t, &what, r))
		return WHERE_OUTSIDE;
	nr = unwinder__frames(u, t, r, addresses, &whole);
	if (whole && (begins_in(what.ranges, what.ranges_nr, c, addresses, nr) ||
		      begins_in(c->unsafe.items, c->unsafe.nr, c, addresses, nr)))
		return WHERE_OWN;
	/* A sleeping thread waits for a lock rather than holding one. */
	if (!sleeps(r) && ranges_hold_any(c->unsafe.items, c->unsafe.nr, addresses, nr))
		return WHERE_WITHIN;
	if (list_holds_any(waiting, addresses, nr))
		return WHERE_WAITING;
	if (list_holds_any(libraries, addresses, nr))
		return WHERE_WITHIN;
	if (whole || has_left(libraries, map, c, addresses, nr))
		return WHERE_OUTSIDE;
	return waiting->ranges.nr && sleeps(r) ? WHERE_WAITING : WHERE_WITHIN;
}
