/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof table REC`: prints torch.profiler's table from a recording.
 */
#include "timeline/analysis/table.h"
#include "cli/core/cli.h"
#include "cli/core/option_rows.h"
#include "cli/view/loaded_recording.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct table_args {
	struct show_options show;
	const char *group_by;
	long rank; /* below 0: not given */
	long pid;  /* 0: not given */
	bool distributed;
};

#define SHOW(field) offsetof(struct table_args, show.field)

static const char *const time_units[] = {"s", "ms", "us", NULL};
static const char *const groups[] = {"overload", "shape",    "rank",	    "process",	"stack:1",
				     "stack:5",	 "module",   "module-tree", "between",	"op",
				     "line",	 "function", "thread",	    "activity", NULL};

/* By enum sample_group. */
static const char *const sample_groups[SAMPLE_GROUP_NR] = {"op",       "line", "function", "thread",
							   "activity", "",     "process"};

/* The N of "stack:N"; 0: the value is something else. */
static long stack_depth(const char *value)
{
	char *end;
	long n;

	if (strncmp(value, "stack:", 6))
		return 0;
	n = strtol(value + 6, &end, 10);
	return value[6] >= '1' && value[6] <= '9' && !*end && n <= GP_STACK_FRAMES ? n : 0;
}

/* The grouping of samples with this name; SAMPLE_GROUP_NR: none. */
static enum sample_group sample_group_of(const char *value)
{
	for (enum sample_group i = 0; i < SAMPLE_GROUP_NR; i++)
		if (sample_groups[i] && !strcmp(sample_groups[i], value))
			return i;
	return SAMPLE_GROUP_NR;
}

static bool is_group(const char *value)
{
	return sample_group_of(value) < SAMPLE_GROUP_NR || !strcmp(value, "overload") ||
	       !strcmp(value, "shape") || !strcmp(value, "rank") || stack_depth(value) ||
	       !strcmp(value, "module") || !strcmp(value, "module-tree") ||
	       !strcmp(value, "between");
}

static const struct option_spec table_options[] = {
	{.name = "sort",
	 .letter = 's',
	 .kind = OPTION_TEXT,
	 .offset = SHOW(sort),
	 .value_name = "KEY",
	 .choices = table_sort_keys,
	 .known = table_sort_key_known,
	 .help = "Sort by KEY, one of torch.profiler's. Default: self_cpu_time_total."},
	ROW_LIMIT(struct table_args, show.limit, 'l',
		  "Rows to print, -1 for all. Default: 20 on a terminal, else 100; all with --json "
		  "and "
		  "--csv."),
	{.name = "group-by",
	 .letter = 'g',
	 .kind = OPTION_TEXT,
	 .offset = offsetof(struct table_args, group_by),
	 .value_name = "WHAT",
	 .choices = groups,
	 .known = is_group,
	 .rule = "'overload', 'shape', 'rank', 'process', 'module', 'module-tree', 'between', "
		 "'op', 'line', "
		 "'function', 'thread', 'activity' or 'stack:N' with N from 1 to 256",
	 .help = "'overload': one row for each overload of an operator instead of one for all. "
		 "'shape': one row for each combination of shapes of its inputs, where shapes "
		 "were recorded. "
		 "'rank': one row for each rank of a distributed job. "
		 "'process': one row for each process. "
		 "'stack:N': one row for each N innermost Python frames, where stacks were "
		 "recorded. "
		 "'module': one row for each nn.Module, 'module-tree': each under the one that "
		 "calls it, where modules were recorded. "
		 "'between': the time between operators, spent in Python, NumPy or waiting, by the "
		 "two lines it lies between, where Python stacks were recorded. "
		 "Samples: 'op' (the default), 'line' of Python, 'function', 'thread', 'process', "
		 "'activity' (running, or what was waited for), or 'stack:N'."},
	OPTION_HEADING("a part of the recording, or a view of its own"),
	{.name = "rank",
	 .kind = OPTION_NUMBER,
	 .offset = offsetof(struct table_args, rank),
	 .value_name = "N",
	 .min = 0,
	 .max = INT32_MAX,
	 .help = "Only rank N of a distributed job."},
	{.name = "pid",
	 .letter = 'p',
	 .kind = OPTION_NUMBER,
	 .offset = offsetof(struct table_args, pid),
	 .value_name = "PID",
	 .min = 1,
	 .max = 1L << 30,
	 .help = "Only this process."},
	{.name = "distributed",
	 .kind = OPTION_FLAG,
	 .offset = offsetof(struct table_args, distributed),
	 .help = "Instead of the table, compare the ranks of a job: how long each communicated, "
		 "how much of that it computed too, how often it came last to a collective and by "
		 "how much; and the collectives and steps with the latest ranks."},
	OPTION_HEADING("what the table shows"),
	{.name = "top-level",
	 .kind = OPTION_FLAG,
	 .offset = SHOW(top_level),
	 .help = "Only operators that no other operator called."},
	{.name = "compensate",
	 .kind = OPTION_FLAG,
	 .offset = SHOW(compensate),
	 .help = "Subtract the time of gpuprof's own callbacks from CPU times of operators and "
		 "modules: for each operator inside one, twice the mean of the callbacks that were "
		 "timed. This is an estimate. Short operators that call others then have far less "
		 "time of their own, and shares are closer to those without a profiler."},
	{.name = "steps",
	 .kind = OPTION_FLAG,
	 .offset = SHOW(steps),
	 .help = "Add a row ProfilerStep* for the steps that were found, as torch.profiler does "
		 "with a schedule. Recordings made with --steps or --schedule always have it."},
	{.name = "losses",
	 .kind = OPTION_FLAG,
	 .offset = SHOW(losses),
	 .help = "Name every counter of losses, also those that are harmless (operators open at "
		 "the edges of the capture) or zero."},
	OPTION_HEADING("how it is printed"),
	ROW_WIDE(struct table_args, show.wide),
	{.name = "header",
	 .kind = OPTION_TEXT,
	 .offset = SHOW(header),
	 .value_name = "TEXT",
	 .help = "Print TEXT above the table (not with --json or --csv)."},
	{.name = "time-unit",
	 .kind = OPTION_TEXT,
	 .offset = SHOW(time_unit),
	 .value_name = "UNIT",
	 .choices = time_units,
	 .help = "Print all times in s, ms or us (not with --json or --csv, which have their own "
		 "units). Default: what suits each."},
	{.name = "json",
	 .kind = OPTION_FLAG,
	 .offset = SHOW(json),
	 .help = "Print one JSON object: rows, losses and how it was captured."},
	{.name = "csv",
	 .kind = OPTION_FLAG,
	 .offset = SHOW(csv),
	 .help = "Print comma-separated values, a header line first."},
	{0},
};

static const char *const table_first[] = {"sort",  "limit",  "group-by", "top-level",
					  "steps", "losses", "wide",	 "time-unit",
					  "json",  "csv",    NULL};

const struct command command_table = {
	.name = "table",
	.summary = "print the table of a recording",
	.usage = "[options] REC",
	.about = "Prints what torch.profiler's key_averages().table() would print, from the "
		 "recording REC.",
	.options = table_options,
	.first = table_first,
	.operand = "the recording",
	.min_operands = 1,
	.max_operands = 1,
	.complete = COMPLETE_FILE,
	.run = cli_table,
};

int cli_table(int argc, char **argv)
{
	struct table_args args = {.show = {.limit = SHOW_LIMIT_UNSAID}, .rank = -1};
	int operands, status = options_parse(&command_table, argc, argv, &args, &operands);

	if (status >= 0)
		return status;
	if (args.show.json && args.show.csv)
		return options_usage_error(&command_table, "--json and --csv exclude each other");
	if ((args.show.json || args.show.csv) && (args.show.header || args.show.time_unit))
		return options_usage_error(&command_table,
					   "--header and --time-unit are for the printed table, "
					   "not for --json and --csv");
	args.show.by_stack = args.group_by ? (uint32_t)stack_depth(args.group_by) : 0;
	args.show.by_overload = args.group_by && !strcmp(args.group_by, "overload");
	if (args.group_by && !strcmp(args.group_by, "rank"))
		args.show.parts = TABLE_BY_RANK;
	if (args.group_by && !strcmp(args.group_by, "process"))
		args.show.parts = TABLE_BY_PROCESS;
	args.show.only = (struct tl_part){
		.one_rank = args.rank >= 0, .rank = (int32_t)args.rank, .pid = args.pid};
	if (args.group_by && sample_group_of(args.group_by) < SAMPLE_GROUP_NR)
		args.show.samples_by = sample_group_of(args.group_by);
	args.show.by_shape = args.group_by && !strcmp(args.group_by, "shape");
	args.show.between = args.group_by && !strcmp(args.group_by, "between");
	args.show.module_tree = args.group_by && !strcmp(args.group_by, "module-tree");
	args.show.by_module =
		args.show.module_tree || (args.group_by && !strcmp(args.group_by, "module"));
	if (args.show.between && args.show.compensate)
		return options_usage_error(&command_table,
					   "--compensate is for operators and modules, not for the "
					   "time between them");
	if (args.show.module_tree && args.show.sort)
		return options_usage_error(&command_table,
					   "--group-by module-tree has the tree's order, leave "
					   "--sort out");
	memory_end_me_first();
	if (!args.distributed)
		return show_recording(argv[1], &args.show);
	if (args.group_by || args.show.sort || args.show.csv || args.rank >= 0 || args.pid ||
	    args.show.compensate || args.show.header || args.show.time_unit || args.show.top_level)
		return options_usage_error(&command_table,
					   "--distributed goes with --json, --limit, --steps and "
					   "--losses alone");
	return show_ranks(argv[1], &args.show);
}
