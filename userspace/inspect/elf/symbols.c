/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Symbols sorted by address. Functions may be nested (entry points in hand-written code), so a
 * look-up goes back over a few that end too early.
 */
#include "inspect/elf/symbols.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "inspect/elf/debug_file.h"
#include "inspect/elf/elf_image.h"
#include "inspect/elf/line_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_BACK 8

struct symbol {
	uint64_t address;
	uint64_t bytes;
	const char *name;
};

struct symbols {
	struct elf_file *file;
	struct elf_file *debug; /* NULL: none */
	struct elf_file *mini;	/* NULL: none, or not needed */
	VEC(struct symbol) list;
};

static int add_symbol(const struct elf_symbol *e, void *arg)
{
	struct symbols *s = arg;
	struct symbol symbol = {.address = e->address, .bytes = e->bytes, .name = e->name};

	/* Without a size its extent is unknown. */
	return e->bytes ? vec_push(&s->list, symbol) : 0;
}

/* Adds the symbols of another file that describes the code of s->file; NULL: none. */
static int add_symbols_of(struct symbols *s, struct elf_file *about)
{
	if (!about)
		return 0;
	elf_file__set_code(about, s->file);
	return elf_file__each_symbol(about, "", add_symbol, s);
}

static size_t underscores(const char *name)
{
	/* In a mangled name they mean nothing. */
	return name[0] == '_' && name[1] == 'Z' ? 0 : strspn(name, "_");
}

/* Compares by address; of those at one address the name to show comes last, so it is found first.
 */
static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	size_t x_bytes, y_bytes;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (underscores(x->name) != underscores(y->name))
		return underscores(x->name) > underscores(y->name) ? -1 : 1;
	x_bytes = strlen(x->name);
	y_bytes = strlen(y->name);
	if (x_bytes != y_bytes)
		return x_bytes > y_bytes ? -1 : 1;
	return -strcmp(x->name, y->name);
}

int symbols__new(struct elf_file *f, const char *path, struct symbols **ret_symbols)
{
	struct symbols *s = calloc(1, sizeof(*s));
	int err, debug_err, mini_err = 0;

	if (!s) {
		elf_file__free(f);
		return -ENOMEM;
	}
	s->file = f;
	debug_err = debug_file_open(f, path, &s->debug);
	if (debug_err)
		s->debug = NULL;
	if (!s->debug)
		mini_err = elf_image__mini_debug(f, &s->mini);
	if (mini_err)
		s->mini = NULL;
	err = elf_file__each_symbol(f, "", add_symbol, s);
	err = err ? err : add_symbols_of(s, s->debug);
	err = err ? err : add_symbols_of(s, s->mini);
	err = err ? err : elf_file__error(f);
	if (!err && elf_error_is_ours(debug_err))
		err = debug_err;
	if (!err && elf_error_is_ours(mini_err))
		err = mini_err;
	if (err) {
		symbols__free(s);
		return err;
	}
	if (s->list.nr)
		qsort(s->list.items, s->list.nr, sizeof(*s->list.items), compare_symbols);
	*ret_symbols = s;
	return 0;
}

void symbols__free(struct symbols *s)
{
	if (!s)
		return;
	vec_done(&s->list);
	elf_file__free(s->debug);
	elf_file__free(s->mini);
	elf_file__free(s->file);
	free(s);
}

const char *symbols__name(const struct symbols *s, uint64_t address)
{
	size_t low = 0, high = s->list.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->list.items[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < LOOK_BACK && i < low; i++) {
		const struct symbol *x = &s->list.items[low - 1 - i];

		if (address - x->address < x->bytes)
			return x->name;
	}
	return NULL;
}

const struct elf_file *symbols__lines_file(struct symbols *s)
{
	if (line_reader_can(s->file))
		return s->file;
	return s->debug && line_reader_can(s->debug) ? s->debug : NULL;
}

const char *symbols__build_id(const struct symbols *s)
{
	return elf_file__build_id(s->file);
}
