/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The two maps of maps that the walk searches. A process's ranges are replaced as a whole, so that
 * the walk sees the old or the new ones; a new table is added to the ranges in place. A table's
 * number is reused only after all others have been.
 */
#include "probe/unwind/unwind_maps.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "common/clock.h"
#include "inspect/access/process_file.h"
#include "inspect/elf/elf.h"
#include "inspect/elf/vdso.h"
#include "probe/unwind/unwind_worker.h"
#include "wire.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>

#define BYTES_MAX (512UL << 20) /* for all tables together */

/* The table of files without unwind information: it has no rule for any address. */
#define TABLE_EMPTY GP_UNWIND_TABLES_MAX

struct table {
	struct file_key key;
	uint32_t number; /* TABLE_EMPTY: none */
	uint32_t users_nr;
	uint32_t rules_at, pages_at, first_page, pages_nr;
	size_t bytes;
};

/* What stands behind one range of the kernel's map. */
struct place {
	struct file_key key;
	char *open_path; /* NULL: the vDSO */
	bool uses_table;
	bool failed; /* its table was requested and failed; a later try may succeed */
};

struct process_maps {
	uint16_t index;
	int fd;				    /* the map of ranges */
	VEC(struct gp_unwind_range) ranges; /* as in the kernel's map; [0] holds their number */
	VEC(struct place) places;	    /* with the same indexes */
};

struct unwind_maps {
	int ranges_fd, tables_fd;
	struct unwind_worker *worker;
	VEC(struct table) tables;
	VEC(struct process_maps *) processes;
	uint32_t last_number;
	bool used[GP_UNWIND_TABLES_MAX];
	size_t bytes;
	uint64_t again_ns; /* when failed tables may be requested again; 0: none failed */
};

struct unwind_maps *unwind_maps__new(int ranges_fd, int tables_fd, const char *cache_dir)
{
	struct unwind_maps *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->ranges_fd = ranges_fd;
	m->tables_fd = tables_fd;
	m->worker = unwind_worker__new(cache_dir);
	if (!m->worker) {
		free(m);
		return NULL;
	}
	return m;
}

/* ---- tables ---- */

static struct table *find_table(struct unwind_maps *m, const struct file_key *key)
{
	for (size_t i = 0; i < m->tables.nr; i++)
		if (!memcmp(&m->tables.items[i].key, key, sizeof(*key)))
			return &m->tables.items[i];
	return NULL;
}

/* Returns a free number, never 0; 0: there is none. */
static uint32_t free_number(struct unwind_maps *m)
{
	for (uint32_t i = 1; i < GP_UNWIND_TABLES_MAX; i++) {
		uint32_t n = (m->last_number + i) % GP_UNWIND_TABLES_MAX;

		if (n && !m->used[n])
			return n;
	}
	return 0;
}

static void drop_table(struct unwind_maps *m, struct table *t)
{
	if (t->number != TABLE_EMPTY) {
		(void)bpf_map_delete_elem(m->tables_fd, &t->number);
		m->used[t->number] = false;
	}
	m->bytes -= t->bytes;
	*t = m->tables.items[--m->tables.nr];
}

/* Creates a kernel map with the words. A descriptor or -errno. */
static int make_words(const struct unwind_table *u)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	size_t bytes = (size_t)u->words_nr * sizeof(*u->words);
	CLEANUP(cleanup_fd) int fd = -1;
	void *to;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_table", sizeof(uint32_t), sizeof(uint64_t),
			    u->words_nr, &options);
	if (fd < 0)
		return -errno;
	to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (to == MAP_FAILED)
		return -errno;
	memcpy(to, u->words, bytes);
	(void)munmap(to, bytes);
	return take_fd(&fd);
}

static int put_words(struct unwind_maps *m, const struct unwind_table *u, struct table *t)
{
	CLEANUP(cleanup_fd) int fd = -1;

	t->bytes = (size_t)u->words_nr * sizeof(*u->words);
	t->number = free_number(m);
	if (!t->number || t->bytes > BYTES_MAX - m->bytes)
		return -ENOSPC;
	fd = make_words(u);
	if (fd < 0)
		return fd;
	if (bpf_map_update_elem(m->tables_fd, &t->number, &fd, BPF_ANY))
		return -errno;
	t->rules_at = u->rows_nr;
	t->pages_at = u->rows_nr + u->rules_nr;
	t->first_page = u->first_page;
	t->pages_nr = u->pages_nr;
	return 0;
}

/* Adds a finished table. 0 or -errno. */
static int add_table(struct unwind_maps *m, const struct unwind_made *made)
{
	struct table t = {.key = made->key, .number = TABLE_EMPTY};
	int err = made->err ? made->err : vec_reserve(&m->tables, 1);

	if (!err && made->table.words)
		err = put_words(m, &made->table, &t);
	if (err)
		return err;
	if (t.number != TABLE_EMPTY) {
		m->used[t.number] = true;
		m->last_number = t.number;
	}
	m->bytes += t.bytes;
	return vec_push(&m->tables, t);
}

