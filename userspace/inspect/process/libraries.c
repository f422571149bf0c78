/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The libraries of a process, out of its mappings. A library is a run of mappings of one file of
 * which one is executable; the same file loaded twice is two. The path to open is proven by its
 * inode: the name in the maps may by now be another file's.
 */
#include "inspect/process/libraries.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"
#include "inspect/access/maps.h"
#include "inspect/access/process_file.h"
#include "inspect/elf/elf.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Mappings of one file that belong together. */
struct group {
	struct map_line first;
	uint64_t end;
	uint64_t code_start, code_end, code_offset; /* of its first executable mapping */
	bool has_code;
	bool has_zero; /* offset 0 is mapped: one more begins another load */
};

struct groups {
	VEC(struct group) list;
};

static struct group *group_of(struct groups *g, const struct map_line *m)
{
	/* The mappings of one load lie close together: look back a few files only. */
	for (size_t i = g->list.nr, tries = 8; i-- && tries--;) {
		struct group *x = &g->list.items[i];

		if (x->first.inode == m->inode && x->first.device == m->device &&
		    !strcmp(x->first.path, m->path))
			return x->has_zero && !m->offset ? NULL : x;
	}
	return NULL;
}

static int add_mapping(struct groups *g, const struct map_line *m)
{
	struct group *x;

	if (!m->inode || m->path[0] != '/')
		return 0;
	x = group_of(g, m);
	if (!x) {
		struct group fresh = {.first = *m};
		int err = vec_push(&g->list, fresh);

		if (err)
			return err;
		x = &g->list.items[g->list.nr - 1];
	}
	x->end = m->end;
	x->has_zero |= !m->offset;
	if (m->executable && !x->has_code) {
		x->has_code = true;
		x->code_start = m->start;
		x->code_end = m->end;
		x->code_offset = m->offset;
	}
	return 0;
}

static void cleanup_groups(struct groups *g)
{
	vec_done(&g->list);
}

static int read_groups(pid_t pid, char *text, struct groups *g, struct reason *why)
{
	char *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		struct map_line m;
		int err;

		if (!*line)
			continue;
		err = map_line_parse(line, &m);
		if (err)
			return reason_set(why, err, "cannot understand /proc/%d/maps", pid);
		err = add_mapping(g, &m);
		if (err)
			return reason_set(why, err, "out of memory");
	}
	return 0;
}

void root_of_process(pid_t pid, char *ret_root, size_t bytes)
{
	char link[64];
	ssize_t nr;

	(void)snprintf(link, sizeof(link), "/proc/%d/root", pid);
	nr = readlink(link, ret_root, bytes - 1);
	if (nr < 0 || nr == 1 || (size_t)nr >= bytes - 1)
		nr = 0;
	ret_root[nr] = '\0';
}

const char *path_below_root(const char *path, const char *root)
{
	size_t bytes = strlen(root);

	if (bytes && !strncmp(path, root, bytes) && path[bytes] == '/')
		return path + bytes;
	return path;
}

/* Whether `path` is the mapped file: 2 surely, 1 by its inode number only (overlayfs shows another
 * device in the maps than in stat), 0 not. */
static int is_the_file(const char *path, const struct map_line *m)
{
	struct stat st;

	if (process_file_stat(path, &st) || st.st_ino != m->inode)
		return 0;
	return st.st_dev == m->device ? 2 : 1;
}

/* Fills in path, open_path and deleted. 0 or -ENOMEM. */
static int find_file(pid_t pid, const char *root, const struct group *x, struct target_library *l)
{
	const char *path = path_below_root(x->first.path, root);
	CLEANUP(cleanup_free) char *below = NULL;
	CLEANUP(cleanup_free) char *named = NULL;
	CLEANUP(cleanup_free) char *mapped = NULL;
	int sure;

	if (asprintf(&below, "/proc/%d/root%s", pid, path) < 0 ||
	    asprintf(&named, "%s (deleted)", below) < 0 ||
	    asprintf(&mapped, "/proc/%d/map_files/%lx-%lx", pid, (unsigned long)x->code_start,
		     (unsigned long)x->code_end) < 0)
		return -ENOMEM;
	l->deleted = x->first.deleted;
	/* A living file may have a name that ends in " (deleted)". */
	if (l->deleted && is_the_file(named, &x->first) == 2) {
		l->deleted = false;
		l->open_path = TAKE(named);
		l->path = strdup(l->open_path + (strlen(below) - strlen(path)));
		return l->path ? 0 : -ENOMEM;
	}
	sure = l->deleted ? 0 : is_the_file(below, &x->first);
	if (sure == 2 || (sure == 1 && access(mapped, R_OK)))
		l->open_path = TAKE(below);
	else
		l->open_path = TAKE(mapped);
	l->path = strdup(path);
	return l->path ? 0 : -ENOMEM;
}

