/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof export REC --format FORMAT -o OUT`: other forms of a recording.
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

#include <string.h>

struct export_args {
	const char *format;
	const char *output_path;
	const char *metric;
	bool steps;
	struct show_device device;
};

static const char *const formats[] = {"chrome",	    "perfetto",	   "memory",	 "memory-timeline",
				      "snapshot",   "stacks",	   "speedscope", "pprof",
				      "flamegraph", "tensorboard", "lightning",	 NULL};

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
		 ".json. 'memory-timeline': the same by category, as torch.profiler's "
		 "export_memory_timeline writes .json and .raw.json.gz. 'snapshot': allocations "
		 "and frees for PyTorch's memory_viz. 'flamegraph': a page of flame graphs (OUT "
		 "ends in .html). 'pprof': a profile for go tool pprof (OUT ends in .pb.gz). "
		 "'speedscope': a profile for speedscope. 'stacks': lines of stacks, as "
		 "torch.profiler writes them. 'tensorboard': a trace of each process into the "
		 "directory OUT, for TensorBoard's plugin. 'lightning': the report of PyTorch "
		 "Lightning's SimpleProfiler."},
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
	{.name = "steps",
	 .kind = OPTION_FLAG,
	 .offset = offsetof(struct export_args, steps),
	 .help = "In traces, 'memory', 'pprof', 'flamegraph' and 'lightning': show the steps that "
		 "were found as ProfilerStep#N. Recordings made by steps show them always."},
	{.name = "device",
	 .kind = OPTION_TEXT,
	 .offset = offsetof(struct export_args, device.device),
	 .value_name = "DEVICE",
	 .help = "Of 'memory-timeline': 'cpu' or 'cuda:N'. Default: cuda:0 if it was used, else "
		 "cpu."},
	{.name = "pid",
	 .letter = 'p',
	 .kind = OPTION_NUMBER,
	 .offset = offsetof(struct export_args, device.pid),
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
	.options = export_options,
	.operand = "the recording",
	.min_operands = 1,
	.max_operands = 1,
	.complete = COMPLETE_FILE,
	.run = cli_export,
};

/* ---- formats ---- */

static int export_chrome(const struct loaded_recording *s, const struct export_args *args)
{
	return loaded_recording__write_chrome(s, args->output_path, args->device.pid);
}

static int export_perfetto(const struct loaded_recording *s, const struct export_args *args)
{
	return loaded_recording__write_perfetto(s, args->output_path);
}

static int export_memory(const struct loaded_recording *s, const struct export_args *args)
{
	return loaded_recording__write_memory(s, args->output_path);
}

static int export_memory_timeline(const struct loaded_recording *s, const struct export_args *args)
{
	return loaded_recording__write_memory_timeline(s, args->output_path, &args->device);
}

static int export_snapshot(const struct loaded_recording *s, const struct export_args *args)
{
	return loaded_recording__write_snapshot(s, args->output_path, args->device.pid);
}

static int export_stacks(const struct loaded_recording *s, const struct export_args *args)
{
	return loaded_recording__write_stacks(s, args->output_path, args->format, args->metric);
}

static int export_tensorboard(const struct loaded_recording *s, const struct export_args *args)
{
	return loaded_recording__write_tensorboard(s, args->output_path);
}

static int export_lightning(const struct loaded_recording *s, const struct export_args *args)
{
	return loaded_recording__write_actions(s, args->output_path);
}

/* What an option of some formats alone is called. */
enum { TAKES_METRIC = 1, TAKES_STEPS = 2, TAKES_DEVICE = 4, TAKES_PID = 8 };

static const struct {
	unsigned int bit;
	const char *name;
} partial_options[] = {
	{TAKES_METRIC, "metric"},
	{TAKES_STEPS, "steps"},
	{TAKES_DEVICE, "device"},
	{TAKES_PID, "pid"},
};

/* In the order of `formats`. */
static const struct kind {
	int (*write)(const struct loaded_recording *s, const struct export_args *args);
	unsigned int takes;
	/* By the ends of names that say what is in a file, those that this one may have. */
	const char *endings[3];
} kinds[] = {
	{export_chrome, TAKES_STEPS | TAKES_PID, {".json"}},
	{export_perfetto, TAKES_STEPS, {".pftrace"}},
	{export_memory, TAKES_STEPS, {".html", ".json"}},
	{export_memory_timeline, TAKES_DEVICE | TAKES_PID, {".json"}},
	{export_snapshot, TAKES_PID, {".pickle"}},
	{export_stacks, TAKES_METRIC, {NULL}},
	{export_stacks, TAKES_METRIC, {".json"}},
	{export_stacks, TAKES_METRIC | TAKES_STEPS, {".pb"}},
	{export_stacks, TAKES_METRIC | TAKES_STEPS, {".html"}},
	{export_tensorboard, TAKES_STEPS, {NULL}},
	{export_lightning, TAKES_STEPS, {NULL}},
};

_Static_assert(sizeof(kinds) / sizeof(*kinds) + 1 == sizeof(formats) / sizeof(*formats),
	       "a kind for each format");

#define KINDS_NR (sizeof(kinds) / sizeof(*kinds))

static const struct kind *kind_of(const char *format)
{
	size_t i = 0;

	while (strcmp(formats[i], format) != 0)
		i++;
	return &kinds[i];
}

static unsigned int options_given(const struct export_args *args)
{
	return (args->metric ? TAKES_METRIC : 0) | (args->steps ? TAKES_STEPS : 0) |
	       (args->device.device ? TAKES_DEVICE : 0) | (args->device.pid ? TAKES_PID : 0);
}

/* Whether the format takes every option that was given. Says which ones take it where not. */
static bool options_fit(const struct export_args *args)
{
	unsigned int over = options_given(args) & ~kind_of(args->format)->takes;
	CLEANUP(buf__done) struct buf b = {0};

	for (size_t i = 0; i < sizeof(partial_options) / sizeof(*partial_options); i++) {
		if (!(over & partial_options[i].bit))
			continue;
		for (size_t k = 0; k < KINDS_NR; k++)
			if (kinds[k].takes & partial_options[i].bit)
				buf__printf(&b, "%s%s", b.nr ? ", " : "", formats[k]);
		(void)options_usage_error(&command_export, "--%s is not for '%s', but for: %s",
					  partial_options[i].name, args->format,
					  b.bytes ? b.bytes : "");
		return false;
	}
	return true;
}

static const char *const known_endings[] = {".json", ".html", ".pftrace", ".pb", ".pickle"};

static bool kind_has_ending(const struct kind *kind, const char *ending)
{
	for (size_t i = 0; i < sizeof(kind->endings) / sizeof(*kind->endings); i++)
		if (kind->endings[i] && !strcmp(kind->endings[i], ending))
			return true;
	return false;
}

/* Whether the name does not say that something else is in the file: readers go by it. */
static bool name_fits(const struct export_args *args)
{
	const char *ending = NULL;
	CLEANUP(buf__done) struct buf b = {0};

	if (!strcmp(args->format, "tensorboard") && !strcmp(args->output_path, "-")) {
		(void)options_usage_error(&command_export,
					  "'tensorboard' writes files into a directory: name one");
		return false;
	}
	for (size_t i = 0; i < sizeof(known_endings) / sizeof(*known_endings); i++)
		if (show_path_ends(args->output_path, known_endings[i]))
			ending = known_endings[i];
	if (!ending || kind_has_ending(kind_of(args->format), ending))
		return true;
	for (size_t k = 0; k < KINDS_NR; k++)
		if (kind_has_ending(&kinds[k], ending))
			buf__printf(&b, "%s%s", b.nr ? ", " : "", formats[k]);
	(void)options_usage_error(&command_export,
				  "'%s' writes no %s file, as '%s' would be; those that do: %s",
				  args->format, ending, args->output_path, b.bytes ? b.bytes : "");
	return false;
}

int cli_export(int argc, char **argv)
{
	CLEANUP(loaded_recording__done) struct loaded_recording s = {0};
	struct export_args args = {0};
	int operands, status = options_parse(&command_export, argc, argv, &args, &operands);

	if (status >= 0)
		return status;
	if (!args.format || !args.output_path)
		return options_usage_error(&command_export, "missing %s",
					   args.format ? "-o OUT" : "--format FORMAT");
	if (!options_fit(&args) || !name_fits(&args))
		return CLI_USAGE;
	if (!strcmp(args.format, "memory") && !show_memory_path_fits(args.output_path))
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
	memory_end_me_first();
	status = args.steps ? loaded_recording__open_steps(&s, argv[1])
			    : loaded_recording__open(&s, argv[1]);
	if (status != CLI_DONE)
		return status;
	if (args.steps && s.timeline->sampled) {
		log_err("the recording is of samples: --steps is for operators, leave it out");
		return CLI_USAGE;
	}
	status = kind_of(args.format)->write(&s, &args);
	return status ? status : loaded_recording__losses(&s, false);
}
