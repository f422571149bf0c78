/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * From a recording on disk to everything that can be made of it: the end of `attach` and `run`, and
 * the whole of `table` and `export`.
 */
#ifndef GP_CLI_VIEW_LOADED_RECORDING_H
#define GP_CLI_VIEW_LOADED_RECORDING_H

#include "output/format/output_format.h"
#include "recording/recording.h"
#include "timeline/analysis/sample_table.h"
#include "timeline/analysis/table.h"
#include "timeline/model/timeline.h"

#include <stdbool.h>

#define SHOW_LIMIT_UNSAID (-2)

struct show_options {
	const char *sort; /* NULL: the default key */
	long limit;	  /* rows, -1: all, or SHOW_LIMIT_UNSAID */
	bool json;
	bool wide;		 /* all columns, whatever the terminal's width */
	const char *trace_path;	 /* NULL: none */
	const char *memory_path; /* NULL: none */
	bool report_steps;	 /* on stderr */
	/* `table` only; all zero elsewhere */
	bool csv;
	bool by_overload;
	bool by_shape;
	enum table_parts parts;
	struct tl_part only;
	uint32_t by_stack;
	bool by_module, module_tree, between;
	enum sample_group samples_by; /* of a recording of samples */
	bool top_level, compensate;
	const char *time_unit;
	bool steps; /* a row for them, also where the recording was not made by steps */
	const char *header;
	bool losses; /* name every counter, also those that are harmless or zero */
};

/* Prints the table to stdout and the losses to stderr, and writes the files. Logs what fails.
 * Returns an enum cli_status: CLI_LOST if events were lost. */
int show_recording(const char *path, const struct show_options *options);

/* The same with the ranks of a job beside each other in place of the table; of the options only
 * `limit` and `json` count. */
int show_ranks(const char *path, const struct show_options *options);

/* Whether a memory timeline can be written under this name: .html or .json, perhaps with .gz; "-"
 * for JSON on stdout. Does not log. */
bool show_memory_path_fits(const char *path);

/* Whether a trace can be written under this name: not if it ends as another format's files do. Does
 * not log. */
bool show_trace_path_fits(const char *path);

/* A recording with its timeline. */
struct loaded_recording {
	struct recording *recording;
	struct timeline *timeline;
};

/* Opens it, as far as it is good, with a warning where it is not. Logs why it cannot be opened.
 * Returns CLI_DONE or CLI_FAILED. */
int loaded_recording__open(struct loaded_recording *s, const char *path);

/* The same, with an op for each step. */
int loaded_recording__open_steps(struct loaded_recording *s, const char *path);
void loaded_recording__done(struct loaded_recording *s);

/* Logs that WHAT cannot be written to `path` ("-": stdout), with -errno. Returns CLI_FAILED. */
int show_output_failed(const char *what, const char *path, int err);

/* Prints to stderr how complete the recording is, with `every` each counter by its name; returns
 * CLI_LOST if there were events that never arrived, else CLI_DONE. */
int loaded_recording__losses(const struct loaded_recording *s, bool every);

/* Options that some formats take. */
struct export_options {
	const char *metric; /* of output_stack_metrics, NULL: self CPU time */
	const char *device; /* "cpu", "cuda:N"; NULL: CUDA's first if there is any, else the CPU */
	long pid;	    /* 0: all, or the only process */
};

/* Writes one output to a file that appears when it is whole ("-": to stdout), or for a format that
 * is a directory one file per process into `path`, which is made if need be. Logs what fails.
 * Returns CLI_DONE, CLI_FAILED, or CLI_USAGE if there is no such process or device. */
int loaded_recording__export(const struct loaded_recording *s, const struct output_format *format,
			     const char *path, const struct export_options *options);

/* A trace in the format that the name asks for: Perfetto's if it ends in .pftrace, else Chrome's.
 * Returns as above. */
int loaded_recording__write_trace(const struct loaded_recording *s, const char *path);

/* The memory timeline. Returns as above. */
int loaded_recording__write_memory(const struct loaded_recording *s, const char *path);

#endif /* GP_CLI_VIEW_LOADED_RECORDING_H */
