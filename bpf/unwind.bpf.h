/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Walks the current thread's native stack by the rules that gpuprof made from each mapped file's
 * unwind information. Where a rule is missing, or the thread's stack is inconsistent, the walk
 * ends; that is marked and counted, and nothing is guessed. All data belongs to the process, or was
 * made from its files.
 */
#ifndef GP_BPF_UNWIND_BPF_H
#define GP_BPF_UNWIND_BPF_H

#include "walk.bpf.h"
#include "walk_memory.bpf.h"

/* Walks of other threads leave this out: the verifier has no room for it, and gpuprof pays for
 * them. */
#if defined(WALK_SAMPLES) && !defined(WALK_OTHERS)
#define WALK_KNOWS_RULES
#endif

/* The most bisection steps for a row in a page, and for a range in a process. */
#define UNWIND_ROW_STEPS   10
#define UNWIND_RANGE_STEPS 12

static __always_inline long unwind_end(struct unwind_walk *w, enum gp_loss why)
{
	w->flags |= GP_STACK_INCOMPLETE;
	count_loss(why);
	return loop_end();
}

/* ---- where the code is ---- */

/* Finds the range that contains the address, in the kernel's map; NULL if none does. */
static __noinline struct gp_unwind_range *unwind_find_range(__u32 process, __u64 address)
{
	void *ranges = bpf_map_lookup_elem(&unwind_ranges, &process);
	struct gp_unwind_range *range;
	__u32 low = 0, high, at = 0;

	if (!ranges)
		return 0;
	range = bpf_map_lookup_elem(ranges, &at);
	if (!range || range->start > GP_UNWIND_RANGES_MAX)
		return 0;
	high = (__u32)range->start + 1;
	for (int i = 0; i < UNWIND_RANGE_STEPS + 1 && high - low > 1; i++) {
		at = low + (high - low) / 2;
		range = bpf_map_lookup_elem(ranges, &at);
		if (!range)
			return 0;
		if (range->start <= address)
			low = at;
		else
			high = at;
	}
	if (!low)
		return 0;
	range = bpf_map_lookup_elem(ranges, &low);
	return range && range->start <= address && address < range->end ? range : 0;
}

/* Returns the number of mapping changes that the process's ranges are from. */
static __always_inline __u32 unwind_maps_known(__u32 process)
{
	void *ranges = bpf_map_lookup_elem(&unwind_ranges, &process);
	const struct gp_unwind_range *first;
	__u32 zero = 0;

	first = ranges ? bpf_map_lookup_elem(ranges, &zero) : 0;
	return first ? (__u32)first->end : 0;
}

/* Requests a range's missing table, once. */
static __noinline void unwind_ask(__u32 process, struct gp_unwind_range *range, __u64 address)
{
	struct gp_ev_unwind *event;

	if (range->asked || __sync_lock_test_and_set(&range->asked, 1))
		return;
	event = emit_reserve(sizeof(*event));
	if (!event) {
		range->asked = 0;
		return;
	}
	event->head.kind = GP_EV_UNWIND;
	event->head.flags = 0;
	event->head.process = (__u16)process;
	event->head.tid = walked_tid();
	event->head.time_ns = bpf_ktime_get_ns();
	event->address = address;
	bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
}

/* Sets w->range to the one of the address. 1; 0: there is none; -1: it has no table (counted). */
static __always_inline int unwind_enter(struct unwind_walk *w, __u64 address)
{
	struct gp_unwind_range *range;

	if (address - w->range.start < w->range.end - w->range.start)
		return 1;
	range = unwind_find_range(w->process, address);
	if (!range)
		return 0;
	w->range = *range;
	if (range->table)
		return 1;
	unwind_ask(w->process, range, address);
	(void)unwind_end(w, GP_LOSS_UNWIND_TABLE);
	return -1;
}

/* ---- the rule ---- */

static __always_inline __u64 unwind_word(void *table, __u32 at)
{
	const __u64 *word = bpf_map_lookup_elem(table, &at);

	return word ? *word : 0;
}

