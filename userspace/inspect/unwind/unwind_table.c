/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Builds rows from rules. Neighbours with the same rule become one row; gaps between functions
 * become a row without a rule. Where functions overlap, which no linker produces, the earlier one
 * counts.
 */
#include "inspect/unwind/unwind_table.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "inspect/unwind/cfi.h"
#include "wire.h"

#include <errno.h>
#include <string.h>

#define ROWS_MAX  (16U << 20)
#define RULES_MAX (1U << 20)

#define ROW_ADDRESS(row) ((uint32_t)((row) >> 32))
#define ROW_RULE(row)	 ((uint32_t)(row))

struct rule_slot {
	uint64_t rule;
	uint32_t index; /* plus 1; 0: free */
};

struct builder {
	VEC(uint64_t) words; /* rows, while building */
	VEC(uint64_t) rules;
	struct hash rule_of; /* rule -> index */
	struct rule_slot recent[256];
	uint64_t end; /* addresses below it have rows */
	uint64_t hard_nr;
};

static int find_rule(struct builder *b, uint64_t rule, uint32_t *ret_index)
{
	struct rule_slot *slot = &b->recent[hash_mix(rule) & 255];
	const uint64_t *known;
	int err;

	if (slot->index && slot->rule == rule) {
		*ret_index = slot->index - 1;
		return 0;
	}
	known = hash__find(&b->rule_of, rule);
	if (known) {
		*ret_index = (uint32_t)*known;
	} else {
		if (b->rules.nr >= RULES_MAX)
			return -E2BIG;
		*ret_index = (uint32_t)b->rules.nr;
		err = hash__set(&b->rule_of, rule, *ret_index);
		err = err ? err : vec_push(&b->rules, rule);
		if (err)
			return err;
	}
	*slot = (struct rule_slot){.rule = rule, .index = *ret_index + 1};
	return 0;
}

static int add_row(uint32_t address, uint64_t rule, void *arg)
{
	struct builder *b = arg;
	uint64_t last = b->words.nr ? b->words.items[b->words.nr - 1] : 0;
	uint32_t index;
	int err;

	if (address < b->end)
		address = (uint32_t)b->end;
	err = find_rule(b, rule, &index);
	if (err)
		return err;
	if (b->words.nr && ROW_ADDRESS(last) == address)
		b->words.nr--;
	last = b->words.nr ? b->words.items[b->words.nr - 1] : 0;
	if (b->words.nr && ROW_RULE(last) == index)
		return 0;
	if (b->words.nr >= ROWS_MAX)
		return -E2BIG;
	return vec_push(&b->words, (uint64_t)address << 32 | index);
}

/* Adds the rows of one function, for the addresses that no earlier one covers. */
static int add_function(struct builder *b, const struct cfi *c, const struct cfi_fde *fde)
{
	uint64_t end = (uint64_t)fde->start + fde->bytes;
	int err;

	if (end <= b->end)
		return 0;
	err = cfi_rules(c, fde, add_row, b);
	if (err)
		return err;
	b->end = end;
	return add_row((uint32_t)end, GP_UNWIND_NONE, b);
}

static int add_functions(struct builder *b, const struct cfi *c)
{
	int err = add_row(0, GP_UNWIND_NONE, b);

	for (size_t i = 0; i < c->fdes.nr && !err; i++)
		err = add_function(b, c, &c->fdes.items[i]);
	return err;
}

