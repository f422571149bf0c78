/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The native stack of the current thread, frame by frame from the rules that gpuprof has made of
 * the unwind information of each mapped file. Where a rule is missing, or what lies on the thread's
 * stack makes no sense, the walk ends, and that is told and counted: nothing is guessed. All that
 * is read is the target's, or made from the target's files.
 */
#ifndef GP_BPF_UNWIND_BPF_H
#define GP_BPF_UNWIND_BPF_H

#include "emit.bpf.h"
#include "walked.bpf.h"

/* Halvings that find one row of a page, and one range of a process. */
#define UNWIND_ROW_STEPS   10
#define UNWIND_RANGE_STEPS 12

struct unwind_walk {
	__u64 ip; /* of the frame */
	__u64 sp; /* before the frame's next instruction, and so is bp */
	__u64 bp;
	__u64 hash;
	struct native_thread *memory;
	struct gp_unwind_range range; /* of the last frame; all zero: none */
	const __u64 *anchors; /* GP_STACK_FRAMES addresses on the thread's stack, ascending */
	__u32 anchors_nr;
	__u32 process;
	__u32 nr;
	__u32 flags;
	bool called; /* ip is a return address: the call is right below it */
	bool bp_lost;
};

static __always_inline long unwind_end(struct unwind_walk *w, enum gp_loss why)
{
	w->flags |= GP_STACK_INCOMPLETE;
	count_loss(why);
	return 1;
}

/* ---- where the code is ---- */

/* The range that holds the address, in the kernel's map; NULL if none does. */
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

/* Tells once that the table of a range is missing. */
static __noinline void unwind_ask(const struct unwind_walk *w, struct gp_unwind_range *range,
				  __u64 address)
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
	event->head.process = (__u16)w->process;
	event->head.tid = walked_tid();
	event->head.time_ns = bpf_ktime_get_ns();
	event->address = address;
	bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
}

/* Makes w->range the one of the address. False: there is none, or it has no table (counted). */
static __always_inline bool unwind_enter(struct unwind_walk *w, __u64 address)
{
	struct gp_unwind_range *range;

	if (address - w->range.start < w->range.end - w->range.start)
		return true;
	range = unwind_find_range(w->process, address);
	if (!range) {
		(void)unwind_end(w, GP_LOSS_UNWIND_RULE);
		return false;
	}
	w->range = *range;
	if (range->table)
		return true;
	unwind_ask(w, range, address);
	(void)unwind_end(w, GP_LOSS_UNWIND_TABLE);
	return false;
}

/* ---- the rule ---- */

static __always_inline __u64 unwind_word(void *table, __u32 at)
{
	const __u64 *word = bpf_map_lookup_elem(table, &at);

	return word ? *word : 0;
}

/* The rule that holds at an ELF address; GP_UNWIND_NONE too if the table makes no sense. */
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

/* ---- the frames ---- */

/* The caller's stack pointer. False: cannot be had (counted). */
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

/* The caller's rbp into w->bp. */
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

/* Marks the frame number `i`, from w->sp to cfa, if an anchor lies in it. */
static __always_inline void unwind_mark(struct unwind_walk *w, __u32 i, __u64 cfa)
{
	/* Not in w, whose values the verifier follows: it would look at each combination. */
	__u32 a = w->memory->anchor;

	if (!w->anchors || a >= w->anchors_nr || a >= GP_STACK_FRAMES || w->anchors[a] >= cfa)
		return;
	if (w->anchors[a] >= w->sp && i < GP_STACK_FRAMES)
		w->memory->event.marks[i / 64] |= 1ULL << i % 64;
	w->memory->anchor = a + 1;
}

/* From a frame that has a rule to its caller. */
static __always_inline long unwind_up(struct unwind_walk *w, __u64 rule)
{
	bool is_signal = GP_UNWIND_RULE_CFA_KIND(rule) == GP_UNWIND_SIGNAL;
	__u64 cfa, sp, words[2];

	if (!unwind_cfa(w, rule, &cfa))
		return 1;
	if (!is_signal)
		unwind_mark(w, w->nr - 1, cfa);
	if (is_signal) {
		/* The interrupted thread's rsp and rip lie side by side. */
		if (!walked_read(words, sizeof(words), cfa))
			return unwind_end(w, GP_LOSS_UNWIND_MEMORY);
		sp = words[0];
		if (!unwind_bp(w, rule, sp))
			return unwind_end(w, GP_LOSS_UNWIND_MEMORY);
	} else {
		/* Most often rbp and the return address do, too. */
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

static long unwind_one(__u32 n, struct unwind_walk *w)
{
	__u64 address = w->ip - w->called, rule;
	struct native_thread *memory = w->memory;
	__u32 i = w->nr;

	if (i >= GP_STACK_FRAMES) {
		w->flags |= GP_STACK_TRUNCATED;
		return 1;
	}
	memory->frames[i] = address;
	w->hash = gp_python_mix(w->hash, address);
	w->nr = i + 1;
	if (!unwind_enter(w, address))
		return 1;
	rule = unwind_rule(&w->range, address - w->range.bias);
	/* Nobody has called the code that a signal's handler returns to. */
	if (GP_UNWIND_RULE_CFA_KIND(rule) == GP_UNWIND_SIGNAL)
		memory->frames[i] = w->ip;
	switch (GP_UNWIND_RULE_CFA_KIND(rule)) {
	case GP_UNWIND_END:
		return 1;
	case GP_UNWIND_NONE:
		return unwind_end(w, GP_LOSS_UNWIND_RULE);
	case GP_UNWIND_HARD:
		return unwind_end(w, GP_LOSS_UNWIND_HARD);
	default:
		return unwind_up(w, rule);
	}
}

/* Fills w->memory->frames, w->nr, w->flags and w->hash; the rest has been set. */
static __always_inline void unwind_stack(struct unwind_walk *w)
{
	__builtin_memset(w->memory->event.marks, 0, sizeof(w->memory->event.marks));
	w->memory->anchor = 0;
	(void)bpf_loop(GP_STACK_FRAMES + 1, unwind_one, w, 0);
	w->hash = gp_python_mix_words(w->hash, w->memory->event.marks, GP_STACK_FRAMES / 64);
}

#endif /* GP_BPF_UNWIND_BPF_H */
