/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kernel's walk of native stacks, compiled for the host, on tables, ranges, registers and stack
 * memory that the input makes up: tables that no builder makes, ranges in disorder, pointers to
 * where nothing is, circles. Each walk must come to its end, read nothing but what is there, tell
 * why it ended, and find the frames that a plain walk over the same tables finds.
 */
#include "fuzz/fuzz_seed.h"
#include "unwind.bpf.h"

#include <stdlib.h>
#include <string.h>

#define STACK	    0x7ffd00000000ULL
#define STACK_BYTES 4096
#define RANGES	    8
#define WORDS	    512

static struct {
	struct gp_unwind_range ranges[RANGES];
	uint64_t words[WORDS];
	uint8_t stack[STACK_BYTES];
	uint64_t ip, sp, bp;
	uint32_t words_nr;
	uint8_t ring_full;
} world;

static struct counters counts;
static struct native_thread thread;
static struct gp_ev_unwind asked;
static uint64_t asked_nr;

/* What stands for a map inside a map. */
static char ranges_map, table_map;

/* ---- the helpers ---- */

void *bpf_map_lookup_elem(void *map, const void *key)
{
	uint32_t i = *(const uint32_t *)key;

	if (map == (void *)&unwind_ranges)
		return i == 1 ? &ranges_map : NULL;
	if (map == (void *)&unwind_tables)
		return i == 1 ? &table_map : NULL;
	if (map == &ranges_map)
		return i < RANGES ? &world.ranges[i] : NULL;
	if (map == &table_map)
		return i < world.words_nr ? &world.words[i] : NULL;
	if (map == (void *)&counters)
		return &counts;
	abort();
}

long bpf_probe_read_user(void *to, __u32 bytes, const void *from)
{
	uint64_t at = (uint64_t)(uintptr_t)from - STACK;

	if (at > STACK_BYTES || bytes > STACK_BYTES - at)
		return -14;
	memcpy(to, world.stack + at, bytes);
	return 0;
}

long bpf_loop(__u32 nr, void *fn, void *arg, __u64 flags)
{
	long (*one)(__u32, void *) = (long (*)(__u32, void *))fn;
	__u32 i = 0;

	while (i < nr && !one(i, arg))
		i++;
	/* The walk ends itself. */
	if (i == nr)
		abort();
	return i;
}

void *bpf_ringbuf_reserve(void *map, __u64 bytes, __u64 flags)
{
	if (bytes != sizeof(asked))
		abort();
	return world.ring_full & 1 ? NULL : &asked;
}

void bpf_ringbuf_submit(void *event, __u64 flags)
{
	if (asked.head.kind != GP_EV_UNWIND || asked.head.process != 1)
		abort();
	asked_nr++;
}

__u64 bpf_ktime_get_ns(void)
{
	return 1;
}

__u64 bpf_get_current_pid_tgid(void)
{
	return 1;
}

__u64 bpf_ringbuf_query(void *map, __u64 flags)
{
	return 0;
}

/* ---- a plain walk ---- */

static bool get(uint64_t address, uint64_t *ret_word)
{
	return !bpf_probe_read_user(ret_word, 8, (const void *)(uintptr_t)address);
}

static uint64_t word(uint64_t at)
{
	return (uint32_t)at < world.words_nr ? world.words[(uint32_t)at] : 0;
}

/* By the halvings that the format promises to be enough; what they find in disorder is theirs. */
static const struct gp_unwind_range *find_range(uint64_t address)
{
	uint64_t nr = world.ranges[0].start;
	uint32_t low = 0, high = (uint32_t)nr + 1;

	if (nr > GP_UNWIND_RANGES_MAX)
		return NULL;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (middle >= RANGES)
			return NULL;
		if (world.ranges[middle].start <= address)
			low = middle;
		else
			high = middle;
	}
	if (!low || world.ranges[low].start > address || address >= world.ranges[low].end)
		return NULL;
	return &world.ranges[low];
}