/* Adds for each page the row that holds at its beginning and the first one behind its end. */
static int add_pages(struct builder *b, struct unwind_table *t)
{
	uint32_t rows_nr = t->rows_nr, row = 0, next;
	uint64_t end;
	int err;

	t->first_page = ROW_ADDRESS(b->words.items[rows_nr > 1]) >> GP_UNWIND_PAGE_SHIFT;
	t->pages_nr = (ROW_ADDRESS(b->words.items[rows_nr - 1]) >> GP_UNWIND_PAGE_SHIFT) -
		      t->first_page + 1;
	err = vec_reserve(&b->words, t->pages_nr);
	for (uint32_t i = 0; i < t->pages_nr && !err; i++) {
		end = (uint64_t)(t->first_page + i + 1) << GP_UNWIND_PAGE_SHIFT;
		for (next = row + 1; next < rows_nr && ROW_ADDRESS(b->words.items[next]) < end;)
			next++;
		err = vec_push(&b->words, (uint64_t)next << 32 | row);
		row = next - 1;
		if (next < rows_nr && ROW_ADDRESS(b->words.items[next]) == end)
			row = next;
	}
	return err;
}

static void cleanup_builder(struct builder *b)
{
	vec_done(&b->words);
	vec_done(&b->rules);
	hash__done(&b->rule_of);
}

static int finish(struct builder *b, struct unwind_table *t)
{
	int err = 0;

	t->rows_nr = (uint32_t)b->words.nr;
	t->rules_nr = (uint32_t)b->rules.nr;
	for (uint32_t i = 0; i < t->rows_nr; i++)
		t->hard_nr += b->rules.items[ROW_RULE(b->words.items[i])] == GP_UNWIND_HARD;
	for (uint32_t i = 0; i < t->rules_nr && !err; i++)
		err = vec_push(&b->words, b->rules.items[i]);
	err = err ? err : add_pages(b, t);
	if (err)
		return err;
	t->words_nr = (uint32_t)b->words.nr;
	t->words = TAKE(b->words.items);
	return 0;
}

int unwind_table__build(struct elf_file *f, struct unwind_table *ret_table)
{
	CLEANUP(cleanup_builder) struct builder b = {0};
	CLEANUP(cfi_done) struct cfi c = {0};
	struct unwind_table t = {0};
	int err = cfi_read(f, &c);

	err = err ? err : add_functions(&b, &c);
	t.skipped_nr = c.skipped_nr;
	err = err ? err : finish(&b, &t);
	if (!err)
		*ret_table = t;
	return err;
}

void unwind_table__done(struct unwind_table *t)
{
	free(t->words);
	*t = (struct unwind_table){0};
}

uint64_t unwind_table__rule(const struct unwind_table *t, uint64_t address)
{
	uint64_t page = address >> GP_UNWIND_PAGE_SHIFT;
	uint32_t low, high;

	if (page < t->first_page || page - t->first_page >= t->pages_nr)
		return GP_UNWIND_NONE;
	low = (uint32_t)t->words[t->rows_nr + t->rules_nr + page - t->first_page];
	high = (uint32_t)(t->words[t->rows_nr + t->rules_nr + page - t->first_page] >> 32);
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (ROW_ADDRESS(t->words[middle]) <= address)
			low = middle;
		else
			high = middle;
	}
	return t->words[t->rows_nr + ROW_RULE(t->words[low])];
}

bool unwind_table__valid(const struct unwind_table *t)
{
	const uint64_t *pages = t->words + t->rows_nr + t->rules_nr;

	if (!t->rows_nr || !t->rules_nr || t->rows_nr > ROWS_MAX || t->rules_nr > RULES_MAX ||
	    (uint64_t)t->rows_nr + t->rules_nr + t->pages_nr != t->words_nr)
		return false;
	for (uint32_t i = 0; i < t->rows_nr; i++)
		if (ROW_RULE(t->words[i]) >= t->rules_nr ||
		    (i && ROW_ADDRESS(t->words[i]) <= ROW_ADDRESS(t->words[i - 1])))
			return false;
	for (uint32_t i = 0; i < t->pages_nr; i++) {
		uint32_t low = (uint32_t)pages[i], high = (uint32_t)(pages[i] >> 32);

		if (low >= high || high > t->rows_nr ||
		    high - low > (1U << GP_UNWIND_PAGE_SHIFT) + 1)
			return false;
	}
	return true;
}