static void use_table(struct gp_unwind_range *r, struct place *p, struct table *t)
{
	r->rules_at = t->rules_at;
	r->pages_at = t->pages_at;
	r->first_page = t->first_page;
	r->pages_nr = t->pages_nr;
	r->table = t->number;
	t->users_nr++;
	p->uses_table = true;
}

/* ---- processes ---- */

static void free_process(struct unwind_maps *m, struct process_maps *pm)
{
	for (size_t i = 0; i < pm->places.nr; i++) {
		struct place *p = &pm->places.items[i];
		struct table *t = p->uses_table ? find_table(m, &p->key) : NULL;

		if (t && !--t->users_nr)
			drop_table(m, t);
		free(p->open_path);
	}
	vec_done(&pm->places);
	vec_done(&pm->ranges);
	if (pm->fd >= 0)
		(void)close(pm->fd);
	free(pm);
}

static int add_range(struct process_maps *pm, uint64_t start, uint64_t end, uint64_t bias,
		     const char *open_path)
{
	struct gp_unwind_range range = {.start = start, .end = end, .bias = bias};
	struct place place = {0};
	struct stat st;
	int err;

	if (pm->ranges.nr > GP_UNWIND_RANGES_MAX)
		return -E2BIG;
	if (open_path) {
		if (process_file_stat(open_path, &st))
			return 0;
		place.key = (struct file_key){
			.device = st.st_dev,
			.inode = st.st_ino,
			.bytes = (uint64_t)st.st_size,
			.modified_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000ULL +
				       (uint64_t)st.st_mtim.tv_nsec,
		};
		place.open_path = strdup(open_path);
		if (!place.open_path)
			return -ENOMEM;
	}
	err = vec_push(&pm->places, place);
	if (err) {
		free(place.open_path);
		return err;
	}
	return vec_push(&pm->ranges, range);
}

static int compare_libraries(const void *a, const void *b)
{
	const struct target_library *x = *(const struct target_library *const *)a;
	const struct target_library *y = *(const struct target_library *const *)b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Lists the ranges of the vDSO and of all libraries with a known load bias, in order. */
static int read_ranges(struct process_maps *pm, const struct target_process *p)
{
	CLEANUP(cleanup_free) const struct target_library **sorted = NULL;
	struct target_library vdso = {0};
	size_t nr = 0;
	int err;

	sorted = calloc(p->libraries_nr + 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < p->libraries_nr; i++)
		if (p->libraries[i].base_known)
			sorted[nr++] = &p->libraries[i];
	if (!vdso_find(p->pid, &vdso.start, &vdso.end)) {
		vdso.base = vdso.start;
		sorted[nr++] = &vdso;
	}
	qsort(sorted, nr, sizeof(*sorted), compare_libraries);
	err = add_range(pm, 0, 0, 0, NULL);
	for (size_t i = 0; i < nr && !err; i++)
		err = add_range(pm, sorted[i]->start, sorted[i]->end, sorted[i]->base,
				sorted[i]->open_path);
	if (!err) {
		pm->ranges.items[0].start = pm->ranges.nr - 1;
		pm->ranges.items[0].end = p->changes_nr;
	}
	return err;
}

static int write_range(const struct process_maps *pm, uint32_t i)
{
	return bpf_map_update_elem(pm->fd, &i, &pm->ranges.items[i], BPF_ANY) ? -errno : 0;
}

/* Fills the process's map and publishes it. */
static int publish(struct unwind_maps *m, struct process_maps *pm)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_INNER_MAP);
	uint32_t key = pm->index;
	int err = 0;

	pm->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_range", sizeof(uint32_t),
				sizeof(struct gp_unwind_range), (uint32_t)pm->ranges.nr, &options);
	if (pm->fd < 0)
		return -errno;
	for (uint32_t i = 0; i < pm->ranges.nr && !err; i++)
		err = write_range(pm, i);
	if (!err && bpf_map_update_elem(m->ranges_fd, &key, &pm->fd, BPF_ANY))
		err = -errno;
	return err;
}

static size_t find_process(const struct unwind_maps *m, uint16_t index)
{
	size_t i = 0;

	while (i < m->processes.nr && m->processes.items[i]->index != index)
		i++;
	return i;
}

int unwind_maps__set_process(struct unwind_maps *m, uint16_t process_index,
			     const struct target_process *p)
{
	size_t at = find_process(m, process_index);
	struct process_maps *pm = calloc(1, sizeof(*pm));
	struct table *t;
	int err = pm ? vec_reserve(&m->processes, 1) : -ENOMEM;

	if (!pm)
		return err;
	pm->index = process_index;
	pm->fd = -1;
	err = err ? err : read_ranges(pm, p);
	for (size_t i = 1; i < pm->ranges.nr && !err; i++) {
		t = find_table(m, &pm->places.items[i].key);
		if (t)
			use_table(&pm->ranges.items[i], &pm->places.items[i], t);
	}
	err = err ? err : publish(m, pm);
	if (err) {
		free_process(m, pm);
		return err;
	}
	if (at == m->processes.nr) {
		m->processes.items[m->processes.nr++] = pm;
		return 0;
	}
	free_process(m, m->processes.items[at]);
	m->processes.items[at] = pm;
	return 0;
}

