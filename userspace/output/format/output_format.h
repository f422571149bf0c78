/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The formats that a recording can be exported to: one table. An output format is one file, which
 * defines the function that the table names, and one entry here. `gpuprof export` takes its checks,
 * the list in its help and its completion from the table.
 */
#ifndef GP_OUTPUT_FORMAT_OUTPUT_FORMAT_H
#define GP_OUTPUT_FORMAT_OUTPUT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sink;
struct timeline;

/* What an export was asked for, as far as the format takes it. Borrowed for the call. */
struct output_request {
	const char *path; /* the file's name, "-": stdout; for names inside and forms of a format */
	const char *metric; /* one of output_stack_metrics, NULL: the first */
	uint32_t process;   /* a position in timeline.processes, TL_NONE: all */
	uint8_t device;	    /* GP_TENSOR_CPU and on */
};

/* Writes the timeline to the sink, which the caller finishes and frees. The recording has what the
 * format needs and lacks nothing. 0 or -errno, which is shown as strerror() has it. */
typedef int output_write_fn(struct sink *s, const struct timeline *t,
			    const struct output_request *request);

/* Says why the timeline cannot be written: what follows "the recording " in the message, and what
 * to do about it. NULL: it can. */
typedef const char *output_lacks_fn(const struct timeline *t);

/* Options that not every format takes. */
enum output_takes {
	OUTPUT_TAKES_METRIC = 1,
	OUTPUT_TAKES_STEPS = 2,
	OUTPUT_TAKES_DEVICE = 4,
	OUTPUT_TAKES_PID = 8,
};

/* Needs that several formats share; cli/view/loaded_recording_files.c checks each. What one format
 * alone needs is its `lacks`. */
enum output_needs {
	OUTPUT_NEEDS_MEMORY = 1,      /* memory events */
	OUTPUT_NEEDS_STACKS = 2,      /* of --stack, or of samples, with something of the metric */
	OUTPUT_NEEDS_PROCESS = 4,     /* one: the only one, or that of --pid */
	OUTPUT_NEEDS_ANNOTATIONS = 8, /* warns only: there may just have been none */
};

#define OUTPUT_EXTENSIONS_MAX 2

struct output_format {
	const char *name;
	const char *help;     /* what follows "'NAME': ", without a full stop */
	const char *contents; /* what is written, for messages: "cannot write the CONTENTS" */
	/* Those that files may have, of the extensions in this table; "x.json.gz" has ".json". */
	const char *extensions[OUTPUT_EXTENSIONS_MAX];
	unsigned int takes, needs;
	bool extension_decides; /* between several forms: one is needed, but for stdout */
	bool is_directory;	/* a file for each process in it */
	output_lacks_fn *lacks; /* NULL: nothing beside what it needs */
	output_write_fn *write;
};

/*
 * FORMAT(name, write, help, other members), in the order in which they are listed. The header
 * declares the function, called output_format_NAME by custom.
 */
