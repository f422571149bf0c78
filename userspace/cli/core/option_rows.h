/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Defines the option rows that several subcommands share, so that an option has the same name,
 * letter and values everywhere. Each macro takes the structure that options_parse() fills, whose
 * member has the option's name (ROW_PIDS: `pids`, ROW_OUTPUT: `output_path`), and the help, which
 * says what the option means to that subcommand.
 */
#ifndef GP_CLI_CORE_OPTION_ROWS_H
#define GP_CLI_CORE_OPTION_ROWS_H

#include "cli/core/options.h"
#include "cli/core/record_mode.h"

#include <stddef.h>
#include <stdint.h>

/* bool */
#define ROW_FLAG(args, option, field, text)                                                        \
	{                                                                                          \
		.name = option, .kind = OPTION_FLAG, .offset = offsetof(args, field), .help = text \
	}

#define ROW_MEMORY(args, text)	       ROW_FLAG(args, "memory", memory, text)
#define ROW_NO_ANNOTATIONS(args, text) ROW_FLAG(args, "no-annotations", no_annotations, text)
#define ROW_PYTHON_GC(args, text)      ROW_FLAG(args, "python-gc", python_gc, text)
#define ROW_CHILDREN(args, text)       ROW_FLAG(args, "children", children, text)
#define ROW_NO_GPU(args, text)	       ROW_FLAG(args, "no-gpu", no_gpu, text)
#define ROW_NO_INJECT(args, text)      ROW_FLAG(args, "no-inject", no_inject, text)
#define ROW_JSON(args, text)	       ROW_FLAG(args, "json", json, text)

/* const char * */
#define ROW_PIDS(args, text)                                                                       \
	{                                                                                          \
		.name = "pid", .letter = 'p', .kind = OPTION_TEXT, .offset = offsetof(args, pids), \
		.value_name = "PID[,PID...]", .complete = COMPLETE_PID, .help = text               \
	}

#define ROW_NAME(args, text)                                                                       \
	{                                                                                          \
		.name = "name", .letter = 'n', .kind = OPTION_TEXT,                                \
		.offset = offsetof(args, name), .value_name = "PATTERN", .help = text              \
	}

/* For commands whose processes pids_choose() chooses. */
#define ROW_NAME_OR_PIDS(args)                                                                     \
	ROW_NAME(args, "Instead of --pid: every process with PyTorch whose command line contains " \
		       "PATTERN (a shell pattern).")

/* For commands that pass it to pids_check(). */
#define ROW_WAIT(args)                                                                             \
	ROW_FLAG(args, "wait", wait,                                                               \
		 "Also accept processes without PyTorch, and record them once they load it. "      \
		 "Without it they are an error, except with --mode sample or --children.")

#define ROW_STACK(args, text)                                                                      \
	{                                                                                          \
		.name = "stack", .kind = OPTION_TEXT, .offset = offsetof(args, stack),             \
		.value_name = "python|native|both", .choices = record_stacks, .help = text         \
	}

#define ROW_MODE(args, text)                                                                       \
	{                                                                                          \
		.name = "mode", .kind = OPTION_TEXT, .offset = offsetof(args, mode),               \
		.value_name = "trace|sample", .choices = record_mode_names, .help = text           \
	}

#define ROW_OUTPUT(args, value, text)                                                              \
	{                                                                                          \
		.name = "output", .letter = 'o', .kind = OPTION_TEXT,                              \
		.offset = offsetof(args, output_path), .value_name = value,                        \
		.complete = COMPLETE_FILE, .help = text                                            \
	}

#define ROW_SOCKET(args, text)                                                                     \
	{                                                                                          \
		.name = "socket", .kind = OPTION_TEXT, .offset = offsetof(args, socket),           \
		.value_name = "PATH", .complete = COMPLETE_FILE, .help = text                      \
	}

/* long */
#define ROW_HZ(args)                                                                               \
	{                                                                                          \
		.name = "hz", .kind = OPTION_NUMBER, .offset = offsetof(args, hz),                 \
		.value_name = "N", .min = 1, .max = 10000,                                         \
		.help = "With --mode sample: samples a second of each CPU; with --overhead as "    \
			"well: at most. Default: at most 99, and fewer where they would cost "     \
			"more than a percent."                                                     \
	}

/* double; for commands that otherwise trace everything */
#define ROW_OVERHEAD_OF_SAMPLES(args)                                                              \
	{                                                                                          \
		.name = "overhead", .kind = OPTION_PERCENT,                                        \
		.offset = offsetof(args, overhead_pct), .value_name = "PCT",                       \
		.help = "With --mode sample: take as many samples as PCT percent of the "          \
			"processes' CPU time allow. Default: 1 unless --hz is given."              \
	}

#define ROW_PID(args, text)                                                                        \
	{                                                                                          \
		.name = "pid", .letter = 'p', .kind = OPTION_NUMBER,                               \
		.offset = offsetof(args, pid), .value_name = "PID", .min = 1, .max = INT32_MAX,    \
		.complete = COMPLETE_PID, .help = text                                             \
	}

#define ROW_LIMIT(args, field, short_name, text)                                                   \
	{                                                                                          \
		.name = "limit", .letter = short_name, .kind = OPTION_NUMBER,                      \
		.offset = offsetof(args, field), .value_name = "N", .min = -1, .max = 1000000000,  \
		.help = text                                                                       \
	}

#define ROW_WIDE(args, field)                                                                      \
	ROW_FLAG(args, "wide", field,                                                              \
		 "Print all columns. Without it the table fits the terminal: names, shapes and "   \
		 "source locations are cut, then columns are left out, in this order: CPU time "   \
		 "avg, CUDA time avg, CPU total %, Self CUDA %, GFLOP/s, All FLOPs, CPU Mem, "     \
		 "CUDA Mem, est Calls, Self CPU %, est SelfCUDA, CUDA total, CPU total, Self CPU " \
		 "Mem, Self CUDA Mem, Total FLOPs, # of Calls, est Self CPU. The column that "     \
		 "sorts stays. What is not a terminal gets all.")

#endif /* GP_CLI_CORE_OPTION_ROWS_H */
