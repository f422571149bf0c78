/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Files are told apart by device, inode and path. One that is no ELF file has no symbols, and its
 * frames are addresses; one that cannot be read now is tried again a second later. One that nobody
 * maps any more is closed after a while and keeps its number: another file may get its inode.
 */
#include "capture/symbols/native_code.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "capture/symbols/file_users.h"
#include "common/clock.h"
#include "inspect/access/process_file.h"
#include "inspect/elf/elf.h"
#include "inspect/elf/symbols.h"
#include "inspect/elf/vdso.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_MODULE UINT32_MAX

/* What a file that was changed, or another one, hardly has, too. All zero: of no file. */
struct stamp {
	uint64_t bytes, modified_ns;
};

struct module {
	dev_t device;
	ino_t inode;
	char *path;
	struct symbols *symbols; /* NULL: none, or not read */
	bool is_read;		 /* what it has, if anything */
	uint64_t again_ns;	 /* it could not be read: not before then */
	struct stamp stamp;	 /* when it was read */
	bool was_read;
	bool replaced;	  /* another file has its place by now */
	uint32_t idle_nr; /* see file_users__let_go() */
};

/* Where the vDSO is in a process. */
struct vdso_at {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t start, end; /* end 0: it has none */
};

struct native_codes {
	VEC(struct module) modules;
	VEC(struct vdso_at) vdsos;
};

struct native_codes *native_codes__new(void)
{
	return calloc(1, sizeof(struct native_codes));
}

void native_codes__free(struct native_codes *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->modules.nr; i++) {
		symbols__free(c->modules.items[i].symbols);
		free(c->modules.items[i].path);
	}
	vec_done(&c->modules);
	vec_done(&c->vdsos);
	free(c);
}

static const struct target_library *find_library(const struct target_process *p, uint64_t address)
{
	size_t low = 0, high = p->libraries_nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->libraries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= p->libraries[low - 1].end)
		return NULL;
	return &p->libraries[low - 1];
}

static int read_symbols(const char *path, const char *open_path, struct symbols **ret_symbols,
			struct stamp *ret_stamp)
{
	struct elf_file *f;
	struct stat st = {0};
	int err;

	err = open_path ? process_file_stat(open_path, &st) : 0;
	if (err)
		return err;
	err = open_path ? elf_file__open(open_path, NULL, &f) : vdso_open(&f);
	err = err ? err : symbols__new(f, path, ret_symbols);
	ret_stamp->bytes = (uint64_t)st.st_size;
	ret_stamp->modified_ns =
		(uint64_t)st.st_mtim.tv_sec * SECOND_NS + (uint64_t)st.st_mtim.tv_nsec;
	return err;
}

static void forget_symbols(struct module *m)
{
	symbols__free(TAKE(m->symbols));
	m->is_read = false;
	m->again_ns = 0;
}

/* Reads it if that is due. `open_path` NULL: the vDSO. 0, -ESTALE: it is not the file that it was;
 * or -ENOMEM. */
static int read_module(struct module *m, const char *open_path)
{
	struct stamp stamp = {0};
	int err;

	if (m->is_read || (m->again_ns && clock_now_ns() < m->again_ns))
		return 0;
	err = read_symbols(m->path, open_path, &m->symbols, &stamp);
	if (err == -ENOMEM)
		return err;
	m->is_read = !err || elf_error_stays(err);
	m->again_ns = clock_now_ns() + SECOND_NS;
	if (m->is_read && m->was_read && memcmp(&stamp, &m->stamp, sizeof(stamp))) {
		forget_symbols(m);
		m->replaced = true;
		return -ESTALE;
	}
	if (m->is_read) {
		m->was_read = true;
		m->stamp = stamp;
	}
	if (err)
		log_debug("%s: no symbols: %s", m->path, strerror(-err));
	return 0;
}