/* clang-format off */
#define OUTPUT_FORMATS(FORMAT)                                                                     \
	FORMAT("chrome", output_format_chrome,                                                     \
	       "a trace for Perfetto and chrome://tracing, as torch.profiler writes it",           \
	       .contents = "trace", .extensions = {".json"},                                       \
	       .takes = OUTPUT_TAKES_STEPS | OUTPUT_TAKES_PID)                                     \
	FORMAT("perfetto", output_format_perfetto,                                                 \
	       "the same in Perfetto's own form, much smaller (OUT ends in .pftrace)",             \
	       .contents = "trace", .extensions = {".pftrace"}, .takes = OUTPUT_TAKES_STEPS)       \
	FORMAT("memory", output_format_memory,                                                     \
	       "the memory over time, a page if OUT ends in .html, its data if in .json",          \
	       .contents = "memory timeline", .extensions = {".html", ".json"},                    \
	       .takes = OUTPUT_TAKES_STEPS, .needs = OUTPUT_NEEDS_MEMORY,                          \
	       .extension_decides = true)                                                          \
	FORMAT("memory-timeline", output_format_memory_timeline,                                   \
	       "the same by category, as torch.profiler's export_memory_timeline writes .json "    \
	       "and .raw.json.gz",                                                                 \
	       .contents = "memory timeline", .extensions = {".json"},                             \
	       .takes = OUTPUT_TAKES_DEVICE | OUTPUT_TAKES_PID,                                    \
	       .needs = OUTPUT_NEEDS_PROCESS, .lacks = output_lacks_categories)                    \
	FORMAT("snapshot", output_format_snapshot,                                                 \
	       "allocations and frees for PyTorch's memory_viz",                                   \
	       .contents = "memory snapshot", .extensions = {".pickle"},                           \
	       .takes = OUTPUT_TAKES_PID, .needs = OUTPUT_NEEDS_MEMORY | OUTPUT_NEEDS_PROCESS)     \
	FORMAT("stacks", output_format_stacks,                                                     \
	       "lines of stacks, as torch.profiler writes them",                                   \
	       .contents = "stacks", .takes = OUTPUT_TAKES_METRIC, .needs = OUTPUT_NEEDS_STACKS)   \
	FORMAT("speedscope", output_format_speedscope,                                             \
	       "a profile for speedscope",                                                         \
	       .contents = "stacks", .extensions = {".json"}, .takes = OUTPUT_TAKES_METRIC,        \
	       .needs = OUTPUT_NEEDS_STACKS)                                                       \
	FORMAT("pprof", output_format_pprof,                                                       \
	       "a profile for go tool pprof (OUT ends in .pb.gz)",                                 \
	       .contents = "stacks", .extensions = {".pb"},                                        \
	       .takes = OUTPUT_TAKES_METRIC | OUTPUT_TAKES_STEPS, .needs = OUTPUT_NEEDS_STACKS)    \
	FORMAT("flamegraph", output_format_flamegraph,                                             \
	       "a page of flame graphs (OUT ends in .html)",                                       \
	       .contents = "stacks", .extensions = {".html"},                                      \
	       .takes = OUTPUT_TAKES_METRIC | OUTPUT_TAKES_STEPS, .needs = OUTPUT_NEEDS_STACKS)    \
	FORMAT("tensorboard", output_format_tensorboard,                                           \
	       "a trace of each process into the directory OUT, for TensorBoard's plugin",         \
	       .contents = "trace", .takes = OUTPUT_TAKES_STEPS, .is_directory = true)             \
	FORMAT("lightning", output_format_lightning,                                               \
	       "the report of PyTorch Lightning's SimpleProfiler",                                 \
	       .contents = "report", .takes = OUTPUT_TAKES_STEPS,                                  \
	       .needs = OUTPUT_NEEDS_ANNOTATIONS)

#define OUTPUT_FORMAT_DECLARE(name_, write_, help_, ...) output_write_fn write_;
OUTPUT_FORMATS(OUTPUT_FORMAT_DECLARE)
output_lacks_fn output_lacks_categories;

/* A sentence for each format, as one literal. */
#define OUTPUT_FORMAT_HELP(name_, write_, help_, ...) "'" name_ "': " help_ ". "
#define OUTPUT_FORMATS_HELP OUTPUT_FORMATS(OUTPUT_FORMAT_HELP)
/* clang-format on */

extern const struct output_format output_formats[];
extern const size_t output_formats_nr;

/* NULL-terminated: the names, in the same order. */
extern const char *const output_format_names[];

/* The format of this name; NULL: there is none. */
const struct output_format *output_format_find(const char *name);

/* Whether the format's files may end so. */
bool output_format_has_extension(const struct output_format *format, const char *extension);

/* The extension that says what is in a file of this name, if it is one of the table; or NULL. */
const char *output_known_extension(const char *path);

/* Whether the name ends so ("x.json", "x.json.gz": ".json"), with something before it. */
bool output_path_ends(const char *path, const char *extension);

#endif /* GP_OUTPUT_FORMAT_OUTPUT_FORMAT_H */