static uint64_t find_rule(const struct gp_unwind_range *r, uint64_t address)
{
	uint64_t page = (address >> GP_UNWIND_PAGE_SHIFT) - r->first_page;
	uint32_t low, high, steps = 0;

	if (page >= r->pages_nr || r->table != 1)
		return GP_UNWIND_NONE;
	low = (uint32_t)word(r->pages_at + page);
	high = (uint32_t)(word(r->pages_at + page) >> 32);
	while (high - low > 1 && steps++ < UNWIND_ROW_STEPS) {
		uint32_t middle = low + (high - low) / 2;

		if (word(middle) >> 32 <= address)
			low = middle;
		else
			high = middle;
	}
	return word((uint64_t)r->rules_at + (uint32_t)word(low));
}

struct plain {
	uint64_t ip, sp, bp;
	bool called, lost;
};

/* False: it goes no further. */
static bool plain_up(struct plain *p, uint64_t rule)
{
	uint8_t kind = GP_UNWIND_RULE_CFA_KIND(rule), how = GP_UNWIND_RULE_BP_KIND(rule);
	uint64_t offset = (uint64_t)GP_UNWIND_RULE_BP(rule), cfa, ra, sp, bp = p->bp;
	bool by_bp = kind != GP_UNWIND_SP && kind != GP_UNWIND_PLT && kind != GP_UNWIND_SIGNAL;

	if ((kind == GP_UNWIND_BP || kind == GP_UNWIND_BP_AT) && p->lost)
		return false;
	cfa = (by_bp ? p->bp : p->sp) + (uint64_t)GP_UNWIND_RULE_CFA(rule);
	if (kind == GP_UNWIND_PLT && (p->ip & 15) >= offset)
		cfa += 8;
	if (kind == GP_UNWIND_BP_AT && !get(cfa, &cfa))
		return false;
	sp = cfa;
	if (kind == GP_UNWIND_SIGNAL) {
		if (!get(cfa, &sp) || !get(cfa + 8, &ra))
			return false;
	} else if (cfa <= p->sp || !get(cfa - 16, &ra) || !get(cfa - 8, &ra)) {
		return false;
	}
	if (how == GP_UNWIND_BP_CFA || how == GP_UNWIND_BP_BP || how == GP_UNWIND_BP_SP) {
		uint64_t from = how == GP_UNWIND_BP_CFA	 ? sp
				: how == GP_UNWIND_BP_BP ? p->bp
							 : p->sp;

		if (!get(from + offset, &bp))
			return false;
	}
	p->lost = how > GP_UNWIND_BP_SP || (p->lost && how == GP_UNWIND_BP_SAME);
	*p = (struct plain){
		.ip = ra, .sp = sp, .bp = bp, .called = kind != GP_UNWIND_SIGNAL, .lost = p->lost};
	return ra != 0;
}

/* Whether it came to the outermost frame. */
static bool plain_walk(uint64_t frames[GP_STACK_FRAMES], uint32_t *ret_nr)
{
	struct plain p = {.ip = world.ip, .sp = world.sp, .bp = world.bp};
	struct gp_unwind_range last = {0};
	const struct gp_unwind_range *r;
	uint64_t address, rule;

	for (*ret_nr = 0; *ret_nr < GP_STACK_FRAMES;) {
		address = p.ip - p.called;
		frames[(*ret_nr)++] = address;
		if (address - last.start >= last.end - last.start) {
			r = find_range(address);
			if (!r)
				return false;
			last = *r;
			if (!r->table)
				return false;
		}
		rule = find_rule(&last, address - last.bias);
		if (GP_UNWIND_RULE_CFA_KIND(rule) == GP_UNWIND_SIGNAL)
			frames[*ret_nr - 1] = p.ip;
		if (GP_UNWIND_RULE_CFA_KIND(rule) == GP_UNWIND_END)
			return true;
		if (GP_UNWIND_RULE_CFA_KIND(rule) <= GP_UNWIND_HARD || !plain_up(&p, rule))
			return false;
	}
	return false;
}

/* ---- the input ---- */

