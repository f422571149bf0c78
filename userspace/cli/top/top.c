/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof top`: its options, and the choice between the screen, one printed interval and a
 * recording on disk.
 */

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/core/option_rows.h"
#include "cli/core/pids.h"
#include "cli/core/record_mode.h"
#include "cli/core/signals.h"
#include "cli/record/record.h"
#include "cli/top/top_model.h"
#include "cli/top/top_print.h"
#include "cli/top/top_screen.h"
#include "common/clock.h"
#include "output/format/output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RING_BYTES (32u << 20)

struct top_args {
	const char *pids, *name;
	const char *mode;
	long hz;
	double overhead_pct;
	double interval_s;
	const char *view, *sort;
	long limit;
	bool wait, memory, no_gpu, no_inject, children, once, json, stacks;
};

#define ARG(field) .offset = offsetof(struct top_args, field)

static const char *const view_names[] = {"ops", "kernels", "lines", "memory", "threads", NULL};

static const struct option_spec options[] = {
	ROW_PIDS(struct top_args, "The processes to watch."),
	ROW_NAME_OR_PIDS(struct top_args),
	ROW_MODE(struct top_args,
		 "trace (the default): record every operator. sample: take stacks, so many times a "
		 "second; costs far less, times are estimates."),
	ROW_HZ(struct top_args),
	ROW_OVERHEAD_OF_SAMPLES(struct top_args),
	OPTION_HEADING("what is shown"),
	{.name = "interval",
	 .letter = 'i',
	 .kind = OPTION_SECONDS,
	 ARG(interval_s),
	 .value_name = "SEC",
	 .help = "Show new numbers every SEC seconds. Default: 2."},
	{.name = "view",
	 .kind = OPTION_TEXT,
	 ARG(view),
	 .value_name = "VIEW",
	 .choices = view_names,
	 .help = "Start with operators (the default), GPU kernels, lines of Python, memory by "
		 "operator, or threads."},
	{.name = "sort",
	 .kind = OPTION_TEXT,
	 ARG(sort),
	 .value_name = "KEY",
	 .help = "Sort by this column of the view. Default: its first one."},
	OPTION_HEADING("what is recorded"),
	ROW_MEMORY(struct top_args, "Record allocations from the start, for the view of memory."),
	ROW_FLAG(struct top_args, "stack", stacks,
		 "Record Python stacks from the start, for the view of lines."),
	ROW_WAIT(struct top_args),
	ROW_CHILDREN(struct top_args, "Watch the processes that these start, too."),
	ROW_NO_GPU(struct top_args, "Leave GPUs out."),
	ROW_NO_INJECT(struct top_args, "Put nothing into the process; trace it from outside only."),
	OPTION_HEADING("one interval, printed"),
	ROW_FLAG(struct top_args, "once", once,
		 "Print one interval as text and end. Ctrl-C ends the interval early."),
	ROW_LIMIT(struct top_args, limit, 'l',
		  "With --once: rows to print, -1 for all. Default: 20."),
	ROW_JSON(struct top_args,
		 "Print one interval as a JSON object, with all views that were recorded. Implies "
		 "--once."),
	{0},
};

static const char *const first[] = {"pid",    "name", "mode",  "interval", "view", "sort",
				    "memory", "once", "limit", "json",	   NULL};

const struct command command_top = {
	.name = "top",
	.summary = "watch what processes do, live",
	.usage = "--pid PID[,PID...] | --name PATTERN | REC [options]",
	.about = "Shows operators, GPU kernels, lines of Python, memory and threads of running "
		 "processes, and how busy CPU and GPUs are, every other second. Keys change what "
		 "is shown; 'h' lists them. Nothing is written to disk. With a recording REC it "
		 "shows that.",
	.options = options,
	.first = first,
	.max_operands = 1,
	.complete = COMPLETE_FILE,
	.ends_in_order = true,
	.run = cli_top,
};

/* ---- beginning and end ---- */

static int choose_view(const struct top_args *args, bool sampled, struct top *top)
{
	top_view__init(&top->view, sampled);
	for (int i = 0; args->view && view_names[i]; i++)
		if (!strcmp(args->view, view_names[i]))
			top->view.view = (enum totals_view)i;
	top->view.interval_s = args->interval_s;
	if (args->sort) {
		const struct top_view_info *info = top_view_info(&top->view, top->view.view);
		const struct top_column *c = top_column_find(&top->view, args->sort);
		struct buf keys = {0};
		int status;

		if (c) {
			top->view.sort[top->view.view] = c;
			return CLI_DONE;
		}
		for (size_t i = 0; i < info->columns_nr; i++)
			buf__printf(&keys, "%s%s", i ? ", " : "", info->columns[i].key);
		status = options_usage_error(&command_top,
					     "--sort takes %s in the view of %s, not '%s'",
					     keys.bytes ? keys.bytes : "", info->name, args->sort);
		buf__done(&keys);
		return status;
	}
	return CLI_DONE;
}

static void say_watching(const struct top *top, const struct pids *pids)
{
	struct live_status s;

	live_capture__status(top->live, &s);
	(void)fprintf(stderr, "recording %d%s (%u function%s, %u probe%s by %s%s) for %g s\n",
		      (int)pids->items[0], pids->nr > 1 ? " and others" : "", s.functions_nr,
		      s.functions_nr == 1 ? "" : "s", s.sites_nr, s.sites_nr == 1 ? "" : "s",
		      s.method, s.callbacks_nr ? ", operators by callback" : "",
		      top->view.interval_s);
}

/* Captures one interval. A signal, or the end of the processes, ends it early. */
static int run_once(struct top *top, const struct pids *pids, struct reason *why)
{
	int got = 0;

	say_watching(top, pids);
	while (!got && !top->over) {
		if (signals_asked()) {
			(void)top_facts__read(&top->facts);
			got = live_capture__stop(top->live, why);
			top->over = true;
			return got ? got : top_take(top, why);
		}
		got = top_poll(top, 50, why);
	}
	return got;
}

/* Says how complete the recordings are. Returns the exit status. */
static int report_losses(const struct top *top)
{
	struct sink *s;

	if (!sink__new_fd(STDERR_FILENO, &s)) {
		if (!output_losses_text(s, top->totals->losses.items, top->totals->losses.nr,
					false))
			(void)sink__finish(s);
		sink__free(s);
	}
	return live_totals__lost(top->totals) ? CLI_LOST : CLI_DONE;
}

static int print_once(const struct top *top, bool json)
{
	int err = json ? top_print_json(top) : top_print_text(top);

	if (!err)
		return CLI_DONE;
	(void)log_errno(err, "cannot write the interval");
	return CLI_FAILED;
}

static int show(struct top *top, const struct top_args *args, const struct pids *pids)
{
	struct reason why = {0};
	int status;

	if (args->once || args->json) {
		/* The reader may not know UTF-8. */
		top->view.ascii = true;
		if (top->live && run_once(top, pids, &why) < 0) {
			log_err("%s", why.text);
			return CLI_FAILED;
		}
		status = print_once(top, args->json);
	} else {
		status = top_screen(top);
	}
	if (top->live && live_capture__stop(top->live, &why))
		log_warn("%s", why.text);
	return status ? status : report_losses(top);
}

static int show_file(struct top *top, const struct top_args *args, const char *path)
{
	struct loaded_recording shown;
	int err, status = loaded_recording__open(&shown, path);

	if (status)
		return status;
	status = choose_view(args, shown.timeline->sampled, top);
	if (status) {
		loaded_recording__done(&shown);
		return status;
	}
	top->capture.memory = shown.timeline->memory.nr > 0;
	top->capture.stacks = recording__meta(shown.recording, "stacks") ? 1 : 0;
	err = top_add(top, shown.timeline);
	loaded_recording__done(&shown);
	if (err) {
		(void)log_errno(err, "cannot show '%s'", path);
		return CLI_FAILED;
	}
	top->over = true;
	return show(top, args, NULL);
}

/* The first option given that samples have nothing for; NULL: none. */
static const char *other_than_samples(const struct top_args *args)
{
	if (args->memory)
		return "--memory";
	if (args->stacks)
		return "--stack";
	return args->view && !strcmp(args->view, "memory") ? "--view memory" : NULL;
}

static int show_live(struct top *top, const struct top_args *args)
{
	CLEANUP(cleanup_pids) struct pids pids = {0};
	struct reason why = {0};
	const struct record_mode mode = {
		.name = args->mode,
		.hz = args->hz,
		.overhead_pct = args->overhead_pct,
		.overhead_of_samples = true,
		.other = other_than_samples(args),
	};
	int status = record_mode_choose(&mode, &top->capture);

	status = status ? status : choose_view(args, top->capture.mode == CAPTURE_SAMPLE, top);
	status = status ? status : pids_choose(&command_top, args->pids, args->name, &pids);
	/* Sampling works for any program. */
	status = status ? status
			: pids_check(&pids, args->wait || args->children ||
						    top->capture.mode == CAPTURE_SAMPLE);
	if (status)
		return status;
	top->cache_dir = record_cache_dir();
	top->capture = (struct capture_options){
		.cache_dir = top->cache_dir,
		.ring_bytes = RING_BYTES,
		.mode = top->capture.mode,
		.sample_hz = top->capture.sample_hz,
		.overhead_pct = top->capture.overhead_pct,
		.ops = true,
		.memory = args->memory || top->view.view == TOTALS_MEMORY,
		.stacks = args->stacks || top->view.view == TOTALS_LINES ? GP_STACK_WANT_PYTHON : 0,
		.gpu = !args->no_gpu,
		.inject = !args->no_inject,
		.children = args->children,
	};
	if (live_capture__new(&top->capture, pids.items, pids.nr, &why, &top->live)) {
		log_err("%s", why.text);
		return CLI_FAILED;
	}
	top->start_ns = top->shown_ns = top->cut_ns = clock_now_ns();
	if (top_facts__watch(&top->facts, pids.items, pids.nr) || top_facts__read(&top->facts)) {
		log_err("out of memory");
		return CLI_FAILED;
	}
	return show(top, args, &pids);
}

int cli_top(int argc, char **argv)
{
	struct top_args args = {.interval_s = 2, .limit = 20};
	struct top top = {0};
	int operands, status = options_parse(&command_top, argc, argv, &args, &operands);

	if (status >= 0)
		return status;
	if (operands && (args.pids || args.name))
		return options_usage_error(&command_top, "give a recording or processes, not both");
	if (operands && options_is_pids(argv[1]) && access(argv[1], F_OK))
		return options_usage_error(&command_top,
					   "there is no recording '%s' (did you mean '--pid %s'?)",
					   argv[1], argv[1]);
	if (operands && (args.mode || args.hz || args.overhead_pct > 0))
		return options_usage_error(&command_top,
					   "--mode, --hz and --overhead go with processes");
	if (!operands && !args.pids && !args.name)
		return options_usage_error(&command_top,
					   "give --pid PID, --name PATTERN or a recording");
	if (!args.once && !args.json && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		return options_usage_error(&command_top,
					   "this is no terminal; --once prints one interval");
	signals_ask(true);
	top.limit = args.limit;
	top.totals = live_totals__new();
	if (!top.totals) {
		log_err("out of memory");
		return CLI_FAILED;
	}
	status = operands ? show_file(&top, &args, argv[1]) : show_live(&top, &args);
	live_capture__free(top.live);
	free(top.cache_dir);
	top_facts__done(&top.facts);
	live_totals__free(top.totals);
	return status;
}