/* Load bias, from the program headers of the file; without them as for a library linked at 0. 0, or
 * an error as of elf_error_is_ours(). */
static int find_base(const struct group *x, struct target_library *l)
{
	struct elf_file *f;
	int err = elf_file__open(l->open_path, NULL, &f);

	l->base = x->code_start - x->code_offset;
	l->base_known = !err || elf_error_stays(err);
	if (err)
		return elf_error_is_ours(err) ? err : 0;
	(void)elf_file__load_bias(f, x->code_start, x->code_offset, &l->base);
	elf_file__free(f);
	return 0;
}

static bool same_place(const struct target_library *a, const struct target_library *b)
{
	return a->start == b->start && a->end == b->end && a->inode == b->inode &&
	       a->device == b->device && a->deleted == b->deleted && !strcmp(a->path, b->path);
}

static const struct target_library *find_old(const struct target_library *old, size_t old_nr,
					     const struct target_library *l)
{
	for (size_t i = 0; i < old_nr; i++)
		if (same_place(&old[i], l) && !strcmp(old[i].open_path, l->open_path))
			return &old[i];
	return NULL;
}

static int fill_library(pid_t pid, const char *root, const struct group *x,
			const struct target_library *old, size_t old_nr, uint32_t since,
			struct target_library *l)
{
	const struct target_library *known;
	int err;

	*l = (struct target_library){.start = x->first.start,
				     .end = x->end,
				     .device = x->first.device,
				     .inode = x->first.inode};
	err = find_file(pid, root, x, l);
	if (err)
		return err;
	known = find_old(old, old_nr, l);
	l->since = known ? known->since : since;
	if (!known || !known->base_known)
		return find_base(x, l);
	l->base = known->base;
	l->base_known = true;
	return 0;
}

int libraries_read(pid_t pid, const struct target_library *old, size_t old_nr, uint32_t since,
		   struct reason *why, struct target_library **ret_libraries, size_t *ret_nr)
{
	CLEANUP(cleanup_groups) struct groups g = {0};
	CLEANUP(cleanup_free) char *text = NULL;
	struct target_library *libraries;
	char root[PATH_MAX];
	size_t nr = 0;
	int err;

	err = maps_read(pid, &text);
	if (err)
		return reason_set(why, err, "cannot read '/proc/%d/maps': %s", pid, strerror(-err));
	err = read_groups(pid, text, &g, why);
	if (err)
		return err;
	root_of_process(pid, root, sizeof(root));
	libraries = calloc(g.list.nr + 1, sizeof(*libraries));
	if (!libraries)
		return reason_set(why, -ENOMEM, "out of memory");
	for (size_t i = 0; i < g.list.nr && !err; i++)
		if (g.list.items[i].has_code)
			err = fill_library(pid, root, &g.list.items[i], old, old_nr, since,
					   &libraries[nr++]);
	if (err) {
		libraries_free(libraries, nr);
		return reason_set(why, err, "%s", strerror(-err));
	}
	*ret_libraries = libraries;
	*ret_nr = nr;
	return 0;
}

void libraries_free(struct target_library *libraries, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		free((char *)libraries[i].path);
		free((char *)libraries[i].open_path);
	}
	free(libraries);
}

bool libraries_equal(const struct target_library *a, size_t a_nr, const struct target_library *b,
		     size_t b_nr)
{
	if (a_nr != b_nr)
		return false;
	for (size_t i = 0; i < a_nr; i++)
		if (!same_place(&a[i], &b[i]) || a[i].base_known != b[i].base_known)
			return false;
	return true;
}