void unwind_maps__drop_process(struct unwind_maps *m, uint16_t process_index)
{
	size_t at = find_process(m, process_index);
	uint32_t key = process_index;

	if (at == m->processes.nr)
		return;
	(void)bpf_map_delete_elem(m->ranges_fd, &key);
	free_process(m, m->processes.items[at]);
	m->processes.items[at] = m->processes.items[--m->processes.nr];
}

void unwind_maps__free(struct unwind_maps *m)
{
	if (!m)
		return;
	unwind_worker__free(m->worker);
	while (m->processes.nr)
		unwind_maps__drop_process(m, m->processes.items[0]->index);
	vec_done(&m->processes);
	vec_done(&m->tables);
	free(m);
}

/* ---- loading ---- */

/* Whether a failed table may succeed the next time. */
static bool may_pass(int err)
{
	return err && !elf_error_stays(err) && err != -E2BIG && err != -ENOSPC;
}

/* Notes a failure: the kernel would not request the table again by itself. */
static void note_failure(struct unwind_maps *m, struct process_maps *pm, uint32_t i, int err)
{
	pm->ranges.items[i].asked = 1;
	pm->places.items[i].failed = may_pass(err);
	if (may_pass(err) && !m->again_ns)
		m->again_ns = clock_now_ns() + SECOND_NS;
}

/* Lets the kernel request failed tables again. */
static void forgive(struct process_maps *pm)
{
	for (uint32_t i = 1; i < pm->places.nr; i++) {
		if (!pm->places.items[i].failed)
			continue;
		pm->places.items[i].failed = false;
		pm->ranges.items[i].asked = 0;
		(void)write_range(pm, i);
	}
}

static int load(struct unwind_maps *m, struct process_maps *pm, size_t i)
{
	struct place *p = &pm->places.items[i];
	struct table *t;
	int err;

	if (p->uses_table)
		return 0;
	t = find_table(m, &p->key);
	if (!t) {
		err = unwind_worker__ask(m->worker, &p->key, p->open_path);
		if (err)
			note_failure(m, pm, (uint32_t)i, err);
		return err;
	}
	use_table(&pm->ranges.items[i], p, t);
	return write_range(pm, (uint32_t)i);
}

/* Gives the table to all processes that map the file. `err`: why there is none. */
static void spread(struct unwind_maps *m, struct process_maps *pm, const struct unwind_made *made,
		   int err)
{
	for (uint32_t i = 1; i < pm->places.nr; i++) {
		struct place *p = &pm->places.items[i];
		struct table *t;

		if (p->uses_table || memcmp(&p->key, &made->key, sizeof(p->key)))
			continue;
		t = find_table(m, &made->key);
		if (t)
			use_table(&pm->ranges.items[i], p, t);
		else
			note_failure(m, pm, i, err);
		(void)write_range(pm, i);
	}
}

void unwind_maps__collect(struct unwind_maps *m, bool wait)
{
	struct unwind_made made;
	struct table *t;

	if (m->again_ns && clock_now_ns() >= m->again_ns) {
		m->again_ns = 0;
		for (size_t i = 0; i < m->processes.nr; i++)
			forgive(m->processes.items[i]);
	}
	while (unwind_worker__take(m->worker, wait, &made)) {
		int err = add_table(m, &made);

		if (err)
			log_debug("no unwind table: %s", strerror(-err));
		for (size_t i = 0; i < m->processes.nr; i++)
			spread(m, m->processes.items[i], &made, err);
		t = find_table(m, &made.key);
		/* Whoever wanted it has gone. */
		if (t && !t->users_nr)
			drop_table(m, t);
		unwind_table__done(&made.table);
	}
}

int unwind_maps__load(struct unwind_maps *m, uint16_t process_index, uint64_t address)
{
	size_t at = find_process(m, process_index);

	if (at == m->processes.nr)
		return -ENOENT;
	for (size_t i = 1; i < m->processes.items[at]->ranges.nr; i++) {
		const struct gp_unwind_range *r = &m->processes.items[at]->ranges.items[i];

		if (r->start <= address && address < r->end)
			return load(m, m->processes.items[at], i);
	}
	return -ENOENT;
}

int unwind_maps__load_library(struct unwind_maps *m, uint16_t process_index, const char *prefix)
{
	size_t at = find_process(m, process_index);
	struct process_maps *pm = at < m->processes.nr ? m->processes.items[at] : NULL;

	for (size_t i = 1; pm && i < pm->places.nr; i++) {
		const char *path = pm->places.items[i].open_path;
		const char *slash = path ? strrchr(path, '/') : NULL;

		if (slash && !strncmp(slash + 1, prefix, strlen(prefix)))
			return load(m, pm, i);
	}
	return -ENOENT;
}
