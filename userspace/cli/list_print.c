/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Prints the list. One column shows the tree: a process's role after the branches that lead to it.
 * Versions, names and command lines come from the processes, which may be hostile.
 */
#include "cli/list_print.h"

#include "base/accounts.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "cli/list_tree.h"
#include "common/clock.h"
#include "inspect/program/program.h"
#include "inspect/program/versions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COMMAND_ROOM_MIN 24 /* for which other columns give way */

/* One process that is shown. */
struct row {
	const struct process_roles *role;
	char user[33];
	uint64_t uptime_s;
	struct target_versions versions;
};

struct row_list {
	VEC(struct row) list;
};

static void rows_done(struct row_list *r)
{
	vec_done(&r->list);
}

static uint64_t uptime_of(const struct target_process *p)
{
	uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);

	return now_ns > p->start_boot_ns ? (now_ns - p->start_boot_ns) / SECOND_NS : 0;
}

/* Names the user as the row before does, which need not be looked up again. */
static void name_user(const struct row *before, uid_t uid, struct row *row)
{
	if (before && before->role->process->uid == uid)
		memcpy(row->user, before->user, sizeof(row->user));
	else if (account_user_name(&account_sources_here, uid, row->user, sizeof(row->user)))
		(void)snprintf(row->user, sizeof(row->user), "%u", uid);
}

static void fill_row(const struct row *before, const struct process_roles *role,
		     struct target_process *p, struct row *row)
{
	*row = (struct row){.role = role, .uptime_s = uptime_of(p)};
	name_user(before, p->uid, row);
	/* A launcher's libraries were not kept. One that has ended since has none. */
	if (!p->libraries_nr)
		(void)target_process__update_libraries(p, NULL);
	target_versions_read(p, &row->versions);
}

static int read_rows(const struct list_rows *r, const size_t *order, size_t nr,
		     struct row_list *rows)
{
	int err = vec_reserve(&rows->list, nr);

	for (size_t i = 0; i < nr && !err; i++) {
		struct row row;

		fill_row(i ? &rows->list.items[i - 1] : NULL, &r->roles.items[order[i]],
			 r->processes.items[order[i]], &row);
		err = vec_push(&rows->list, row);
	}
	return err;
}

/* ---- the table ---- */

static void add_uptime(struct buf *b, uint64_t s)
{
	if (s >= 86400)
		buf__printf(b, "%lud%02luh", s / 86400, s / 3600 % 24);
	else if (s >= 3600)
		buf__printf(b, "%luh%02lum", s / 3600, s / 60 % 60);
	else if (s >= 60)
		buf__printf(b, "%lum%02lus", s / 60, s % 60);
	else
		buf__printf(b, "%lus", s);
}

static const char *role_words(enum process_role role)
{
	switch (role) {
	case PROCESS_ROLE_LAUNCHER:
		return "launcher";
	case PROCESS_ROLE_RANK:
		return "rank";
	case PROCESS_ROLE_DATALOADER_WORKER:
		return "DataLoader worker";
	case PROCESS_ROLE_COMPILE_WORKER:
		return "compile worker";
	case PROCESS_ROLE_RAY_WORKER:
		return "Ray worker";
	case PROCESS_ROLE_FORKSERVER:
		return "forkserver";
	case PROCESS_ROLE_RESOURCE_TRACKER:
		return "resource tracker";
	case PROCESS_ROLE_FORKSERVER_CHILD:
		return "forkserver child";
	case PROCESS_ROLE_SPAWNED_CHILD:
		return "spawned child";
	case PROCESS_ROLE_FORKED_CHILD:
		return "forked child";
	case PROCESS_ROLE_NONE:
		break;
	}
	return NULL;
}

static void add_role(struct buf *b, const struct process_roles *one)
{
	const char *words = role_words(one->role);

	if (one->role == PROCESS_ROLE_RANK && one->rank < 0)
		buf__printf(b, "local rank %" PRId32, one->local_rank);
	else if (one->role == PROCESS_ROLE_RANK)
		buf__printf(b, "rank %" PRId32 " of %" PRId32, one->rank, one->world_size);
	else if (words)
		buf__str(b, words);
	else if (one->parent != ROLES_NO_PARENT)
		buf__str(b, "child");
	if (one->role == PROCESS_ROLE_RANK && one->rank >= 0 && one->local_rank >= 0 &&
	    one->local_rank != one->rank)
		buf__printf(b, ", local %" PRId32, one->local_rank);
	if (one->is_guess)
		buf__char(b, '?');
}