/* The module of a file, which is new or was there. 0 or -ENOMEM. */
static int find_module(struct native_codes *c, dev_t device, ino_t inode, const char *path,
		       uint32_t *ret_module)
{
	struct module fresh = {.device = device, .inode = inode};

	for (size_t i = 0; i < c->modules.nr; i++) {
		const struct module *m = &c->modules.items[i];

		if (m->inode == inode && m->device == device && !m->replaced &&
		    !strcmp(m->path, path)) {
			*ret_module = (uint32_t)i;
			return 0;
		}
	}
	fresh.path = strdup(path);
	if (!fresh.path || vec_push(&c->modules, fresh)) {
		free(fresh.path);
		return -ENOMEM;
	}
	*ret_module = (uint32_t)c->modules.nr - 1;
	return 0;
}

/* The same, and what it has is read if that can be done. `open_path` NULL: the vDSO. */
static int use_module(struct native_codes *c, dev_t device, ino_t inode, const char *path,
		      const char *open_path, uint32_t *ret_module)
{
	int err;

	do {
		err = find_module(c, device, inode, path, ret_module);
		err = err ? err : read_module(&c->modules.items[*ret_module], open_path);
	} while (err == -ESTALE);
	if (!err)
		c->modules.items[*ret_module].idle_nr = 0;
	return err;
}

/* Where the process has its vDSO; looked up once. NULL: that cannot be known now. */
static const struct vdso_at *find_vdso(struct native_codes *c, const struct target_process *p)
{
	struct vdso_at v = {.pid = p->pid, .start_ticks = p->start_ticks};
	int err;

	for (size_t i = 0; i < c->vdsos.nr; i++)
		if (c->vdsos.items[i].pid == p->pid &&
		    c->vdsos.items[i].start_ticks == p->start_ticks)
			return &c->vdsos.items[i];
	err = vdso_find(p->pid, &v.start, &v.end);
	if (err && err != -ENOENT)
		return NULL;
	return vec_push(&c->vdsos, v) ? NULL : &c->vdsos.items[c->vdsos.nr - 1];
}

int native_codes__place(struct native_codes *c, const struct target_process *p, uint64_t address,
			struct native_place *ret_place)
{
	const struct target_library *l = find_library(p, address);
	const struct vdso_at *vdso = l ? NULL : find_vdso(c, p);
	struct native_place place = {
		.module = NO_MODULE, .address = address, .path = "", .build_id = ""};
	const struct module *m;
	int err = 0;

	if (l) {
		place.address = address - l->base;
		place.since = l->since;
		place.open_path = l->open_path;
		err = use_module(c, l->device, l->inode, l->path, l->open_path, &place.module);
	} else if (!vdso) {
		place.unread = true;
	} else if (vdso->start <= address && address < vdso->end) {
		place.address = address - vdso->start;
		err = use_module(c, 0, 0, "[vdso]", NULL, &place.module);
	}
	if (err)
		return err;
	if (place.module != NO_MODULE) {
		m = &c->modules.items[place.module];
		place.unread = !m->is_read || (l && !l->base_known);
		place.path = m->path;
		place.build_id = m->symbols ? symbols__build_id(m->symbols) : "";
		place.symbol = m->symbols ? symbols__name(m->symbols, place.address) : NULL;
	}
	*ret_place = place;
	return 0;
}

void native_codes__poll(struct native_codes *c, const struct file_users *users)
{
	for (size_t i = 0; i < c->modules.nr; i++) {
		struct module *m = &c->modules.items[i];

		/* The vDSO is everybody's. */
		if (m->symbols && m->inode &&
		    file_users__let_go(users, m->device, m->inode, &m->idle_nr))
			forget_symbols(m);
	}
}

bool native_codes__has(const struct native_codes *c, uint32_t module)
{
	return module < c->modules.nr && c->modules.items[module].symbols;
}

const struct elf_file *native_codes__lines_file(struct native_codes *c, uint32_t module)
{
	struct symbols *symbols = module < c->modules.nr ? c->modules.items[module].symbols : NULL;

	return symbols ? symbols__lines_file(symbols) : NULL;
}