/* Returns the rule at an ELF address; GP_UNWIND_NONE too if the table is inconsistent. */
static __noinline __u64 unwind_rule(const struct gp_unwind_range *range, __u64 address)
{
	__u32 number = range->table, low, high, middle;
	__u64 page = (address >> GP_UNWIND_PAGE_SHIFT) - range->first_page, word;
	void *table;

	if (page >= range->pages_nr)
		return GP_UNWIND_NONE;
	table = bpf_map_lookup_elem(&unwind_tables, &number);
	if (!table)
		return GP_UNWIND_NONE;
	word = unwind_word(table, range->pages_at + (__u32)page);
	low = (__u32)word;
	high = (__u32)(word >> 32);
	for (int i = 0; i < UNWIND_ROW_STEPS && high - low > 1; i++) {
		middle = low + (high - low) / 2;
		if (unwind_word(table, middle) >> 32 <= address)
			low = middle;
		else
			high = middle;
	}
	return unwind_word(table, range->rules_at + (__u32)unwind_word(table, low));
}

/* Sets the walk's rule to the one at an address of the process, GP_UNWIND_NONE if there is none.
 * False: the walk ends (counted). */
static __always_inline bool unwind_find_rule(struct native_thread *n, __u64 address)
{
	struct unwind_walk *w = &n->walk;
	int entered = unwind_enter(w, address);

	w->rule = GP_UNWIND_NONE;
	if (entered < 0)
		return false;
	if (entered)
		w->rule = unwind_rule(&w->range, address - w->range.bias);
	return true;
}

#ifdef WALK_KNOWS_RULES

static __always_inline struct rule_known *unwind_known_place(__u64 address)
{
	__u32 place = gp_python_mix(0, address) >> 40 & (GP_RULES_KNOWN - 1);
	struct sample_walk *m = sample_memory();

	return m ? &m->rules[place] : 0;
}

/* Returns the rule that samples have looked up for an address; GP_UNWIND_NONE: none yet. */
__noinline __u64 unwind_known(__u64 owner, __u32 maps_changes, __u64 address)
{
	const struct rule_known *k = unwind_known_place(address);

	if (!k || k->address != address || k->owner != owner || k->maps_changes != maps_changes)
		return GP_UNWIND_NONE;
	return k->rule;
}

__noinline int unwind_make_known(__u64 owner, __u32 maps_changes, __u64 address, __u64 rule)
{
	struct rule_known *k = unwind_known_place(address);

	if (k)
		*k = (struct rule_known){owner, address, rule, maps_changes, 0};
	return 0;
}

/* As unwind_find_rule(). */
static __always_inline bool unwind_rule_at(struct native_thread *n, __u64 address)
{
	struct unwind_walk *w = &n->walk;

	w->rule = unwind_known(w->owner, w->maps_known, address);
	if (w->rule != GP_UNWIND_NONE)
		return true;
	if (!unwind_find_rule(n, address))
		return false;
	if (w->rule != GP_UNWIND_NONE)
		(void)unwind_make_known(w->owner, w->maps_known, address, w->rule);
	return true;
}

#else
#define unwind_rule_at unwind_find_rule
#endif

/* ---- the frames ---- */

/* Computes the caller's stack pointer. False: it cannot be read (counted). */
static __always_inline bool unwind_cfa(struct unwind_walk *w, __u64 rule, __u64 *ret_cfa)
{
	__u8 kind = GP_UNWIND_RULE_CFA_KIND(rule);
	__u64 cfa = (__u64)GP_UNWIND_RULE_CFA(rule);

	if (kind == GP_UNWIND_SP || kind == GP_UNWIND_PLT || kind == GP_UNWIND_SIGNAL)
		cfa += w->sp;
	else
		cfa += w->bp;
	if (kind == GP_UNWIND_PLT && (w->ip & 15) >= (__u64)GP_UNWIND_RULE_BP(rule))
		cfa += 8;
	if ((kind == GP_UNWIND_BP || kind == GP_UNWIND_BP_AT) && w->bp_lost) {
		(void)unwind_end(w, GP_LOSS_UNWIND_HARD);
		return false;
	}
	*ret_cfa = cfa;
	if ((kind == GP_UNWIND_BP_AT && !walked_read(ret_cfa, 8, cfa)) ||
	    (kind != GP_UNWIND_SIGNAL && *ret_cfa <= w->sp)) {
		(void)unwind_end(w, GP_LOSS_UNWIND_MEMORY);
		return false;
	}
	return true;
}

/* Writes the caller's rbp to w->bp. */
static __always_inline bool unwind_bp(struct unwind_walk *w, __u64 rule, __u64 cfa)
{
	__u64 at = (__u64)GP_UNWIND_RULE_BP(rule);

	switch (GP_UNWIND_RULE_BP_KIND(rule)) {
	case GP_UNWIND_BP_SAME:
		return true;
	case GP_UNWIND_BP_CFA:
		at += cfa;
		break;
	case GP_UNWIND_BP_BP:
		at += w->bp;
		break;
	case GP_UNWIND_BP_SP:
		at += w->sp;
		break;
	default:
		w->bp_lost = true;
		return true;
	}
	w->bp_lost = false;
	return walked_read(&w->bp, 8, at);
}

