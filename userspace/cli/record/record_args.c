/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The option tables of `attach` and `run`: the same rows, but a process is chosen only by attach.
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
	ROW_MODE(struct record_args,                                                               \
		 "trace (the default): every operator. sample: what threads are found doing, so "  \
		 "many times a second, with Python and native stacks; operators come from the "    \
		 "stacks. Costs far less; times are estimates."),                                  \
		ROW_HZ(struct record_args),                                                        \
		{.name = "duration",                                                               \
		 .letter = 'd',                                                                    \
		 .kind = OPTION_SECONDS,                                                           \
		 ARG(duration_s),                                                                  \
		 .value_name = "SEC",                                                              \
		 .help = "End after SEC seconds. Otherwise Ctrl-C ends, or the end "               \
			 "of the last process."},                                                  \
		{.name = "steps",                                                                  \
		 .kind = OPTION_NUMBER,                                                            \
		 ARG(steps),                                                                       \
		 .value_name = "N",                                                                \
		 .min = 1,                                                                         \
		 .max = 1000000000,                                                                \
		 .help = "Record N whole steps of the (first) process and end. Steps are found "   \
			 "without changes to the program; see the manual."},                       \
		{.name = "schedule",                                                               \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(schedule),                                                                    \
		 .value_name = "wait=N,warmup=N,active=N,...",                                     \
		 .known = is_schedule,                                                             \
		 .rule = "a list such as wait=1,warmup=1,active=3,repeat=2,skip_first=10,"         \
			 "skip_first_wait=1, of which active must be given",                       \
		 .help = "Record steps as torch.profiler.schedule says, each cycle into a "        \
			 "recording of its own: REC.1.gpuprof, REC.2.gpuprof and so on unless "    \
			 "repeat=1."},                                                             \
		{.name = "overhead",                                                               \
		 .kind = OPTION_PERCENT,                                                           \
		 ARG(overhead_pct),                                                                \
		 .value_name = "PCT",                                                              \
		 .help = "Spend at most PCT percent of the processes' CPU time: everything is "    \
			 "recorded in windows of whole steps, as many as that allows, and the "    \
			 "whole is estimated from them. With --mode sample: take as many samples " \
			 "as that allows; 1 is the default there unless --hz is given."},          \
		OPTION_HEADING("recordings one after another, or only when something happens"),    \
		{.name = "rotate",                                                                 \
		 .kind = OPTION_SECONDS,                                                           \
		 ARG(rotate_s),                                                                    \
		 .value_name = "SEC",                                                              \
		 .help = "Begin a new recording every SEC seconds: REC.1.gpuprof, REC.2.gpuprof "  \
			 "and so on, each whole by itself."},                                      \
		{.name = "keep",                                                                   \
		 .kind = OPTION_NUMBER,                                                            \
		 ARG(keep),                                                                        \
		 .value_name = "N",                                                                \
		 .min = 2,                                                                         \
		 .max = 1000000,                                                                   \
		 .help = "With --rotate or --max-bytes: keep the last N recordings, remove older " \
			 "ones."},                                                                 \
		{.name = "max-bytes",                                                              \
		 .kind = OPTION_BYTES,                                                             \
		 ARG(max_bytes),                                                                   \
		 .value_name = "BYTES",                                                            \
		 .min = 1 << 20,                                                                   \
		 .help = "Keep all recordings together below BYTES (1G, 500M) at any time: begin " \
			 "a new one early, remove the oldest."},                                   \
		{.name = "flight",                                                                 \
		 .kind = OPTION_SECONDS,                                                           \
		 ARG(flight_s),                                                                    \
		 .value_name = "SEC",                                                              \
		 .help = "Flight recorder: hold the last SEC seconds in memory and write them, "   \
			 "REC.1.gpuprof and so on, each time that something sets it off: "         \
			 "--trigger or 'gpuprof ctl dump'."},                                      \
		{.name = "flight-bytes",                                                           \
		 .kind = OPTION_BYTES,                                                             \
		 ARG(flight_bytes),                                                                \
		 .value_name = "BYTES",                                                            \
		 .min = 4 << 20,                                                                   \
		 .help = "So much memory for that. Default: 64M."},                                \
		{.name = "trigger",                                                                \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(trigger),                                                                     \
		 .value_name = "slow-step=F,oom,hang=SEC,signal",                                  \
		 .known = flight_triggers_known,                                                   \
		 .rule = "a list of slow-step=F (of at least 1), oom, hang=SEC and signal",        \
		 .help = "What sets it off: a step that takes more than F times the median of "    \
			 "the "                                                                    \
			 "100 before, memory that is refused (implies --memory), no step or no "   \
			 "event for SEC seconds, SIGUSR2 to gpuprof."},                            \
		{.name = "trigger-apart",                                                          \
		 .kind = OPTION_SECONDS,                                                           \
		 ARG(trigger_apart_s),                                                             \
		 .value_name = "SEC",                                                              \
		 .help = "What would set it off again sooner than SEC seconds after the last "     \
			 "time "                                                                   \
			 "is counted only. Default: 60."},                                         \
		OPTION_HEADING("what is recorded"),                                                \
		{.name = "ops",                                                                    \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(ops),                                                                         \
		 .value_name = "all|none|GLOB,...",                                                \
		 .help = "Which operators: all (the default), none, or patterns such as "          \
			 "'aten::conv*,mylib::*'; annotations are recorded with those, too."},     \
		ROW_NO_ANNOTATIONS(                                                                \
			struct record_args,                                                        \
			"Leave out annotations (record_function(), NVTX, what PyTorch itself "     \
			"marks) and autograd nodes. Steps are then found by the cycle of "         \
			"operators alone, and not in training."),                                  \
		ROW_PYTHON_GC(struct record_args,                                                  \
			      "Record Python's garbage collections, where its own probes tell of " \
			      "them."),                                                            \
		ROW_MEMORY(struct record_args, "Record allocations and frees too."),               \
		ROW_STACK(                                                                         \
			struct record_args,                                                        \
			"Record the Python stack of each operator and, with --memory, of each "    \
			"allocation, the native one, or both in one. With native ones operators "  \
			"come by uprobes, which cost more than callbacks."),                       \
		{.name = "metadata",                                                               \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(metadata),                                                                    \
		 .value_name = "KEY=VALUE,...",                                                    \
		 .known = metadata_is_sane,                                                        \
		 .rule = METADATA_RULE,                                                            \
		 .help = "Words of your own for the recording; they stand in its trace and its "   \
			 "table's JSON."},                                                         \
		ROW_SOCKET(struct record_args,                                                     \
			   "Let 'gpuprof ctl --socket PATH' find this capture at PATH instead of " \
			   "in /run/gpuprof."),                                                    \
		ROW_CHILDREN(                                                                      \
			struct record_args,                                                        \
			"Record the processes that they start too, and what those start: "         \
			"DataLoader's workers, the ranks of torchrun. Those that start while it "  \
			"records are watched by uprobes."),                                        \
		ROW_NO_GPU(struct record_args, "Leave out what happens on GPUs."),                 \
		ROW_FLAG(struct record_args, "any-cupti", any_cupti,                               \
			 "Take GPU times even where CUDA's own library is known to endanger the "  \
			 "process: before CUDA 12.2 one that runs CUDA graphs, in the first "      \
			 "release "                                                                \
			 "of 13.0 any."),                                                          \
		ROW_NO_INJECT(struct record_args,                                                  \
			      "Put nothing into the process: watch from outside only. No GPU "     \
			      "times then, only the calls of CUDA."),                              \
	{                                                                                          \
		.name = "ring-bytes", .kind = OPTION_NUMBER, ARG(ring_bytes), .value_name = "N",   \
		.help = "Size of the kernel's ring.", .min = 4096, .max = 1L << 30, .hidden = true \
	}

