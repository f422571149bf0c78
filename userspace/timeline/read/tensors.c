/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads what ops were called with, and PyTorch's schemas. Finds which overloads of an op fit what
 * it was called with, as torch.profiler does. Where none fits, the op's inputs count as written.
 */
#include "timeline/model/data_flow.h"
#include "timeline/read/context.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/banned.h"

/* More words, and more overloads, than any honest recording holds. */
#define WORDS_MAX      (1ULL << 31)
#define SCHEMAS_MAX    (1U << 22)
#define NAME_BYTES_MAX 256

/* ---- reading ---- */

static int add_words(struct build *b, const uint64_t *words, uint32_t nr)
{
	int err = vec_reserve(&b->tensors.words, nr);

	if (err || !nr)
		return err;
	memcpy(b->tensors.words.items + b->tensors.words.nr, words, nr * sizeof(*words));
	b->tensors.words.nr += nr;
	return 0;
}

/* Moves the op's words to the end of all words, where they can grow. */
static int move_to_end(struct build *b, struct raw_tensors *t)
{
	uint32_t from = t->at;
	int err = vec_reserve(&b->tensors.words, t->nr);

	if (err || from + t->nr == b->tensors.words.nr)
		return err;
	t->at = (uint32_t)b->tensors.words.nr;
	return add_words(b, b->tensors.words.items + from, t->nr);
}

int build_tensors(struct build *b, const struct gp_ev_tensors *e, size_t bytes)
{
	struct raw_tensors fresh = {.instance = e->instance, .at = (uint32_t)b->tensors.words.nr};
	const uint64_t *known = hash__find(&b->tensors.by_instance, e->instance);
	struct raw_tensors *t = known ? &b->tensors.of_ops.items[*known] : &fresh;
	int err = 0;

	b->t->has_categories = true;
	if (e->words_nr > (bytes - sizeof(*e)) / 8 || e->first != t->nr || !e->instance ||
	    t->nr + (uint64_t)e->words_nr > GP_TENSOR_WORDS_MAX ||
	    b->tensors.words.nr + 2 * GP_TENSOR_WORDS_MAX > WORDS_MAX) {
		b->tensors.invalid_nr++;
		return 0;
	}
	if (known)
		err = move_to_end(b, t);
	if (!err)
		err = add_words(b, (const uint64_t *)(e + 1), e->words_nr);
	t->nr += e->words_nr;
	if (err || known)
		return err;
	err = hash__set(&b->tensors.by_instance, e->instance, b->tensors.of_ops.nr);
	return err ? err : vec_push(&b->tensors.of_ops, fresh);
}

/* Names are interned, so the address is enough. */
static uint64_t name_key(uint32_t process, const char *name)
{
	return hash_mix((uintptr_t)name ^ hash_mix(process + 1ULL));
}

static int add_schema(struct build *b, uint32_t process, const char *line, size_t bytes)
{
	const char *space = memchr(line, ' ', bytes), *name, *letters;
	struct raw_schema s = {.next = TL_NONE};
	const uint64_t *first;
	uint64_t key;

	if (!space || b->schemas.all.nr >= SCHEMAS_MAX || space - line > NAME_BYTES_MAX ||
	    line + bytes - space > TENSORS_INPUTS_MAX)
		return 0;
	name = intern__get(b->t->private->intern, line, (size_t)(space - line));
	letters = intern__get(b->t->private->intern, space + 1, bytes - (size_t)(space + 1 - line));
	if (!name || !letters)
		return -ENOMEM;
	key = name_key(process, name);
	first = hash__find(&b->schemas.of_name, key);
	s.letters = letters;
	s.next = first ? (uint32_t)*first : TL_NONE;
	if (hash__set(&b->schemas.of_name, key, b->schemas.all.nr))
		return -ENOMEM;
	return vec_push(&b->schemas.all, s);
}

int build_schemas(struct build *b, const struct gp_ev_schemas *e, size_t bytes)
{
	const char *at = (const char *)(e + 1), *end = at + e->bytes;
	uint32_t process = build_process_of(b, &e->head);
	int err = 0;

	if (process == TL_NONE)
		return b->err;
	if (e->bytes > bytes - sizeof(*e)) {
		b->tensors.invalid_nr++;
		return 0;
	}
	while (at < end && !err) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		newline = newline ? newline : end;
		err = add_schema(b, process, at, (size_t)(newline - at));
		at = newline + 1;
	}
	return err;
}

/* ---- an op's words ---- */

struct tensors_reader tensors_of(const struct build *b, uint32_t tensors)
{
	const struct raw_tensors *t;

	if (tensors == TL_NONE)
		return (struct tensors_reader){0};
	t = &b->tensors.of_ops.items[tensors];
	return (struct tensors_reader){b->tensors.words.items, t->at, t->at + t->nr};
}