/* Numbers near what makes sense. */
static void make_world(const uint8_t *data, size_t bytes)
{
	size_t at = bytes < sizeof(world) ? bytes : sizeof(world);

	memset(&world, 0, sizeof(world));
	memcpy(&world, data, at);
	world.words_nr %= WORDS + 1;
	if (data[0] & 1)
		world.ranges[0].start %= RANGES;
	world.ip %= 1 << 20;
	if (data[0] & 2)
		world.sp = STACK + world.sp % STACK_BYTES;
	if (data[0] & 4)
		world.bp = STACK + world.bp % STACK_BYTES;
	for (size_t i = 0; i < RANGES; i++)
		world.ranges[i].table %= 3;
	/* Pointers into the stack, and small code addresses. */
	for (size_t i = 0; i + 8 <= STACK_BYTES && data[0] & 8; i += 8) {
		uint64_t w;

		memcpy(&w, world.stack + i, 8);
		w = w & 1 ? STACK + w % STACK_BYTES : w % (1 << 20);
		memcpy(world.stack + i, &w, 8);
	}
}

/* One file of two functions, and a stack on which they call each other. */
static void make_seed(void)
{
	static const struct gp_unwind_range range = {.start = 0x1000,
						     .end = 0x3000,
						     .bias = 0,
						     .table = 1,
						     .rules_at = 4,
						     .pages_at = 12,
						     .first_page = 0x1000 >> GP_UNWIND_PAGE_SHIFT,
						     .pages_nr = 0x2000 >> GP_UNWIND_PAGE_SHIFT};
	uint64_t *stack = (uint64_t *)world.stack;

	memset(&world, 0, sizeof(world));
	world.ranges[0].start = 9;
	world.ranges[1] = range;
	for (uint64_t i = 0; i < 4; i++)
		world.words[i] = 0x1000 * i << 32 | i;
	world.words[5] = GP_UNWIND_RULE(GP_UNWIND_SP, GP_UNWIND_BP_CFA, 16, -16);
	world.words[6] = GP_UNWIND_RULE(GP_UNWIND_BP, GP_UNWIND_BP_CFA, 16, -16);
	world.words[7] = GP_UNWIND_END;
	world.words[8] = GP_UNWIND_RULE(GP_UNWIND_SIGNAL, GP_UNWIND_BP_SP, 160, 120);
	world.words[9] = GP_UNWIND_RULE(GP_UNWIND_PLT, GP_UNWIND_BP_SAME, 8, 11);
	world.words[10] = GP_UNWIND_RULE(GP_UNWIND_BP_AT, GP_UNWIND_BP_BP, -8, 0);
	for (uint64_t i = 0; i < range.pages_nr; i++)
		world.words[12 + i] = i < range.pages_nr / 2 ? 2ULL << 32 | 1 : 3ULL << 32 | 2;
	world.words_nr = WORDS;
	world.ip = 0x1010;
	for (uint64_t i = 0; i + 1 < STACK_BYTES / 8; i += 2) {
		stack[i] = STACK + 8 * i + 16;
		stack[i + 1] = i < 64 ? 0x1100 + i : 0x2100 + i;
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	make_seed();
	fuzz_seed(*argc, *argv, "stack", &world, sizeof(world));
	return 0;
}

static void check_walk(bool whole, const uint64_t *frames, uint32_t nr)
{
	const struct unwind_walk *w = &thread.walk;
	uint64_t reported =
		counts.losses[GP_LOSS_UNWIND_TABLE] + counts.losses[GP_LOSS_UNWIND_RULE] +
		counts.losses[GP_LOSS_UNWIND_HARD] + counts.losses[GP_LOSS_UNWIND_MEMORY];

	if (w->nr != nr || memcmp(thread.frames, frames, nr * sizeof(*frames)))
		abort();
	if (whole != !w->flags || reported != !!(w->flags & GP_STACK_INCOMPLETE))
		abort();
	if ((w->flags & GP_STACK_TRUNCATED) && nr != GP_STACK_FRAMES)
		abort();
	if (asked_nr && (!counts.losses[GP_LOSS_UNWIND_TABLE] || world.ring_full & 1))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint64_t frames[GP_STACK_FRAMES];
	uint32_t nr;
	bool whole;

	if (!bytes)
		return 0;
	make_world(data, bytes);
	memset(&counts, 0, sizeof(counts));
	asked_nr = 0;
	whole = plain_walk(frames, &nr);
	thread.walk =
		(struct unwind_walk){.ip = world.ip, .sp = world.sp, .bp = world.bp, .process = 1};
	unwind_stack(&thread);
	check_walk(whole, frames, nr);
	return 0;
}