enum column { PID, USER, UPTIME, PYTHON, TORCH, CUDA, ROLE, COLUMNS };

static const char *const titles[COLUMNS] = {"PID",   "USER", "UPTIME", "PYTHON",
					    "TORCH", "CUDA", "ROLE"};

struct table {
	const struct list_tree *tree;
	const struct row *rows; /* in the tree's order */
	size_t widths[COLUMNS]; /* 0: the column gives way */
};

/* A cell as it is printed. */
static const char *cell(const struct table *t, size_t n, enum column column, struct buf *scratch)
{
	const struct row *row = &t->rows[n];

	buf__clear(scratch);
	switch (column) {
	case PID:
		buf__u64(scratch, (uint64_t)row->role->process->pid);
		break;
	case USER:
		buf__line(scratch, row->user);
		break;
	case UPTIME:
		add_uptime(scratch, row->uptime_s);
		break;
	case PYTHON:
		buf__line(scratch, row->versions.python);
		break;
	case TORCH:
		buf__line(scratch, row->versions.torch);
		break;
	case CUDA:
		buf__line(scratch, row->versions.cuda);
		break;
	default:
		list_tree__add_branch(t->tree, t->tree->order[n], scratch);
		add_role(scratch, row->role);
		break;
	}
	if (!scratch->nr)
		buf__char(scratch, '-');
	return scratch->bytes ? scratch->bytes : "";
}

/* Sets the widths of the columns. Returns what is left for the command line. */
static size_t lay_out(struct table *t, size_t columns, struct buf *scratch)
{
	static const enum column dropped_first[] = {PYTHON, USER, UPTIME};
	size_t used = 0;

	for (enum column c = 0; c < COLUMNS; c++) {
		t->widths[c] = strlen(titles[c]);
		for (size_t n = 0; n < t->tree->nr; n++) {
			size_t wide = line_characters(cell(t, n, c, scratch));

			t->widths[c] = wide > t->widths[c] ? wide : t->widths[c];
		}
		used += t->widths[c] + 2;
	}
	if (!columns)
		return SIZE_MAX;
	for (size_t i = 0; i < sizeof(dropped_first) / sizeof(*dropped_first); i++) {
		if (used + COMMAND_ROOM_MIN <= columns)
			break;
		used -= t->widths[dropped_first[i]] + 2;
		t->widths[dropped_first[i]] = 0;
	}
	return columns > used ? columns - used : 8;
}

static void add_cell(struct buf *out, const char *text, size_t width, bool right)
{
	size_t nr = line_characters(text);
	int gap = (int)(nr < width ? width - nr : 0);

	if (width)
		buf__printf(out, "%*s%s%*s  ", right ? gap : 0, "", text, right ? 0 : gap, "");
}

/* Appends the words, without the folders of those that are whole paths. */
static void add_short_words(struct buf *b, const char *words)
{
	while (*words) {
		size_t nr = strcspn(words, " ");
		const char *slash = words[0] == '/' ? memrchr(words, '/', nr) : NULL;
		size_t skip = slash ? (size_t)(slash + 1 - words) : 0;

		buf__add(b, words + skip, nr - skip);
		words += nr;
		nr = strspn(words, " ");
		buf__add(b, words, nr);
		words += nr;
	}
}

/* The command, with the program behind a title that hides it. */
static void add_command(struct buf *out, const struct target_process *p, size_t room)
{
	CLEANUP(buf__done) struct buf text = {0};

	if (line_characters(p->cmdline) > room)
		add_short_words(&text, p->cmdline);
	else
		buf__str(&text, p->cmdline);
	if (target_process__has_title(p))
		buf__printf(&text, " (%s)", file_base_name(p->exe));
	buf__line_part(out, text.bytes ? text.bytes : "", room);
}