/* Not for `run`, which says why. */
#define INPUT_OPTIONS(is_hidden)                                                                   \
	{.name = "shapes",                                                                         \
	 .kind = OPTION_FLAG,                                                                      \
	 ARG(shapes),                                                                              \
	 .help = "Record sizes, types and values of what operators are called with. With "         \
		 "--memory also what memory is for: parameters, activations, gradients, ...",      \
	 .hidden = (is_hidden)},                                                                   \
		{.name = "flops",                                                                  \
		 .kind = OPTION_FLAG,                                                              \
		 ARG(flops),                                                                       \
		 .help = "Count floating-point operations, from what operators are called with. "  \
			 "Implies --shapes.",                                                      \
		 .hidden = (is_hidden)},                                                           \
		{.name = "modules",                                                                \
		 .kind = OPTION_FLAG,                                                              \
		 ARG(modules),                                                                     \
		 .help = "Record which nn.Module's forward() was running.",                        \
		 .hidden = (is_hidden)},                                                           \
	{                                                                                          \
		.name = "python-functions", .kind = OPTION_FLAG, ARG(python_functions),            \
		.help = "Record which calls of Python functions operators are in, for the "        \
			"trace. Implies --stack python.",                                          \
		.hidden = (is_hidden)                                                              \
	}

