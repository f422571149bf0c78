/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof list`: the processes that can be profiled, and what is in them.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/option_rows.h"
#include "target/process.h"
#include "target/scan.h"
#include "target/versions.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/ioctl.h>

struct list_options {
	bool json;
};

static const struct option_spec options[] = {
	ROW_JSON(struct list_options, "Print one JSON object instead of a table."),
	{0},
};

const struct command command_list = {
	.name = "list",
	.summary = "show the processes that can be profiled",
	.usage = "[--json]",
	.about = "Shows each process that has PyTorch or CUDA in it, with the versions of Python, "
		 "PyTorch and CUDA. Other users' processes are seen by root only.",
	.options = options,
	.run = cli_list,
};

/* One line of the table. */
struct row {
	pid_t pid;
	uid_t uid;
	char user[33];
	uint64_t uptime_s;
	struct target_versions versions;
	char *command;
};

struct rows {
	VEC(struct row) list;
	size_t hidden_nr; /* processes without the right to look */
};

static void rows_done(struct rows *r)
{
	for (size_t i = 0; i < r->list.nr; i++)
		free(r->list.items[i].command);
	vec_done(&r->list);
}

static uint64_t uptime_of(const struct target_process *p)
{
	uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);

	return now_ns > p->start_boot_ns ? (now_ns - p->start_boot_ns) / SECOND_NS : 0;
}

static int add_row(struct rows *r, const struct target_process *p)
{
	struct row row = {.pid = p->pid, .uid = p->uid, .uptime_s = uptime_of(p)};
	struct passwd *owner = getpwuid(p->uid);
	int err;

	if (owner)
		(void)snprintf(row.user, sizeof(row.user), "%s", owner->pw_name);
	else
		(void)snprintf(row.user, sizeof(row.user), "%u", p->uid);
	target_versions_read(p, &row.versions);
	row.command = strdup(p->cmdline);
	err = row.command ? vec_push(&r->list, row) : -ENOMEM;
	if (err)
		free(row.command);
	return err;
}

static int collect(struct rows *r)
{
	CLEANUP(cleanup_free) pid_t *pids = NULL;
	size_t nr = 0;
	int err = target_scan(&pids, &nr);

	for (size_t i = 0; i < nr && !err; i++) {
		struct target_process *p;
		int no = target_process__new(pids[i], NULL, &p);

		/* Ended meanwhile, or a kernel thread: nothing to tell. */
		if (no == -EACCES || no == -EPERM) {
			log_info("process %d could not be looked into: %s", pids[i], strerror(-no));
			r->hidden_nr++;
		}
		if (no == -ENOMEM)
			err = no;
		if (no)
			continue;
		if (target_process__is_profilable(p))
			err = add_row(r, p);
		target_process__free(p);
	}
	return err;
}

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

/* Columns of the terminal; 0 if stdout is none. */
static size_t terminal_columns(void)
{
	struct winsize w;

	return isatty(1) && !ioctl(1, TIOCGWINSZ, &w) ? w.ws_col : 0;
}

#define COLUMNS 6

/* As it is printed: versions come from the process' files. */
static const char *cell(const struct row *row, size_t column, struct buf *scratch)
{
	buf__clear(scratch);
	switch (column) {
	case 0:
		buf__u64(scratch, (uint64_t)row->pid);
		break;
	case 1:
		buf__line(scratch, row->user);
		break;
	case 2:
		add_uptime(scratch, row->uptime_s);
		break;
	case 3:
		buf__line(scratch, row->versions.python);
		break;
	case 4:
		buf__line(scratch, row->versions.torch);
		break;
	default:
		buf__line(scratch, row->versions.cuda);
		break;
	}
	if (!scratch->nr)
		buf__char(scratch, '-');
	return scratch->bytes ? scratch->bytes : "";
}

static void add_cell(struct buf *out, const char *text, size_t width, bool right)
{
	size_t nr = line_characters(text);
	int gap = (int)(nr < width ? width - nr : 0);

	buf__printf(out, "%*s%s%*s  ", right ? gap : 0, "", text, right ? 0 : gap, "");
}

static void print_table(struct buf *out, const struct rows *r)
{
	static const char *const titles[COLUMNS] = {"PID",    "USER",  "UPTIME",
						    "PYTHON", "TORCH", "CUDA"};
	CLEANUP(buf__done) struct buf scratch = {0};
	size_t widths[COLUMNS], used = 0, columns = terminal_columns();

	for (size_t c = 0; c < COLUMNS; c++) {
		widths[c] = strlen(titles[c]);
		for (size_t i = 0; i < r->list.nr; i++) {
			size_t wide = line_characters(cell(&r->list.items[i], c, &scratch));

			widths[c] = wide > widths[c] ? wide : widths[c];
		}
		add_cell(out, titles[c], widths[c], !c);
		used += widths[c] + 2;
	}
	buf__str(out, "COMMAND\n");
	for (size_t i = 0; i < r->list.nr; i++) {
		const struct row *row = &r->list.items[i];
		size_t room = columns > used ? columns - used : columns ? 8 : SIZE_MAX;

		for (size_t c = 0; c < COLUMNS; c++)
			add_cell(out, cell(row, c, &scratch), widths[c], !c);
		buf__line_part(out, row->command, room);
		buf__char(out, '\n');
	}
}

static void add_field(struct buf *out, const char *name, const char *text)
{
	buf__printf(out, ",\"%s\":", name);
	if (text[0])
		buf__json(out, text);
	else
		buf__str(out, "null");
}

static void print_json(struct buf *out, const struct rows *r)
{
	buf__str(out, "{\"processes\":[");
	for (size_t i = 0; i < r->list.nr; i++) {
		const struct row *row = &r->list.items[i];

		buf__printf(out, "%s{\"pid\":%d,\"uid\":%u,\"uptime_s\":%lu", i ? "," : "",
			    row->pid, row->uid, row->uptime_s);
		add_field(out, "user", row->user);
		add_field(out, "python", row->versions.python);
		add_field(out, "torch", row->versions.torch);
		add_field(out, "cuda", row->versions.cuda);
		add_field(out, "cupti", row->versions.cupti);
		buf__printf(out, ",\"cupti_mapped\":%s",
			    row->versions.cupti_mapped ? "true" : "false");
		add_field(out, "command", row->command);
		buf__char(out, '}');
	}
	buf__printf(out, "],\"not_looked_into\":%zu}\n", r->hidden_nr);
}

static void tell_rest(const struct rows *r)
{
	if (r->hidden_nr)
		log_warn("%zu process%s could not be looked into%s", r->hidden_nr,
			 r->hidden_nr == 1 ? "" : "es",
			 geteuid() ? "; run gpuprof as root (sudo) to see all" : "");
	if (!r->list.nr)
		log_warn("no process%s uses PyTorch or CUDA",
			 r->hidden_nr ? " that can be looked into" : "");
}

int cli_list(int argc, char **argv)
{
	CLEANUP(rows_done) struct rows rows = {0};
	CLEANUP(buf__done) struct buf out = {0};
	struct list_options o = {0};
	int operands, err, status = options_parse(&command_list, argc, argv, &o, &operands);

	if (status >= 0)
		return status;
	err = collect(&rows);
	if (err) {
		(void)log_errno(err, "cannot list the processes");
		return CLI_FAILED;
	}
	if (o.json)
		print_json(&out, &rows);
	else
		print_table(&out, &rows);
	err = buf__error(&out);
	if (!err)
		err = file_write_all(1, out.bytes, out.nr);
	if (err) {
		(void)log_errno(err, "cannot write the list");
		return CLI_FAILED;
	}
	tell_rest(&rows);
	return CLI_DONE;
}
