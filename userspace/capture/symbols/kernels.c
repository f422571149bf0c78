/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A file's functions are sorted by address when the first kernel of it is launched. Addresses come
 * from the target: only one that is the very beginning of a function has a name.
 */
#include "capture/symbols/kernels.h"

#include "base/intern.h"
#include "capture/symbols/file_users.h"
#include "common/clock.h"
#include "inspect/elf/elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/* Addresses looked up, so that a target that makes them up has no use of it. */
#define KERNELS_MAX 65536
#define FILES_MAX   1024

struct symbol {
	uint64_t address;
	const char *name; /* the file's */
};

struct kernel_symbols {
	dev_t device;
	ino_t inode;
	struct elf_file *file; /* NULL: none, or not read */
	VEC(struct symbol) symbols;
	bool is_read;	   /* what it has, if anything */
	uint64_t again_ns; /* it could not be read: not before then */
	uint32_t idle_nr;  /* see file_users__let_go() */
};

static void free_file(struct kernel_symbols *f)
{
	if (!f)
		return;
	vec_done(&f->symbols);
	elf_file__free(f->file);
	free(f);
}

void kernels__done(struct kernels *k)
{
	for (size_t i = 0; i < k->files.nr; i++)
		free_file(k->files.items[i]);
	vec_done(&k->files);
	vec_done(&k->names);
	hash__done(&k->known);
	hash__done(&k->handles);
	intern__free(k->texts);
}

void kernels__poll(struct kernels *k, const struct file_users *users)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->files.nr; i++) {
		struct kernel_symbols *f = k->files.items[i];

		if (file_users__let_go(users, f->device, f->inode, &f->idle_nr))
			free_file(f);
		else
			k->files.items[kept++] = f;
	}
	k->files.nr = kept;
}

static int take_symbol(const struct elf_symbol *symbol, void *arg)
{
	struct kernel_symbols *f = arg;
	struct symbol one = {symbol->address, symbol->name};

	return vec_push(&f->symbols, one);
}

static int compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int read_symbols(struct kernel_symbols *f, const char *path)
{
	int err = elf_file__open(path, NULL, &f->file);

	if (err)
		return err;
	err = elf_file__each_symbol(f->file, "", take_symbol, f);
	return err ? err : elf_file__error(f->file);
}

/* Reads it if that is due. */
static void read_file(struct kernel_symbols *f, const char *path)
{
	int err;

	if (f->is_read || (f->again_ns && clock_now_ns() < f->again_ns))
		return;
	err = read_symbols(f, path);
	f->is_read = !err || elf_error_stays(err);
	f->again_ns = clock_now_ns() + SECOND_NS;
	if (err) {
		vec_done(&f->symbols);
		elf_file__free(f->file);
		f->file = NULL;
	}
	if (f->symbols.nr)
		qsort(f->symbols.items, f->symbols.nr, sizeof(*f->symbols.items), compare);
}

/* NULL: there are too many, or out of memory. */
static struct kernel_symbols *file_of(struct kernels *k, const struct target_library *lib)
{
	struct kernel_symbols *f;

	for (size_t i = 0; i < k->files.nr; i++)
		if (k->files.items[i]->device == lib->device &&
		    k->files.items[i]->inode == lib->inode)
			return k->files.items[i];
	f = k->files.nr < FILES_MAX ? calloc(1, sizeof(*f)) : NULL;
	if (!f || vec_push(&k->files, f)) {
		free(f);
		return NULL;
	}
	f->device = lib->device;
	f->inode = lib->inode;
	return f;
}

/* NULL: out of memory. */
static const char *keep_text(struct kernels *k, const char *text)
{
	if (!k->texts)
		k->texts = intern__new();
	return k->texts ? intern__str(k->texts, text) : NULL;
}

/* The name, NULL: it has none. 0, -EAGAIN: that is not known now; or -ENOMEM. */
static int look_up(struct kernels *k, const struct target_process *p, uint64_t function,
		   const char **ret_name)
{
	const struct target_library *lib = NULL;
	size_t low = 0, high;
	struct kernel_symbols *f;
	uint64_t address;

	for (size_t i = 0; i < p->libraries_nr && !lib; i++)
		if (function >= p->libraries[i].start && function < p->libraries[i].end)
			lib = &p->libraries[i];
	*ret_name = NULL;
	if (!lib)
		return 0;
	f = file_of(k, lib);
	if (f) {
		f->idle_nr = 0;
		read_file(f, lib->open_path);
	}
	if (!f || !f->is_read || !lib->base_known)
		return -EAGAIN;
	address = function - lib->base;
	high = f->symbols.nr;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->symbols.items[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == f->symbols.nr || f->symbols.items[low].address != address)
		return 0;
	*ret_name = keep_text(k, f->symbols.items[low].name);
	return *ret_name ? 0 : -ENOMEM;
}

static uint64_t key_of(const struct target_process *p, uint64_t value)
{
	return hash_mix((uint64_t)(uint32_t)p->pid) ^ value;
}

const char *kernels__name(struct kernels *k, const struct target_process *p, uint64_t function)
{
	uint64_t key = key_of(p, function);
	const uint64_t *known = hash__find(&k->known, key);
	const char *name;

	if (known)
		return *known ? k->names.items[*known - 1] : NULL;
	if (!function)
		return NULL;
	if (k->known.nr >= KERNELS_MAX || look_up(k, p, function, &name) ||
	    (name && vec_push(&k->names, name))) {
		k->nameless_nr++;
		return NULL;
	}
	(void)hash__set(&k->known, key, name ? k->names.nr : 0);
	return name;
}

int kernels__learn(struct kernels *k, const struct target_process *p, uint64_t handle,
		   const char *name, uint64_t of)
{
	const char *text = *name ? keep_text(k, name) : kernels__handle(k, p, of);

	if (*name && !text)
		return -ENOMEM;
	if (!handle || !text)
		return 0;
	if (k->handles.nr >= KERNELS_MAX) {
		k->nameless_nr++;
		return 0;
	}
	if (vec_push(&k->names, text) || hash__set(&k->handles, key_of(p, handle), k->names.nr))
		return -ENOMEM;
	return 0;
}

const char *kernels__handle(const struct kernels *k, const struct target_process *p,
			    uint64_t handle)
{
	const uint64_t *known = handle ? hash__find(&k->handles, key_of(p, handle)) : NULL;

	return known ? k->names.items[*known - 1] : NULL;
}