#define OUTPUT_OPTIONS                                                                             \
	ROW_OUTPUT(struct record_args, "REC",                                                      \
		   "Keep the recording as REC. Default: gpuprof-PID-TIME.gpuprof here."),          \
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
		 .help = "Write the memory over time: a page if FILE ends in .html, "              \
			 "its data if in .json. Implies --memory."},                               \
		{.name = "sort",                                                                   \
		 .kind = OPTION_TEXT,                                                              \
		 ARG(sort),                                                                        \
		 .value_name = "KEY",                                                              \
		 .choices = table_sort_keys,                                                       \
		 .known = table_sort_key_known,                                                    \
		 .help = "Sort the table by KEY, as torch.profiler names them. Default: "          \
			 "self_cpu_time_total."},                                                  \
		ROW_LIMIT(struct record_args, limit, 0,                                            \
			  "Rows of the table, -1 for all. Default: 100, all with --json."),        \
		ROW_JSON(struct record_args, "Print the table as JSON."),                          \
	{                                                                                          \
		.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, ARG(quiet),                   \
		.help = "No progress and no notes on stderr, only errors and losses."              \
	}

static const struct option_spec attach_options[] = {
	ROW_PIDS(struct record_args, "The processes to attach to."),
	ROW_NAME_OR_PIDS(struct record_args),
	ROW_WAIT(struct record_args),
	OPTION_HEADING("how, and how long"),
	CAPTURE_OPTIONS,
	INPUT_OPTIONS(false),
	OPTION_HEADING("what comes out"),
	OUTPUT_OPTIONS,
	{0},
};

static const struct option_spec run_options[] = {
	CAPTURE_OPTIONS, INPUT_OPTIONS(true), OPTION_HEADING("what comes out"), OUTPUT_OPTIONS, {0},
};

const struct command command_attach = {
	.name = "attach",
	.summary = "profile running processes",
	.usage = "--pid PID[,PID...] | --name PATTERN [options]",
	.about = "Records what running PyTorch processes do, without restarting them. "
		 "At the end prints the table and keeps the recording, from which 'gpuprof table' "
		 "and 'gpuprof export' make everything else.",
	.options = attach_options,
	.ends_in_order = true,
	.run = cli_attach,
};

const struct command command_run = {
	.name = "run",
	.summary = "start a program and profile it from its first instruction",
	.usage = "[options] -- CMD [ARGS...]",
	.about = "Starts CMD and records it from the first instruction to its end, or to the end "
		 "of --duration. Prints the table and keeps the recording. Processes that CMD "
		 "starts are recorded with --children.",
	.options = run_options,
	.operand = "the command to run",
	.min_operands = 1,
	.max_operands = -1,
	.complete = COMPLETE_COMMAND,
	.stops_at_operand = true,
	.ends_in_order = true,
	.run = cli_run,
};