int list_print_table(struct buf *out, const struct list_rows *r, size_t columns,
		     size_t *ret_shown_nr)
{
	CLEANUP(list_tree__done) struct list_tree tree = {0};
	CLEANUP(rows_done) struct row_list rows = {0};
	CLEANUP(buf__done) struct buf scratch = {0};
	struct table t = {.tree = &tree};
	size_t room;
	int err = list_tree__init(&tree, r->roles.items, r->roles.nr);

	if (!err)
		err = read_rows(r, tree.order, tree.nr, &rows);
	if (err)
		return err;
	t.rows = rows.list.items;
	room = lay_out(&t, columns, &scratch);
	for (enum column c = 0; c < COLUMNS; c++)
		add_cell(out, titles[c], t.widths[c], c == PID);
	buf__str(out, "COMMAND\n");
	for (size_t n = 0; n < tree.nr; n++) {
		for (enum column c = 0; c < COLUMNS; c++)
			add_cell(out, cell(&t, n, c, &scratch), t.widths[c], c == PID);
		add_command(out, t.rows[n].role->process, room);
		buf__char(out, '\n');
	}
	*ret_shown_nr = tree.nr;
	return buf__error(&scratch);
}

/* ---- JSON ---- */

/* Null: it is empty or not known. */
static void put_field(struct json_writer *j, const char *name, const char *text)
{
	json__put_text(j, name, text && text[0] ? text : NULL);
}

/* Null: it is below 0. */
static void put_number(struct json_writer *j, const char *name, int32_t number)
{
	if (number >= 0)
		json__put_i64(j, name, number);
	else
		json__put_null(j, name);
}

/* A role's name in JSON, which does not change. */
static const char *role_key(enum process_role role)
{
	static const char *const keys[] = {
		[PROCESS_ROLE_NONE] = NULL,
		[PROCESS_ROLE_LAUNCHER] = "launcher",
		[PROCESS_ROLE_RANK] = "rank",
		[PROCESS_ROLE_DATALOADER_WORKER] = "dataloader_worker",
		[PROCESS_ROLE_COMPILE_WORKER] = "compile_worker",
		[PROCESS_ROLE_RAY_WORKER] = "ray_worker",
		[PROCESS_ROLE_FORKSERVER] = "forkserver",
		[PROCESS_ROLE_RESOURCE_TRACKER] = "resource_tracker",
		[PROCESS_ROLE_FORKSERVER_CHILD] = "forkserver_child",
		[PROCESS_ROLE_SPAWNED_CHILD] = "spawned_child",
		[PROCESS_ROLE_FORKED_CHILD] = "forked_child",
	};

	return keys[role];
}

static void put_role(struct json_writer *j, const struct list_rows *r,
		     const struct process_roles *one)
{
	bool is_rank = one->role == PROCESS_ROLE_RANK, has_parent = one->parent != ROLES_NO_PARENT;

	put_number(j, "parent", has_parent ? r->processes.items[one->parent]->pid : -1);
	json__put_bool(j, "profilable", one->has_torch);
	put_field(j, "role", role_key(one->role));
	json__put_bool(j, "role_is_guess", one->is_guess);
	put_number(j, "rank", is_rank ? one->rank : -1);
	put_number(j, "local_rank", is_rank ? one->local_rank : -1);
	put_number(j, "world_size", is_rank ? one->world_size : -1);
}

static void put_process(struct json_writer *j, const struct list_rows *r, const struct row *row)
{
	const struct target_process *p = row->role->process;

	json__object(j, &json_tight);
	json__put_i64(j, "pid", p->pid);
	json__put_u64(j, "uid", p->uid);
	json__put_u64(j, "uptime_s", row->uptime_s);
	put_role(j, r, row->role);
	put_field(j, "user", row->user);
	put_field(j, "python", row->versions.python);
	put_field(j, "torch", row->versions.torch);
	put_field(j, "cuda", row->versions.cuda);
	put_field(j, "cupti", row->versions.cupti);
	json__put_bool(j, "cupti_mapped", row->versions.cupti_mapped);
	put_field(j, "program", p->exe);
	put_field(j, "command", p->cmdline);
	json__end(j);
}

int list_print_json(struct buf *out, const struct list_rows *r, size_t *ret_shown_nr)
{
	struct row row, before;
	struct json_writer j;
	size_t shown_nr = 0;

	json__init(&j, out);
	json__object(&j, &json_tight);
	json__put_array(&j, "processes", &json_tight);
	for (size_t i = 0; i < r->roles.nr; i++) {
		if (!r->roles.items[i].is_shown)
			continue;
		fill_row(shown_nr ? &before : NULL, &r->roles.items[i], r->processes.items[i],
			 &row);
		shown_nr++;
		put_process(&j, r, &row);
		before = row;
	}
	json__end(&j);
	json__put_u64(&j, "not_looked_into", r->hidden_nr);
	json__end(&j);
	buf__char(out, '\n');
	*ret_shown_nr = shown_nr;
	return 0;
}
