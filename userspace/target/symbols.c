/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Symbols sorted by address. Functions may lie within each other (entry points in hand-written
 * code), so a look-up goes back over a few that end too early.
 */
#include "target/symbols.h"

#include "base/cleanup.h"
#include "base/vec.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DEBUG_DIR "/usr/lib/debug/.build-id"
#define LOOK_BACK 8

struct symbol {
	uint64_t address;
	uint64_t bytes;
	const char *name;
};

struct symbols {
	struct elf_file *file;
	struct elf_file *debug; /* NULL: none */
	VEC(struct symbol) list;
};

static int add_symbol(const struct elf_symbol *e, void *arg)
{
	struct symbols *s = arg;
	struct symbol symbol = {.address = e->address, .bytes = e->bytes, .name = e->name};

	/* Without a size it cannot be told what belongs to it. */
	return e->bytes ? vec_push(&s->list, symbol) : 0;
}

static size_t underscores(const char *name)
{
	/* Those of a mangled name say nothing. */
	return name[0] == '_' && name[1] == 'Z' ? 0 : strspn(name, "_");
}

/* By address; of one address the name that is to be shown comes last, and so is found first. */
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

/* The debug file that the machine has for this very build. NULL: none. */
static struct elf_file *open_debug(const struct elf_file *f)
{
	const char *id = elf_file__build_id(f);
	struct elf_file *debug;
	char path[PATH_MAX];

	if (strlen(id) < 3 || snprintf(path, sizeof(path), DEBUG_DIR "/%.2s/%s.debug", id,
				       id + 2) >= (int)sizeof(path))
		return NULL;
	if (elf_file__open(path, NULL, &debug))
		return NULL;
	if (!strcmp(elf_file__build_id(debug), id))
		return debug;
	elf_file__free(debug);
	return NULL;
}

int symbols__new(struct elf_file *f, struct symbols **ret_symbols)
{
	struct symbols *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		elf_file__free(f);
		return -ENOMEM;
	}
	s->file = f;
	s->debug = open_debug(f);
	err = elf_file__each_symbol(f, "", add_symbol, s);
	if (!err && s->debug)
		err = elf_file__each_symbol(s->debug, "", add_symbol, s);
	if (err) {
		symbols__free(s);
		return -ENOMEM;
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

const char *symbols__build_id(const struct symbols *s)
{
	return elf_file__build_id(s->file);
}
