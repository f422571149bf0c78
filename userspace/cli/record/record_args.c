/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Lists the options of `attach` and `run`. They share most rows; only attach chooses processes.
 */
#include "cli/record/record_args.h"

#include "capture/policy/schedule.h"
#include "cli/core/cli.h"
#include "cli/core/option_rows.h"
#include "cli/record/flight.h"
#include "cli/view/loaded_recording.h"
#include "cli/view/metadata.h"
#include "timeline/analysis/table.h"

#include <string.h>

static bool is_memory_file(const char *path)
{
	return strcmp(path, "-") && show_memory_path_fits(path);
}

static bool is_schedule(const char *text)
{
	struct schedule s;

	return !schedule_parse(text, NULL, &s);
}

#define ARG(field) .offset = offsetof(struct record_args, field)

#define CAPTURE_OPTIONS                                                                            \
	ROW_MODE(                                                                                  \
		struct record_args,                                                                \
		"trace (the default): record every operator. sample: take stacks, Python and "     \
		"native, so many times a second; operators come from the stacks. Costs far less; " \
		"times are estimates."),                                                           \
		ROW_HZ(struct record_args),                                                        \
		{.name = "duration",                                                               \
		 .letter = 'd',                                                                    \
		 .kind = OPTION_SECONDS,                                                           \
		 ARG(duration_s),                                                                  \
		 .value_name = "SEC",                                                              \
		 .help = "End after SEC seconds. Without it, Ctrl-C ends the capture, or the end " \
			 "of the "                                                                 \
			 "last process."},                                                         \
		{.name = "steps",                                                                  \
		 .kind = OPTION_NUMBER,                                                            \
		 ARG(steps),                                                                       \
		 .value_name = "N",                                                                \
		 .min = 1,                                                                         \
		 .max = 1000000000,                                                                \
		 .help = "Record N whole steps of the (first) process, then end. The program "     \
			 "needs no "                                                               \
			 "changes for that; the manual says how gpuprof finds steps."},            \
		{.name = "schedule",                                                               \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(schedule),                                                                    \
		 .value_name = "wait=N,warmup=N,active=N,...",                                     \
		 .known = is_schedule,                                                             \
		 .rule = "a list such as wait=1,warmup=1,active=3,repeat=2,skip_first=10,"         \
			 "skip_first_wait=1, of which active must be given",                       \
		 .help = "Record steps as torch.profiler.schedule does, each cycle into its own "  \
			 "recording: REC.1.gpuprof, REC.2.gpuprof and so on unless repeat=1."},    \
		{.name = "overhead",                                                               \
		 .kind = OPTION_PERCENT,                                                           \
		 ARG(overhead_pct),                                                                \
		 .value_name = "PCT",                                                              \
		 .help = "Spend at most PCT percent of the processes' CPU time: record "           \
			 "everything in "                                                          \
			 "windows of whole steps, as many as the budget allows, and estimate the " \
			 "whole "                                                                  \
			 "from them. With --mode sample: take as many samples as the budget "      \
			 "allows; "                                                                \
			 "default 1 there unless --hz is given."},                                 \
		OPTION_HEADING("recordings one after another, or only when something happens"),    \
		{.name = "rotate",                                                                 \
		 .kind = OPTION_SECONDS,                                                           \
		 ARG(rotate_s),                                                                    \
		 .value_name = "SEC",                                                              \
		 .help = "Start a new recording every SEC seconds: REC.1.gpuprof, REC.2.gpuprof "  \
			 "and so "                                                                 \
			 "on, each complete by itself."},                                          \
		{.name = "keep",                                                                   \
		 .kind = OPTION_NUMBER,                                                            \
		 ARG(keep),                                                                        \
		 .value_name = "N",                                                                \
		 .min = 2,                                                                         \
		 .max = 1000000,                                                                   \
		 .help = "With --rotate or --max-bytes: keep the last N recordings, delete older " \
			 "ones."},                                                                 \
		{.name = "max-bytes",                                                              \
		 .kind = OPTION_BYTES,                                                             \
		 ARG(max_bytes),                                                                   \
		 .value_name = "BYTES",                                                            \
		 .min = 1 << 20,                                                                   \
		 .help = "Keep all recordings together below BYTES (1G, 500M) at any time: start " \
			 "a new "                                                                  \
			 "one early, delete the oldest."},                                         \
		{.name = "flight",                                                                 \
		 .kind = OPTION_SECONDS,                                                           \
		 ARG(flight_s),                                                                    \
		 .value_name = "SEC",                                                              \
		 .help = "Flight recorder: hold the last SEC seconds in memory and write them to " \
			 "REC.1.gpuprof, REC.2.gpuprof and so on each time a trigger fires: "      \
			 "--trigger or "                                                           \
			 "'gpuprof ctl dump'."},                                                   \
		{.name = "flight-bytes",                                                           \
		 .kind = OPTION_BYTES,                                                             \
		 ARG(flight_bytes),                                                                \
		 .value_name = "BYTES",                                                            \
		 .min = 4 << 20,                                                                   \
		 .help = "With --flight: hold at most BYTES in memory. Default: 64M."},            \
		{.name = "trigger",                                                                \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(trigger),                                                                     \
		 .value_name = "slow-step=F,oom,hang=SEC,signal",                                  \
		 .known = flight_triggers_known,                                                   \
		 .rule = "a list of slow-step=F (of at least 1), oom, hang=SEC and signal",        \
		 .help = "With --flight, fire on: a step that takes more than F times the median " \
			 "of the "                                                                 \
			 "last 100, an allocation that fails (implies --memory), no step or "      \
			 "event for SEC "                                                          \
			 "seconds, SIGUSR2 to gpuprof."},                                          \
		{.name = "trigger-apart",                                                          \
		 .kind = OPTION_SECONDS,                                                           \
		 ARG(trigger_apart_s),                                                             \
		 .value_name = "SEC",                                                              \
		 .help = "With --trigger: only count a trigger that fires again within SEC "       \
			 "seconds of the "                                                         \
			 "last one. Default: 60."},                                                \
		OPTION_HEADING("what is recorded"),                                                \
		{.name = "ops",                                                                    \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(ops),                                                                         \
		 .value_name = "all|none|GLOB,...",                                                \
		 .help = "Which operators: all (the default), none, or patterns such as "          \
			 "'aten::conv*,mylib::*'. Annotations are recorded with patterns, too."},  \
		ROW_NO_ANNOTATIONS(                                                                \
			struct record_args,                                                        \
			"Leave out annotations (record_function(), NVTX, PyTorch's own) and "      \
			"autograd nodes. Steps are then found only by the cycle of operators, "    \
			"and "                                                                     \
			"in training not at all."),                                                \
		ROW_PYTHON_GC(                                                                     \
			struct record_args,                                                        \
			"Record Python's garbage collections, where this Python has probes for "   \
			"them."),                                                                  \
		ROW_MEMORY(struct record_args, "Record allocations and frees."),                   \
		ROW_STACK(struct record_args, "Record the stack of each operator and, with "       \
					      "--memory, of each allocation: "                     \
					      "Python's, the native one, or both merged. Native "  \
					      "stacks need uprobes for "                           \
					      "operators, which cost more than callbacks."),       \
		{.name = "metadata",                                                               \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(metadata),                                                                    \
		 .value_name = "KEY=VALUE,...",                                                    \
		 .known = metadata_is_sane,                                                        \
		 .rule = METADATA_RULE,                                                            \
		 .help = "Keep these pairs in the recording; its trace and its table's JSON show " \
			 "them."},                                                                 \
		ROW_SOCKET(                                                                        \
			struct record_args,                                                        \
			"Let 'gpuprof ctl --socket PATH' find this capture at PATH instead of in " \
			"/run/gpuprof."),                                                          \
		ROW_CHILDREN(                                                                      \
			struct record_args,                                                        \
			"Record the processes' descendants too: DataLoader's workers, the ranks "  \
			"of "                                                                      \
			"torchrun. Those that start during the capture are traced by uprobes."),   \
		ROW_NO_GPU(struct record_args, "Leave out GPU activity."),                         \
		ROW_FLAG(                                                                          \
			struct record_args, "any-cupti", any_cupti,                                \
			"Take GPU times even where a known bug of CUPTI endangers the process: "   \
			"before "                                                                  \
			"CUDA 12.2 one that runs CUDA graphs, in the first release of 13.0 any."), \
		ROW_NO_INJECT(struct record_args, "Put nothing into the process; trace it from "   \
						  "outside only. GPU times are then "              \
						  "missing, calls of CUDA are there."),            \
	{                                                                                          \
		.name = "ring-bytes", .kind = OPTION_NUMBER, ARG(ring_bytes), .value_name = "N",   \
		.help = "Size of the kernel's ring.", .min = 4096, .max = 1L << 30, .hidden = true \
	}

