/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof list`: lists the processes that can be profiled, what they run, and which one started
 * which.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/core/option_rows.h"
#include "cli/list_print.h"
#include "inspect/process/scan.h"

#include <errno.h>
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
		 "PyTorch and CUDA, as a tree: launchers, ranks, workers of DataLoaders. Other "
		 "users' processes are seen by root only.",
	.options = options,
	.run = cli_list,
};

static void rows_done(struct list_rows *r)
{
	for (size_t i = 0; i < r->roles.nr; i++)
		target_process__free(r->processes.items[i]);
	vec_done(&r->processes);
	vec_done(&r->roles);
}

/* Adds the process, which becomes the list's. One without PyTorch may be the launcher of one with
 * it. */
static int add_process(struct list_rows *r, struct target_process *p)
{
	struct process_roles one = {.process = p, .rank = -1, .local_rank = -1, .world_size = -1};
	int err = vec_reserve(&r->processes, 1);

	if (!err)
		err = vec_reserve(&r->roles, 1);
	if (err) {
		target_process__free(p);
		return err;
	}
	one.has_torch = target_process__is_profilable(p);
	if (one.has_torch) {
		one.rank = target_process__environment_number(p, "RANK");
		one.local_rank = target_process__environment_number(p, "LOCAL_RANK");
	} else {
		target_process__shed(p);
	}
	if (one.rank >= 0 || one.local_rank >= 0)
		one.world_size = target_process__environment_number(p, "WORLD_SIZE");
	(void)vec_push(&r->processes, p);
	(void)vec_push(&r->roles, one);
	return 0;
}

static int collect(struct list_rows *r)
{
	CLEANUP(cleanup_free) pid_t *pids = NULL;
	size_t nr = 0;
	int err = target_scan(&pids, &nr);

	for (size_t i = 0; i < nr && !err; i++) {
		struct target_process *p;
		int no = target_process__new(pids[i], NULL, &p);

		/* It has ended, or is a kernel thread. */
		if (no == -EACCES || no == -EPERM) {
			log_info("process %d could not be looked into: %s", pids[i], strerror(-no));
			r->hidden_nr++;
		}
		if (no == -ENOMEM)
			err = no;
		if (!no)
			err = add_process(r, p);
	}
	return err ? err : process_roles_find(r->roles.items, r->roles.nr);
}

/* Columns of the terminal; 0 if stdout is none. */
static size_t terminal_columns(void)
{
	struct winsize w;

	return isatty(1) && !ioctl(1, TIOCGWINSZ, &w) ? w.ws_col : 0;
}

static void report_rest(const struct list_rows *r, size_t shown_nr)
{
	if (r->hidden_nr)
		log_warn("%zu process%s could not be looked into%s", r->hidden_nr,
			 r->hidden_nr == 1 ? "" : "es",
			 geteuid() ? "; run gpuprof as root (sudo) to see all" : "");
	if (!shown_nr)
		log_warn("no process%s uses PyTorch or CUDA",
			 r->hidden_nr ? " that can be looked into" : "");
}

int cli_list(int argc, char **argv)
{
	CLEANUP(rows_done) struct list_rows rows = {0};
	CLEANUP(buf__done) struct buf out = {0};
	struct list_options o = {0};
	size_t shown_nr = 0;
	int operands, err, status = options_parse(&command_list, argc, argv, &o, &operands);

	if (status >= 0)
		return status;
	err = collect(&rows);
	if (err) {
		(void)log_errno(err, "cannot list the processes");
		return CLI_FAILED;
	}
	err = o.json ? list_print_json(&out, &rows, &shown_nr)
		     : list_print_table(&out, &rows, terminal_columns(), &shown_nr);
	if (!err)
		err = buf__error(&out);
	if (!err)
		err = file_write_all(1, out.bytes, out.nr);
	if (err) {
		(void)log_errno(err, "cannot write the list");
		return CLI_FAILED;
	}
	report_rest(&rows, shown_nr);
	return CLI_DONE;
}