/* Marks frame number `i`, from w->sp to cfa, if it contains an anchor. */
static __always_inline void unwind_mark(struct native_thread *n, __u32 i, __u64 cfa)
{
	__u32 a = n->walk.anchor;

	if (a >= n->anchors_nr || a >= GP_STACK_FRAMES || n->anchors[a] >= cfa)
		return;
	if (n->anchors[a] >= n->walk.sp && i < GP_STACK_FRAMES)
		n->event.marks[i / 64] |= 1ULL << i % 64;
	n->walk.anchor = a + 1;
}

/* Goes from a frame with a rule to its caller. */
static __always_inline long unwind_up(struct native_thread *n)
{
	struct unwind_walk *w = &n->walk;
	__u64 rule = w->rule;
	bool is_signal = GP_UNWIND_RULE_CFA_KIND(rule) == GP_UNWIND_SIGNAL;
	__u64 cfa, sp, words[2];

	if (!unwind_cfa(w, rule, &cfa))
		return loop_end();
	if (!is_signal)
		unwind_mark(n, w->nr - 1, cfa);
	if (is_signal) {
		/* The interrupted thread's rsp and rip are adjacent. */
		if (!walked_read(words, sizeof(words), cfa))
			return unwind_end(w, GP_LOSS_UNWIND_MEMORY);
		sp = words[0];
		if (!unwind_bp(w, rule, sp))
			return unwind_end(w, GP_LOSS_UNWIND_MEMORY);
	} else {
		/* Mostly rbp and the return address are, too. */
		if (!walked_read(words, sizeof(words), cfa - 16))
			return unwind_end(w, GP_LOSS_UNWIND_MEMORY);
		sp = cfa;
		if (GP_UNWIND_RULE_BP_KIND(rule) == GP_UNWIND_BP_CFA &&
		    GP_UNWIND_RULE_BP(rule) == -16) {
			w->bp = words[0];
			w->bp_lost = false;
		} else if (!unwind_bp(w, rule, cfa)) {
			return unwind_end(w, GP_LOSS_UNWIND_MEMORY);
		}
	}
	w->ip = words[1];
	w->sp = sp;
	w->called = !is_signal;
	return w->ip ? 0 : unwind_end(w, GP_LOSS_UNWIND_MEMORY);
}

/* ---- code without unwind information ---- */

#ifdef WALK_SAMPLES

/*
 * Code that a library generates at run time, or that was written in assembly, has no unwind
 * information. Samples often begin in such code, so for them the caller is searched for: the first
 * word on the stack that is a return address in code whose rule leads to a caller in turn. That is
 * no proof: such stacks are marked.
 */
struct unwind_search {
	struct native_thread *n;
	__u64 base;  /* address of the first word */
	__u64 bp;    /* 0: none possible */
	__u32 found; /* its index plus one */
};

/* Whether the bytes before the address are a call. */
static __always_inline bool unwind_after_call(__u64 address)
{
	__u8 b[8];

	if (!walked_read(b, sizeof(b), address - 8))
		return false;
	return b[3] == 0xe8 || (b[6] == 0xff && (b[7] & 0x38) == 0x10) ||
	       (b[5] == 0xff && (b[6] & 0x38) == 0x10) || (b[4] == 0xff && (b[5] & 0x38) == 0x10) ||
	       (b[2] == 0xff && (b[3] & 0x38) == 0x10) || (b[1] == 0xff && (b[2] & 0x38) == 0x10);
}

/* Returns word number `i` of those searched; 0: none. See thread_frame(). */
static __always_inline __u64 unwind_searched(const struct native_thread *n, __u64 i)
{
	barrier_var(i);
	return i < GP_SEARCH_WORDS ? n->words[i] : 0;
}

/* The caller's frame pointer is mostly saved next to the return address. */
static __always_inline void unwind_search_bp(struct unwind_search *s, __u64 at, __u64 n)
{
	__u64 before = unwind_searched(s->n, n - 1), second = unwind_searched(s->n, n - 2);

	s->bp = s->n->walk.bp;
	if (before - at < GP_SEARCH_FRAME)
		s->bp = before;
	else if (second - at < GP_SEARCH_FRAME)
		s->bp = second;
	if (s->bp - at >= GP_SEARCH_FRAME)
		s->bp = 0;
}