/* `run` hides them, and says why when they are given. */
#define INPUT_OPTIONS(is_hidden)                                                                   \
	{.name = "shapes",                                                                         \
	 .kind = OPTION_FLAG,                                                                      \
	 ARG(shapes),                                                                              \
	 .help = "Record sizes, types and values of operators' inputs. With --memory also what "   \
		 "memory is for: parameters, activations, gradients, ...",                         \
	 .hidden = (is_hidden)},                                                                   \
		{.name = "flops",                                                                  \
		 .kind = OPTION_FLAG,                                                              \
		 ARG(flops),                                                                       \
		 .help = "Count floating-point operations, from the inputs of operators. Implies " \
			 "--shapes.",                                                              \
		 .hidden = (is_hidden)},                                                           \
		{.name = "modules",                                                                \
		 .kind = OPTION_FLAG,                                                              \
		 ARG(modules),                                                                     \
		 .help = "Record which nn.Module's forward() each operator ran in.",               \
		 .hidden = (is_hidden)},                                                           \
	{                                                                                          \
		.name = "python-functions", .kind = OPTION_FLAG, ARG(python_functions),            \
		.help = "Record which Python functions called each operator, for the trace. "      \
			"Implies --stack python.",                                                 \
		.hidden = (is_hidden)                                                              \
	}