/* Takes one tensor. False: there is none. */
static bool take_tensor(struct tensors_reader *r, bool *ret_stored)
{
	unsigned int what = r->at < r->end ? GP_TENSOR_WHAT(r->words[r->at]) : GP_TENSOR_CUT;

	*ret_stored = what == GP_TENSOR_STORED;
	if (what == GP_TENSOR_STORED && r->at + 1 < r->end)
		r->at += 2;
	else if (what == GP_TENSOR_NONE)
		r->at++;
	else
		return false;
	return true;
}

static bool take_list(struct tensors_reader *r, uint32_t nr, char *ret_letter)
{
	bool stored;

	*ret_letter = 'l';
	for (; nr; nr--) {
		if (!take_tensor(r, &stored))
			return false;
		if (!stored)
			*ret_letter = OBSERVED_MIXED;
	}
	return true;
}

static bool take_input(struct tensors_reader *r, char *ret_letter, uint32_t *ret_from)
{
	uint64_t word = r->words[r->at];
	bool stored;

	if (GP_TENSOR_WHAT(word) == GP_TENSOR_NOT) {
		*ret_letter = 'o';
		*ret_from = ++r->at;
		return true;
	}
	if (GP_TENSOR_WHAT(word) == GP_TENSOR_LIST) {
		*ret_from = ++r->at;
		return take_list(r, (uint32_t)word, ret_letter);
	}
	*ret_from = r->at;
	if (!take_tensor(r, &stored))
		return false;
	*ret_letter = stored ? 't' : OBSERVED_NONE;
	return true;
}

bool tensors_reader__next(struct tensors_reader *r, char *ret_letter, uint32_t *ret_from,
			  uint32_t *ret_to)
{
	uint32_t begin = r->at;

	if (begin >= r->end)
		return false;
	if (!take_input(r, ret_letter, ret_from)) {
		r->at = begin;
		return false;
	}
	*ret_to = r->at;
	return true;
}

uint32_t tensors_next_stored(const uint64_t *words, uint32_t *at, uint32_t end)
{
	while (*at < end) {
		uint32_t here = *at;
		bool stored = GP_TENSOR_WHAT(words[here]) == GP_TENSOR_STORED;

		*at += stored ? 2 : 1;
		if (stored)
			return here;
	}
	return TL_NONE;
}

/* ---- schemas ---- */

static uint32_t schema_named(const struct build *b, uint32_t process, const char *name)
{
	const uint64_t *at;

	name = intern__str(b->t->private->intern, name);
	at = name ? hash__find(&b->schemas.of_name, name_key(process, name)) : NULL;
	return at ? (uint32_t)*at : TL_NONE;
}

/* Finds the first overload of an op's name, or TL_NONE. */
static uint32_t schema_of(struct build *b, uint32_t op)
{
	static const char aten[] = "aten::";
	const char *name = b->t->ops.items[op].name;
	uint32_t process = b->t->threads.items[b->t->ops.items[op].thread].process;
	uint64_t key = name_key(process, name);
	const uint64_t *known = hash__find(&b->schemas.of_op, key);
	bool is_aten = !strncmp(name, aten, strlen(aten));
	uint32_t found;

	if (known)
		return (uint32_t)*known;
	found = schema_named(b, process, is_aten ? name + strlen(aten) : name);
	b->schemas.missing_nr += is_aten && found == TL_NONE;
	/* Out of memory, the next op looks it up again. */
	(void)hash__set(&b->schemas.of_op, key, found);
	return found;
}

static bool letter_fits(char observed, char wanted)
{
	switch (tolower((unsigned char)wanted)) {
	case 't':
		return observed == 't';
	case 'q':
		return observed == 't' || observed == OBSERVED_NONE || observed == 'o';
	case 'l':
		return observed == 'l';
	case 'k':
		return observed == 'l' || observed == OBSERVED_NONE || observed == 'o';
	default:
		return observed == 'o' || observed == OBSERVED_NONE;
	}
}

static bool fits(const char *observed, size_t nr, const char *letters)
{
	if (strlen(letters) != nr)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (!letter_fits(observed[i], letters[i]))
			return false;
	return true;
}

bool tensors_match(struct build *b, uint32_t op, uint32_t tensors,
		   bool ret_writes[TENSORS_INPUTS_MAX])
{
	struct tensors_reader r = tensors_of(b, tensors);
	char observed[TENSORS_INPUTS_MAX];
	uint32_t from, to;
	size_t nr = 0;
	bool any = false;

	while (nr < TENSORS_INPUTS_MAX && tensors_reader__next(&r, &observed[nr], &from, &to))
		nr++;
	if (r.at < r.end)
		return false;
	memset(ret_writes, 0, TENSORS_INPUTS_MAX * sizeof(*ret_writes));
	for (uint32_t s = schema_of(b, op); s != TL_NONE; s = b->schemas.all.items[s].next) {
		const char *letters = b->schemas.all.items[s].letters;

		if (!fits(observed, nr, letters))
			continue;
		any = true;
		for (size_t i = 0; i < nr; i++)
			ret_writes[i] |= isupper((unsigned char)letters[i]) != 0;
	}
	return any;
}
