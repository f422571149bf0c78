/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The files that are made of a recording.
 */
#include "cli/view/loaded_recording.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/view/missing_data.h"
#include "output/format/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool show_path_ends(const char *path, const char *ending)
{
	size_t nr = strlen(path), want = strlen(ending);

	if (nr > 3 && !strcmp(path + nr - 3, ".gz"))
		nr -= 3;
	return nr > want && !strncmp(path + nr - want, ending, want);
}

bool show_memory_path_fits(const char *path)
{
	return !strcmp(path, "-") || show_path_ends(path, ".html") || show_path_ends(path, ".json");
}

bool show_trace_path_fits(const char *path)
{
	return !show_path_ends(path, ".html") && !show_path_ends(path, ".pb") &&
	       !show_path_ends(path, ".pickle");
}

static int open_sink(const char *path, struct sink **ret_sink)
{
	if (!strcmp(path, "-"))
		return sink__new_fd(STDOUT_FILENO, ret_sink);
	return sink__new_path(path, ret_sink);
}

/* The process that is wanted, or the only one that is there. TL_NONE, and said why. */
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

int loaded_recording__write_chrome(const struct loaded_recording *s, const char *path, long pid)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	uint32_t process = pid ? find_process(s->timeline, pid) : TL_NONE;
	int err;

	if (pid && process == TL_NONE)
		return CLI_USAGE;
	err = open_sink(path, &sink);
	err = err ? err : output_chrome_process(sink, s->timeline, process, path);
	err = err ? err : sink__finish(sink);
	return err ? show_output_failed("trace", path, err) : CLI_DONE;
}

int loaded_recording__write_perfetto(const struct loaded_recording *s, const char *path)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err = open_sink(path, &sink);

	err = err ? err : output_perfetto(sink, s->timeline);
	err = err ? err : sink__finish(sink);
	return err ? show_output_failed("trace", path, err) : CLI_DONE;
}

int loaded_recording__write_trace(const struct loaded_recording *s, const char *path)
{
	return show_path_ends(path, ".pftrace") ? loaded_recording__write_perfetto(s, path)
						: loaded_recording__write_chrome(s, path, 0);
}

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

static int write_worker(const struct loaded_recording *s, const char *dir,
			const struct file_folder *folder, uint32_t process)
{
	CLEANUP(buf__done) struct buf path = {0};
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err = worker_path(s, dir, &s->timeline->processes.items[process], &path);

	if (err)
		return show_output_failed("trace", dir, err);
	err = sink__new_in(folder, path.bytes + strlen(dir) + 1, &sink);
	err = err ? err : output_chrome_worker(sink, s->timeline, process, path.bytes);
	err = err ? err : sink__finish(sink);
	return err ? show_output_failed("trace", path.bytes, err) : CLI_DONE;
}

int loaded_recording__write_tensorboard(const struct loaded_recording *s, const char *path)
{
	CLEANUP(file_folder__done) struct file_folder folder;
	int status = CLI_DONE, err = file_folder__make(&folder, path);

	if (err)
		return show_output_failed("traces", path, err);
	for (uint32_t i = 0; i < s->timeline->processes.nr && status == CLI_DONE; i++)
		status = write_worker(s, path, &folder, i);
	return status;
}

static bool has_memory(const struct loaded_recording *s)
{
	return s->timeline->memory.nr || recording__is_on(s->recording, "memory");
}

int loaded_recording__write_memory(const struct loaded_recording *s, const char *path)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err;

	if (!has_memory(s)) {
		log_err("cannot write a memory timeline: the recording has no memory events; "
			"record with --memory");
		return CLI_FAILED;
	}
	err = open_sink(path, &sink);
	if (!err && show_path_ends(path, ".html"))
		err = output_memory_html(sink, s->timeline);
	else if (!err)
		err = output_memory_json(sink, s->timeline);
	err = err ? err : sink__finish(sink);
	return err ? show_output_failed("memory timeline", path, err) : CLI_DONE;
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

int loaded_recording__write_memory_timeline(const struct loaded_recording *s, const char *path,
					    const struct show_device *device)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	const struct timeline *t = s->timeline;
	uint32_t process;
	int number, err;

	if (!t->has_categories) {
		log_err("cannot write a memory timeline by category: the recording does not say "
			"what operators were called with; record with --memory and --shapes");
		return CLI_FAILED;
	}
	process = find_process(t, device->pid);
	if (process == TL_NONE)
		return CLI_USAGE;
	number = find_device(t, process, device->device);
	if (number < 0) {
		log_err("'%s' is no device: give 'cpu' or 'cuda:N'", device->device);
		return CLI_USAGE;
	}
	err = open_sink(path, &sink);
	if (!err && show_path_ends(path, ".raw.json"))
		err = output_memory_timeline_raw(sink, t, process, (uint8_t)number);
	else if (!err)
		err = output_memory_timeline(sink, t, process, (uint8_t)number);
	err = err ? err : sink__finish(sink);
	return err ? show_output_failed("memory timeline", path, err) : CLI_DONE;
}

int loaded_recording__write_snapshot(const struct loaded_recording *s, const char *path, long pid)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	uint32_t process;
	int err;

	if (!has_memory(s)) {
		log_err("cannot write a memory snapshot: the recording has no memory events; "
			"record with --memory");
		return CLI_FAILED;
	}
	process = find_process(s->timeline, pid);
	if (process == TL_NONE)
		return CLI_USAGE;
	err = open_sink(path, &sink);
	err = err ? err : output_snapshot(sink, s->timeline, process);
	err = err ? err : sink__finish(sink);
	return err ? show_output_failed("memory snapshot", path, err) : CLI_DONE;
}

int loaded_recording__write_actions(const struct loaded_recording *s, const char *path)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err = open_sink(path, &sink);

	if (!output_has_annotations(s->timeline))
		log_warn("annotations were not recorded: record all operators, and without "
			 "--no-annotations");
	err = err ? err : output_actions(sink, s->timeline);
	err = err ? err : sink__finish(sink);
	return err ? show_output_failed("report", path, err) : CLI_DONE;
}

/* ---- stacks ---- */

static int write_speedscope(struct sink *sink, const struct timeline *t, const char *metric)
{
	return output_speedscope(sink, t, metric,
				 t->processes.nr ? t->processes.items[0].cmdline : "gpuprof");
}

static const struct stack_format {
	const char *name;
	int (*write)(struct sink *sink, const struct timeline *t, const char *metric);
} stack_formats[] = {
	{"stacks", output_stacks},
	{"speedscope", write_speedscope},
	{"pprof", output_pprof},
	{"flamegraph", output_flamegraph},
};

static const struct stack_format *find_stack_format(const char *name)
{
	for (size_t i = 0; i < sizeof(stack_formats) / sizeof(*stack_formats); i++)
		if (!strcmp(stack_formats[i].name, name))
			return &stack_formats[i];
	return NULL;
}

int loaded_recording__write_stacks(const struct loaded_recording *s, const char *path,
				   const char *format, const char *metric)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err;

	if (!missing_data_has_stacks_of(s, metric))
		return CLI_FAILED;
	err = open_sink(path, &sink);
	err = err ? err : find_stack_format(format)->write(sink, s->timeline, metric);
	err = err ? err : sink__finish(sink);
	return err ? show_output_failed("stacks", path, err) : CLI_DONE;
}