#define OUTPUT_OPTIONS                                                                             \
	ROW_OUTPUT(struct record_args, "REC",                                                      \
		   "Keep the recording as REC. Default: gpuprof-PID-TIME.gpuprof, here."),         \
		{.name = "trace",                                                                  \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(trace_path),                                                                  \
		 .value_name = "FILE",                                                             \
		 .complete = COMPLETE_FILE,                                                        \
		 .known = show_trace_path_fits,                                                    \
		 .rule = "a FILE whose name ends in .json or .pftrace",                            \
		 .help = "Write a Chrome trace, compressed if FILE ends in .gz; Perfetto's own "   \
			 "form if in "                                                             \
			 ".pftrace."},                                                             \
		{.name = "memory-timeline",                                                        \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(memory_path),                                                                 \
		 .value_name = "FILE",                                                             \
		 .complete = COMPLETE_FILE,                                                        \
		 .known = is_memory_file,                                                          \
		 .rule = "a FILE whose name ends in .html or .json",                               \
		 .help = "Write memory over time: a page if FILE ends in .html, its data if in "   \
			 ".json. "                                                                 \
			 "Implies --memory."},                                                     \
		{.name = "sort",                                                                   \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(sort),                                                                        \
		 .value_name = "KEY",                                                              \
		 .choices = table_sort_keys,                                                       \
		 .known = table_sort_key_known,                                                    \
		 .help = "Sort the table by KEY, one of torch.profiler's. Default: "               \
			 "self_cpu_time_total."},                                                  \
		ROW_LIMIT(struct record_args, limit, 0,                                            \
			  "Rows of the table, -1 for all. Default: 20 on a terminal, else 100; "   \
			  "all with "                                                              \
			  "--json."),                                                              \
		ROW_WIDE(struct record_args, wide),                                                \
		ROW_JSON(struct record_args, "Print the table as JSON."),                          \
	{                                                                                          \
		.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, ARG(quiet),                   \
		.help = "Log only errors and how complete the recording is, no progress and no "   \
			"notes."                                                                   \
	}

static const struct option_spec attach_options[] = {
	ROW_PIDS(struct record_args, "The processes to attach to."),
	ROW_NAME_OR_PIDS(struct record_args),
	ROW_WAIT(struct record_args),
	OPTION_HEADING("how and how long to record"),
	CAPTURE_OPTIONS,
	INPUT_OPTIONS(false),
	OPTION_HEADING("output"),
	OUTPUT_OPTIONS,
	{0},
};

static const struct option_spec run_options[] = {
	CAPTURE_OPTIONS, INPUT_OPTIONS(true), OPTION_HEADING("output"), OUTPUT_OPTIONS, {0},
};

static const char *const attach_first[] = {"pid",   "name",   "duration", "steps", "mode", "memory",
					   "stack", "shapes", "output",	  "trace", NULL};

static const char *const run_first[] = {"duration", "steps", "mode", "memory", "stack", "children",
					"output",   "trace", "sort", "limit",  NULL};

const struct command command_attach = {
	.name = "attach",
	.summary = "profile running processes",
	.usage = "--pid PID[,PID...] | --name PATTERN [options]",
	.about = "Records running PyTorch processes without restarting them. At the end it prints "
		 "the table and keeps the recording, from which 'gpuprof table' and 'gpuprof "
		 "export' make everything else.",
	.options = attach_options,
	.first = attach_first,
	.ends_in_order = true,
	.run = cli_attach,
};

const struct command command_run = {
	.name = "run",
	.summary = "start a program and profile it from its first instruction",
	.usage = "[options] -- CMD [ARGS...]",
	.about = "Starts CMD and records it from its first instruction to its end, or for "
		 "--duration. Then it prints the table and keeps the recording. With --children "
		 "it records the processes that CMD starts, too.",
	.options = run_options,
	.first = run_first,
	.operand = "the command to run",
	.min_operands = 1,
	.max_operands = -1,
	.complete = COMPLETE_COMMAND,
	.stops_at_operand = true,
	.ends_in_order = true,
	.run = cli_run,
};
