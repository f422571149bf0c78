/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The files that a recording is exported to, in any format of output/format/output_format.h.
 */
#include "cli/view/loaded_recording.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/view/missing_data.h"
#include "output/format/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool show_memory_path_fits(const char *path)
{
	const char *extension = output_known_extension(path);

	return !strcmp(path, "-") ||
	       (extension && output_format_has_extension(output_format_find("memory"), extension));
}

bool show_trace_path_fits(const char *path)
{
	const char *extension = output_known_extension(path);

	return !extension || output_format_has_extension(output_format_find("chrome"), extension) ||
	       output_format_has_extension(output_format_find("perfetto"), extension);
}

int show_output_failed(const char *what, const char *path, int err)
{
	if (!strcmp(path, "-"))
		path = "stdout";
	log_err("cannot write the %s to '%s': %s", what, path, file_error(err));
	return CLI_FAILED;
}

static int open_sink(const char *path, struct sink **ret_sink)
{
	if (!strcmp(path, "-"))
		return sink__new_fd(STDOUT_FILENO, ret_sink);
	return sink__new_path(path, ret_sink);
}

/* ---- what the format needs ---- */

/* The process that was asked for, or the only one. Logs an error and returns TL_NONE if there is
 * none or a choice. */
static uint32_t find_process(const struct timeline *t, long pid)
{
	if (!pid && t->processes.nr == 1)
		return 0;
	for (uint32_t i = 0; i < t->processes.nr; i++)
		if (pid && t->processes.items[i].row_pid == pid)
			return i;
	if (pid)
		log_err("the recording has no process %ld; gpuprof table --group-by process shows "
			"which it has",
			pid);
	else
		log_err("the recording has %zu processes: name one with --pid (gpuprof table "
			"--group-by process shows them)",
			t->processes.nr);
	return TL_NONE;
}

/* As GP_TENSOR_CPU and on; below 0: no such device. */
static int find_device(const struct timeline *t, uint32_t process, const char *device)
{
	int cuda = -1;
	long number;
	char *end;

	for (size_t i = 0; i < t->categories.nr; i++) {
		const struct tl_category_change *c = &t->categories.items[i];

		if (c->process == process && c->device == GP_TENSOR_CUDA)
			cuda = GP_TENSOR_CUDA;
	}
	if (!device)
		return cuda < 0 ? GP_TENSOR_CPU : cuda;
	if (!strcmp(device, "cpu"))
		return GP_TENSOR_CPU;
	if (strncmp(device, "cuda:", 5) || device[5] < '0' || device[5] > '9')
		return -1;
	number = strtol(device + 5, &end, 10);
	return *end || number >= GP_TENSOR_CUDA_NR ? -1 : GP_TENSOR_CUDA + (int)number;
}

static bool has_memory(const struct loaded_recording *s)
{
	return s->timeline->memory.nr || recording__is_on(s->recording, "memory");
}

/* Whether the recording has what the format needs. Logs an error where it does not. */
static bool has_what_is_needed(const struct loaded_recording *s, const struct output_format *format,
			       const struct export_options *options)
{
	const char *lack = format->lacks ? format->lacks(s->timeline) : NULL;

	if (format->needs & OUTPUT_NEEDS_MEMORY && !has_memory(s)) {
		log_err("cannot write the %s: the recording has no memory events; record with "
			"--memory",
			format->contents);
		return false;
	}
	if (lack) {
		log_err("cannot write the %s: the recording %s", format->contents, lack);
		return false;
	}
	if (format->needs & OUTPUT_NEEDS_STACKS && !missing_data_has_stacks_of(s, options->metric))
		return false;
	if (format->needs & OUTPUT_NEEDS_ANNOTATIONS && !output_has_annotations(s->timeline))
		log_warn("annotations were not recorded: record all operators, and without "
			 "--no-annotations");
	return true;
}

/* Finds the process and the device that the options name. CLI_DONE, or CLI_USAGE with an error
 * logged. */
