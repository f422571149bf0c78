/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof export REC --format FORMAT -o OUT`: a recording in another format. The formats are those
 * of output/format/output_format.h.
 */
#include "cli/core/cli.h"
#include "cli/core/option_rows.h"
#include "cli/view/loaded_recording.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "output/format/output.h"
#include "output/format/output_format.h"

#include <string.h>

struct export_args {
	const char *format;
	const char *output_path;
	struct export_options options;
	bool steps;
};

static const struct option_spec export_rows[] = {
	{.name = "format",
	 .letter = 'f',
	 .kind = OPTION_TEXT,
	 .offset = offsetof(struct export_args, format),
	 .value_name = "FORMAT",
	 .choices = output_format_names,
	 .help = OUTPUT_FORMATS_HELP},
	{.name = "metric",
	 .letter = 'm',
	 .kind = OPTION_TEXT,
	 .offset = offsetof(struct export_args, options.metric),
	 .value_name = "METRIC",
	 .choices = output_stack_metrics,
	 .help = "What stacks are weighed by: self_cpu_time_total (the default) or "
		 "self_cuda_time_total, in microseconds, calls, allocations, allocated_bytes, or "
		 "peak_bytes: what was held when each device's memory held most. With 'pprof' "
		 "and 'flamegraph', which hold all of these: the one to show first."},
	{.name = "steps",
	 .kind = OPTION_FLAG,
	 .offset = offsetof(struct export_args, steps),
	 .help = "In traces, 'memory', 'pprof', 'flamegraph' and 'lightning': show the steps that "
		 "were found as ProfilerStep#N. Recordings made by steps show them always."},
	{.name = "device",
	 .kind = OPTION_TEXT,
	 .offset = offsetof(struct export_args, options.device),
	 .value_name = "DEVICE",
	 .help = "Of 'memory-timeline': 'cpu' or 'cuda:N'. Default: cuda:0 if it was used, else "
		 "cpu."},
	{.name = "pid",
	 .letter = 'p',
	 .kind = OPTION_NUMBER,
	 .offset = offsetof(struct export_args, options.pid),
	 .value_name = "PID",
	 .min = 1,
	 .max = 1L << 30,
	 .help = "Of 'memory-timeline' and 'snapshot': the process, where the recording has "
		 "several. Of 'chrome': this process alone."},
	ROW_OUTPUT(struct export_args, "OUT",
		   "The file to write; compressed if its name ends in .gz; '-' is stdout."),
	{0},
};

const struct command command_export = {
	.name = "export",
	.summary = "turn a recording into a trace, a memory timeline, flame graphs or profiles",
	.usage = "REC --format FORMAT -o OUT",
	.about =
		"Writes the recording REC in another form. The file appears under its name when it "
		"is whole.",
	.options = export_rows,
	.operand = "the recording",
	.min_operands = 1,
	.max_operands = 1,
	.complete = COMPLETE_FILE,
	.run = cli_export,
};

/* ---- what fits together ---- */

static const struct {
	unsigned int bit;
	const char *name;
} partial_options[] = {
	{OUTPUT_TAKES_METRIC, "metric"},
	{OUTPUT_TAKES_STEPS, "steps"},
	{OUTPUT_TAKES_DEVICE, "device"},
	{OUTPUT_TAKES_PID, "pid"},
};

static unsigned int options_given(const struct export_args *args)
{
	const struct export_options *o = &args->options;

	return (o->metric ? OUTPUT_TAKES_METRIC : 0) | (args->steps ? OUTPUT_TAKES_STEPS : 0) |
	       (o->device ? OUTPUT_TAKES_DEVICE : 0) | (o->pid ? OUTPUT_TAKES_PID : 0);
}

/* Whether the format takes every option that was given. Logs which formats do where it does not. */
static bool options_fit(const struct export_args *args, const struct output_format *format)
{
	unsigned int over = options_given(args) & ~format->takes;
	CLEANUP(buf__done) struct buf b = {0};

	for (size_t i = 0; i < sizeof(partial_options) / sizeof(*partial_options); i++) {
		if (!(over & partial_options[i].bit))
			continue;
		for (size_t k = 0; k < output_formats_nr; k++)
			if (output_formats[k].takes & partial_options[i].bit)
				buf__printf(&b, "%s%s", b.nr ? ", " : "", output_formats[k].name);
		(void)options_usage_error(&command_export, "--%s is not for '%s', but for: %s",
					  partial_options[i].name, format->name,
					  b.bytes ? b.bytes : "");
		return false;
	}
	return true;
}

/* Whether the name's extension, which readers go by, is one of the format's. Logs which formats
 * have it where not. */
static bool extension_fits(const char *path, const struct output_format *format)
{
	const char *extension = output_known_extension(path);
	CLEANUP(buf__done) struct buf b = {0};

	if (!extension || output_format_has_extension(format, extension))
		return true;
	for (size_t k = 0; k < output_formats_nr; k++)
		if (output_format_has_extension(&output_formats[k], extension))
			buf__printf(&b, "%s%s", b.nr ? ", " : "", output_formats[k].name);
	(void)options_usage_error(&command_export,
				  "'%s' writes no %s file, as '%s' would be; those that do: %s",
				  format->name, extension, path, b.bytes ? b.bytes : "");
	return false;
}

/* Whether the name says which of its forms a format is to write, where there are several. */
static bool form_is_known(const char *path, const struct output_format *format)
{
	CLEANUP(buf__done) struct buf b = {0};

	if (!format->extension_decides || output_known_extension(path) || !strcmp(path, "-"))
		return true;
	for (int i = 0; i < OUTPUT_EXTENSIONS_MAX && format->extensions[i]; i++)
		buf__printf(&b, "%s%s", i ? " or " : "", format->extensions[i]);
	(void)options_usage_error(&command_export,
				  "cannot tell the form of '%s': give it a name that ends in %s",
				  path, b.bytes ? b.bytes : "");
	return false;
}

/* Whether the output can have this name. Logs why not. */
static bool name_fits(const char *path, const struct output_format *format)
{
	if (format->is_directory && !strcmp(path, "-")) {
		(void)options_usage_error(&command_export,
					  "'%s' writes files into a directory: name one",
					  format->name);
		return false;
	}
	return extension_fits(path, format) && form_is_known(path, format);
}

int cli_export(int argc, char **argv)
{
	CLEANUP(loaded_recording__done) struct loaded_recording s = {0};
	struct export_args args = {0};
	const struct output_format *format;
	int operands, status = options_parse(&command_export, argc, argv, &args, &operands);

	if (status >= 0)
		return status;
	if (!args.format || !args.output_path)
		return options_usage_error(&command_export, "missing %s",
					   args.format ? "-o OUT" : "--format FORMAT");
	format = output_format_find(args.format);
	if (!options_fit(&args, format) || !name_fits(args.output_path, format))
		return CLI_USAGE;
	/* A slip of the hand must not turn the recording into its own trace. */
	if (file_is_same(argv[1], args.output_path)) {
		log_err("cannot write '%s': it is the recording itself; name another file",
			args.output_path);
		return CLI_USAGE;
	}
	memory_end_me_first();
	status = args.steps ? loaded_recording__open_steps(&s, argv[1])
			    : loaded_recording__open(&s, argv[1]);
	if (status != CLI_DONE)
		return status;
	if (args.steps && s.timeline->sampled) {
		log_err("the recording is of samples: --steps is for operators, leave it out");
		return CLI_USAGE;
	}
	status = loaded_recording__export(&s, format, args.output_path, &args.options);
	return status ? status : loaded_recording__losses(&s, false);
}