#define unwind_search_fits WALK_NAME(unwind_search_fits)

/* Whether the frame that is returned to has a caller in turn. */
__noinline int unwind_search_fits(__u32 process, __u64 at, __u64 address, __u64 bp)
{
	struct gp_unwind_range *range;
	__u64 rule, cfa, caller;

	if (!(gp_stacks & GP_STACK_WANT_NATIVE))
		return false;
	range = unwind_find_range(process, address - 1);
	if (!range || !unwind_after_call(address))
		return false;
	if (!range->table) {
		unwind_ask(process, range, address - 1);
		return false;
	}
	rule = unwind_rule(range, address - 1 - range->bias);
	switch (GP_UNWIND_RULE_CFA_KIND(rule)) {
	case GP_UNWIND_SP:
		cfa = at + 8 + (__u64)GP_UNWIND_RULE_CFA(rule);
		break;
	case GP_UNWIND_BP:
		if (!bp)
			return false;
		cfa = bp + (__u64)GP_UNWIND_RULE_CFA(rule);
		break;
	default:
		return false;
	}
	return walked_read(&caller, 8, cfa - 8) && unwind_find_range(process, caller - 1);
}

static long unwind_search_one(__u32 n, struct unwind_search *s)
{
	__u64 at = s->base + 8UL * n;

	if (n >= GP_SEARCH_WORDS)
		return loop_end();
	unwind_search_bp(s, at, n);
	if (!unwind_search_fits(s->n->walk.process, at, unwind_searched(s->n, n), s->bp))
		return 0;
	s->found = n + 1;
	return loop_end();
}

/* Goes from a frame without unwind information to its caller. */
static __noinline long unwind_search(struct native_thread *n)
{
	struct unwind_walk *w = &n->walk;
	struct unwind_search s = {.n = n, .base = w->sp};
	__u64 i;

	if (w->searched || !walked_read(n->words, sizeof(n->words), w->sp))
		return unwind_end(w, GP_LOSS_UNWIND_RULE);
	w->searched = true;
	(void)bpf_loop(GP_SEARCH_WORDS, unwind_search_one, &s, 0);
	if (!s.found)
		return unwind_end(w, GP_LOSS_UNWIND_RULE);
	i = s.found - 1;
	w->flags |= GP_STACK_SEARCHED;
	w->ip = unwind_searched(n, i);
	w->sp = s.base + 8 * i + 8;
	w->bp = s.bp;
	w->bp_lost = !s.bp;
	w->called = true;
	return 0;
}

#else

static __always_inline long unwind_search(struct native_thread *n)
{
	return unwind_end(&n->walk, GP_LOSS_UNWIND_RULE);
}

#endif

static long unwind_one(__u32 step, struct native_thread **at)
{
	struct native_thread *n = *at;
	struct unwind_walk *w = &n->walk;
	__u64 address = w->ip - w->called;
	__u32 i = w->nr;

	if (i >= GP_STACK_FRAMES) {
		w->flags |= GP_STACK_TRUNCATED;
		return loop_end();
	}
	n->frames[i] = address;
	w->hash = gp_python_mix(w->hash, address);
	w->nr = i + 1;
	if (!unwind_rule_at(n, address))
		return loop_end();
	/* Nobody has called the code to which a signal handler returns. */
	if (GP_UNWIND_RULE_CFA_KIND(w->rule) == GP_UNWIND_SIGNAL)
		n->frames[i] = w->ip;
	switch (GP_UNWIND_RULE_CFA_KIND(w->rule)) {
	case GP_UNWIND_END:
		return loop_end();
	case GP_UNWIND_NONE:
		return unwind_search(n);
	case GP_UNWIND_HARD:
		return unwind_end(w, GP_LOSS_UNWIND_HARD);
	default:
		return unwind_up(n);
	}
}

/* Fills n->frames. The caller has set ip, sp, bp and what is known in n->walk, and zeroed the rest;
 * n->anchors lie on the thread's stack, ascending. */
static __always_inline void unwind_stack(struct native_thread *n)
{
	__builtin_memset(n->event.marks, 0, sizeof(n->event.marks));
	(void)bpf_loop(GP_STACK_FRAMES + 1, unwind_one, &n, 0);
	n->walk.hash = gp_python_mix_words(n->walk.hash, n->event.marks, GP_STACK_FRAMES / 64);
}

#endif /* GP_BPF_UNWIND_BPF_H */