static int resolve(const struct loaded_recording *s, const struct output_format *format,
		   const struct export_options *options, struct output_request *request)
{
	int device;

	if (format->needs & OUTPUT_NEEDS_PROCESS || options->pid) {
		request->process = find_process(s->timeline, options->pid);
		if (request->process == TL_NONE)
			return CLI_USAGE;
	}
	if (format->takes & OUTPUT_TAKES_DEVICE) {
		device = find_device(s->timeline, request->process, options->device);
		if (device < 0) {
			log_err("'%s' is no device: give 'cpu' or 'cuda:N'", options->device);
			return CLI_USAGE;
		}
		request->device = (uint8_t)device;
	}
	return CLI_DONE;
}

/* ---- a directory of files ---- */

/* DIR/HOST_PID.TIME.pt.trace.json. 0 or -ENOMEM. */
static int worker_path(const struct loaded_recording *s, const char *dir,
		       const struct tl_process *p, struct buf *path)
{
	const char *host = recording__meta(s->recording, "host");
	uint64_t when_ns = s->timeline->start_ns + s->timeline->realtime_offset_ns;

	buf__printf(path, "%s/", dir);
	buf__file_name(path, host && *host ? host : "host");
	buf__printf(path, "_%lld.%llu.pt.trace.json", (long long)p->row_pid,
		    (unsigned long long)when_ns);
	return buf__error(path);
}

static int write_worker(const struct loaded_recording *s, const struct output_format *format,
			const char *dir, const struct file_folder *folder, uint32_t process)
{
	CLEANUP(buf__done) struct buf path = {0};
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err = worker_path(s, dir, &s->timeline->processes.items[process], &path);
	const struct output_request request = {.path = path.bytes, .process = process};

	if (err)
		return show_output_failed(format->contents, dir, err);
	err = sink__new_in(folder, path.bytes + strlen(dir) + 1, &sink);
	err = err ? err : format->write(sink, s->timeline, &request);
	err = err ? err : sink__finish(sink);
	return err ? show_output_failed(format->contents, path.bytes, err) : CLI_DONE;
}

static int write_directory(const struct loaded_recording *s, const struct output_format *format,
			   const char *path)
{
	CLEANUP(file_folder__done) struct file_folder folder;
	int status = CLI_DONE, err = file_folder__make(&folder, path);

	if (err)
		return show_output_failed("traces", path, err);
	for (uint32_t i = 0; i < s->timeline->processes.nr && status == CLI_DONE; i++)
		status = write_worker(s, format, path, &folder, i);
	return status;
}

/* ---- all formats ---- */

int loaded_recording__export(const struct loaded_recording *s, const struct output_format *format,
			     const char *path, const struct export_options *options)
{
	struct output_request request = {
		.path = path, .metric = options->metric, .process = TL_NONE};
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int status, err;

	if (!has_what_is_needed(s, format, options))
		return CLI_FAILED;
	status = resolve(s, format, options, &request);
	if (status != CLI_DONE)
		return status;
	if (format->is_directory)
		return write_directory(s, format, path);
	err = open_sink(path, &sink);
	err = err ? err : format->write(sink, s->timeline, &request);
	err = err ? err : sink__finish(sink);
	return err ? show_output_failed(format->contents, path, err) : CLI_DONE;
}

int loaded_recording__write_trace(const struct loaded_recording *s, const char *path)
{
	const struct output_format *perfetto = output_format_find("perfetto");
	const char *extension = output_known_extension(path);
	bool is_perfetto = extension && output_format_has_extension(perfetto, extension);

	return loaded_recording__export(s, is_perfetto ? perfetto : output_format_find("chrome"),
					path, &(struct export_options){0});
}

int loaded_recording__write_memory(const struct loaded_recording *s, const char *path)
{
	return loaded_recording__export(s, output_format_find("memory"), path,
					&(struct export_options){0});
}
