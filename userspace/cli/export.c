/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof export REC --format FORMAT -o OUT`: other forms of a recording.
 */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/show.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "output/output.h"

#include <string.h>

struct export_args {
	const char *format;
	const char *output_path;
	const char *metric;
};

static const char *const formats[] = {"chrome",	    "perfetto", "memory",     "stacks",
				      "speedscope", "pprof",	"flamegraph", NULL};

static const struct option_spec export_options[] = {
	{.name = "format",
	 .letter = 'f',
	 .kind = OPTION_TEXT,
	 .offset = offsetof(struct export_args, format),
	 .value_name = "FORMAT",
	 .choices = formats,
	 .help = "'chrome': a trace for Perfetto and chrome://tracing, as torch.profiler writes "
		 "it. 'perfetto': the same in Perfetto's own form, much smaller (OUT ends in "
		 ".pftrace). "
		 "'memory': the memory over time, a page if OUT ends in .html, its data if in "
		 ".json. 'flamegraph': a page of flame graphs (OUT ends in .html). 'pprof': a "
		 "profile for go tool pprof (OUT ends in .pb.gz). 'speedscope': a profile for "
		 "speedscope. 'stacks': lines of stacks, as torch.profiler writes them."},
	{.name = "metric",
	 .letter = 'm',
	 .kind = OPTION_TEXT,
	 .offset = offsetof(struct export_args, metric),
	 .value_name = "METRIC",
	 .choices = output_stack_metrics,
	 .help = "What stacks are weighed by: self_cpu_time_total (the default) or "
		 "self_cuda_time_total, in microseconds, calls, allocations, allocated_bytes, or "
		 "peak_bytes: what was held when each device's memory held most. With 'pprof' "
		 "and 'flamegraph', which hold all of these: the one to show first."},
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_TEXT,
	 .offset = offsetof(struct export_args, output_path),
	 .value_name = "OUT",
	 .complete = COMPLETE_FILE,
	 .help = "The file to write; compressed if its name ends in .gz; '-' is stdout."},
	{0},
};

const struct command command_export = {
	.name = "export",
	.summary = "turn a recording into a trace, a memory timeline, flame graphs or profiles",
	.usage = "REC --format FORMAT -o OUT",
	.about =
		"Writes the recording REC in another form. The file appears under its name when it "
		"is whole.",
	.options = export_options,
	.operand = "the recording",
	.min_operands = 1,
	.max_operands = 1,
	.complete = COMPLETE_FILE,
	.run = cli_export,
};

static int write_output(const struct shown *s, const struct export_args *args, bool memory)
{
	if (show_stack_format_known(args->format))
		return shown__write_stacks(s, args->output_path, args->format, args->metric);
	return memory ? shown__write_memory(s, args->output_path)
		      : shown__write_trace(s, args->output_path, !strcmp(args->format, "perfetto"));
}

int cli_export(int argc, char **argv)
{
	CLEANUP(shown__done) struct shown s = {0};
	struct export_args args = {0};
	int operands, status = options_parse(&command_export, argc, argv, &args, &operands);
	int lost;
	bool memory;

	if (status >= 0)
		return status;
	if (!args.format || !args.output_path)
		return options_usage_error(&command_export, "missing %s",
					   args.format ? "-o OUT" : "--format FORMAT");
	memory = !strcmp(args.format, "memory");
	if (memory && !show_memory_path_fits(args.output_path))
		return options_usage_error(&command_export,
					   "cannot tell the form of '%s': give it "
					   "a name that ends in .html or .json",
					   args.output_path);
	/* A slip of the hand must not turn the recording into its own trace. */
	if (file_is_same(argv[1], args.output_path)) {
		log_err("cannot write '%s': it is the recording itself; name another file",
			args.output_path);
		return CLI_USAGE;
	}
	status = shown__open(&s, argv[1]);
	if (status != CLI_DONE)
		return status;
	status = write_output(&s, &args, memory);
	lost = shown__losses(&s);
	return status ? status : lost;
}
