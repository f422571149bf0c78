/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Outputs of a recording. Each is tried even if another failed; the worst outcome is the exit
 * status. Losses come last, so that they are what stands above the prompt.
 */
#include "cli/show.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/absent.h"
#include "cli/cli.h"
#include "output/output.h"
#include "timeline/sample_table.h"
#include "timeline/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_SORT "self_cpu_time_total"
#define TEXT_ROWS    100

/* ---- opening ---- */

static int open_shown(struct shown *s, const char *path, bool steps)
{
	struct reason why = {0};
	const char *damage;

	*s = (struct shown){0};
	if (recording__open(path, &why, &s->recording)) {
		log_err("%s", why.text);
		return CLI_FAILED;
	}
	damage = recording__damage(s->recording);
	if (damage)
		log_warn("the recording '%s' is not whole: %s; what comes before is shown", path,
			 damage);
	else if (recording__meta(s->recording, "damage"))
		log_warn("not all that was merged into '%s' was whole: %s", path,
			 recording__meta(s->recording, "damage"));
	if (steps ? timeline__new_steps(s->recording, &why, &s->timeline)
		  : timeline__new(s->recording, &why, &s->timeline)) {
		log_err("cannot read '%s': %s", path, why.text);
		shown__done(s);
		return CLI_FAILED;
	}
	return CLI_DONE;
}

int shown__open(struct shown *s, const char *path)
{
	return open_shown(s, path, false);
}

int shown__open_steps(struct shown *s, const char *path)
{
	return open_shown(s, path, true);
}

void shown__done(struct shown *s)
{
	timeline__free(s->timeline);
	recording__free(s->recording);
	*s = (struct shown){0};
}

/* ---- losses ---- */

static void cleanup_sink(struct sink **s)
{
	sink__free(*s);
}

/* Steps, and Python's garbage collections, to stderr. */
static void tell_steps(const struct shown *s)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err = sink__new_fd(STDERR_FILENO, &sink);

	err = err ? err : output_steps_text(sink, s->timeline);
	err = err ? err : output_python_gc_text(sink, s->timeline);
	err = err ? err : sink__finish(sink);
	/* As with the losses. */
	(void)err;
}

int shown__losses(const struct shown *s, bool zeros)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	const struct timeline *t = s->timeline;
	int err = sink__new_fd(STDERR_FILENO, &sink);

	err = err ? err : output_losses_text(sink, t->losses.items, t->losses.nr, zeros);
	err = err ? err : sink__finish(sink);
	/* Nobody reads stderr: nothing to tell it to. */
	(void)err;
	return output_losses_have_events(t->losses.items, t->losses.nr) ? CLI_LOST : CLI_DONE;
}

/* ---- files ---- */

/* Whether the name ends so, a ".gz" behind it aside. */
static bool has_ending(const char *path, const char *ending)
{
	size_t nr = strlen(path), want = strlen(ending);

	if (nr > 3 && !strcmp(path + nr - 3, ".gz"))
		nr -= 3;
	return nr > want && !strncmp(path + nr - want, ending, want);
}

bool show_memory_path_fits(const char *path)
{
	return !strcmp(path, "-") || has_ending(path, ".html") || has_ending(path, ".json");
}

static int output_failed(const char *what, const char *path, int err)
{
	if (!strcmp(path, "-"))
		path = "stdout";
	(void)log_errno(err, "cannot write the %s to '%s'", what, path);
	return CLI_FAILED;
}

static int open_sink(const char *path, struct sink **ret_sink)
{
	if (!strcmp(path, "-"))
		return sink__new_fd(STDOUT_FILENO, ret_sink);
	return sink__new_path(path, ret_sink);
}

int shown__write_trace(const struct shown *s, const char *path, bool perfetto)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err = open_sink(path, &sink);

	if (!err && (perfetto || has_ending(path, ".pftrace")))
		err = output_perfetto(sink, s->timeline);
	else if (!err)
		err = output_chrome(sink, s->timeline, path);
	err = err ? err : sink__finish(sink);
	return err ? output_failed("trace", path, err) : CLI_DONE;
}

/* DIR/HOST_PID.TIME.pt.trace.json, the host without what would end the worker's name. To be freed.
 */
static char *worker_path(const struct shown *s, const char *dir, const struct tl_process *p)
{
	const char *host = recording__meta(s->recording, "host");
	uint64_t when_ns = s->timeline->start_ns + s->timeline->realtime_offset_ns;
	char *path, *name;
	size_t dir_nr = strlen(dir) + 1;

	if (asprintf(&path, "%s/%s_%lld.%llu.pt.trace.json", dir, host && *host ? host : "host",
		     (long long)p->row_pid, (unsigned long long)when_ns) < 0)
		return NULL;
	name = path + dir_nr;
	for (char *c = name; host && c < name + strlen(host); c++)
		if (*c == '/' || (unsigned char)*c <= ' ')
			*c = '_';
	return path;
}

static int write_worker(const struct shown *s, const char *dir, uint32_t process)
{
	CLEANUP(cleanup_free)
	char *path = worker_path(s, dir, &s->timeline->processes.items[process]);
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err = path ? sink__new_path(path, &sink) : -ENOMEM;

	err = err ? err : output_chrome_process(sink, s->timeline, process, path);
	err = err ? err : sink__finish(sink);
	return err ? output_failed("trace", path ? path : dir, err) : CLI_DONE;
}

int shown__write_tensorboard(const struct shown *s, const char *path)
{
	int status = CLI_DONE;

	if (mkdir(path, 0777) && errno != EEXIST)
		return output_failed("traces", path, -errno);
	for (uint32_t i = 0; i < s->timeline->processes.nr && status == CLI_DONE; i++)
		status = write_worker(s, path, i);
	return status;
}

static bool has_memory(const struct shown *s)
{
	return s->timeline->memory.nr || recording__is_on(s->recording, "memory");
}

int shown__write_memory(const struct shown *s, const char *path)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err;

	if (!has_memory(s)) {
		log_err("cannot write a memory timeline: the recording has no memory events; "
			"record with --memory");
		return CLI_FAILED;
	}
	err = open_sink(path, &sink);
	if (!err && has_ending(path, ".html"))
		err = output_memory_html(sink, s->timeline);
	else if (!err)
		err = output_memory_json(sink, s->timeline);
	err = err ? err : sink__finish(sink);
	return err ? output_failed("memory timeline", path, err) : CLI_DONE;
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
		log_err("the recording has no process %ld", pid);
	else
		log_err("the recording has %zu processes: name one with --pid", t->processes.nr);
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

int shown__write_memory_timeline(const struct shown *s, const char *path,
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
	if (has_ending(path, ".html")) {
		log_err("cannot write '%s': a memory timeline as torch.profiler's is JSON; "
			"--format memory writes a page",
			path);
		return CLI_USAGE;
	}
	err = open_sink(path, &sink);
	if (!err && has_ending(path, ".raw.json"))
		err = output_memory_timeline_raw(sink, t, process, (uint8_t)number);
	else if (!err)
		err = output_memory_timeline(sink, t, process, (uint8_t)number);
	err = err ? err : sink__finish(sink);
	return err ? output_failed("memory timeline", path, err) : CLI_DONE;
}

int shown__write_snapshot(const struct shown *s, const char *path, long pid)
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
	return err ? output_failed("memory snapshot", path, err) : CLI_DONE;
}

int shown__write_actions(const struct shown *s, const char *path)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err = open_sink(path, &sink);

	if (!output_has_annotations(s->timeline))
		log_warn("annotations were not recorded: record all operators, and without "
			 "--no-annotations");
	err = err ? err : output_actions(sink, s->timeline);
	err = err ? err : sink__finish(sink);
	return err ? output_failed("report", path, err) : CLI_DONE;
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

int shown__write_stacks(const struct shown *s, const char *path, const char *format,
			const char *metric)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err;

	if (!absent_has_stacks_of(s, metric))
		return CLI_FAILED;
	err = open_sink(path, &sink);
	err = err ? err : find_stack_format(format)->write(sink, s->timeline, metric);
	err = err ? err : sink__finish(sink);
	return err ? output_failed("stacks", path, err) : CLI_DONE;
}

/* ---- the table ---- */

/* As torch.profiler's table; what programs read has all. */
static long rows_of(const struct show_options *o)
{
	if (o->limit != SHOW_LIMIT_UNSAID)
		return o->limit;
	return o->json || o->csv ? -1 : TEXT_ROWS;
}

static int write_table(const struct shown *s, const struct table *table,
		       const struct show_options *o)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	const struct output_table_options text = {.limit = rows_of(o),
						  .time_unit = o->time_unit,
						  .header = o->header,
						  .top_level = o->top_level};
	int err = sink__new_fd(STDOUT_FILENO, &sink);

	if (!err && !o->json && !o->csv)
		err = output_triggers_text(sink, s->timeline);
	if (!err && o->json)
		err = output_table_json(sink, s->timeline, table, rows_of(o));
	else if (!err && o->csv)
		err = output_table_csv(sink, table, rows_of(o));
	else if (!err)
		err = output_table_text(sink, table, &text);
	if (!err && !o->json && !o->csv)
		err = output_out_of_memory_text(sink, s->timeline);
	err = err ? err : sink__finish(sink);
	/* Someone who closed the pipe has seen enough. */
	return err && err != -EPIPE ? output_failed("table", "-", err) : CLI_DONE;
}

static int write_sample_table(const struct shown *s, const struct sample_table *table,
			      const struct table *gpu, const struct show_options *o)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	const struct output_table_options text = {
		.limit = rows_of(o), .time_unit = o->time_unit, .header = o->header};
	int err = sink__new_fd(STDOUT_FILENO, &sink);

	if (!err && o->json)
		err = output_samples_json(sink, s->timeline, table, gpu, rows_of(o));
	else if (!err && o->csv)
		err = output_samples_csv(sink, table, rows_of(o));
	else if (!err)
		err = output_samples_text(sink, table, &text);
	err = err ? err : sink__finish(sink);
	return err && err != -EPIPE ? output_failed("table", "-", err) : CLI_DONE;
}

/* Of torch.profiler's keys those that samples have something of. */
static int show_sample_table(const struct shown *s, const struct show_options *o)
{
	const struct sample_table_options options = {
		.group = o->by_stack ? SAMPLE_BY_STACK : o->samples_by,
		.frames = o->by_stack,
		.only = o->only,
		.by_total = o->sort && strstr(o->sort, "time") && !strstr(o->sort, "self"),
	};
	const struct table_options of_gpu = {.sort = DEFAULT_SORT};
	CLEANUP(cleanup_sample_table) struct sample_table *table = NULL;
	CLEANUP(cleanup_table) struct table *gpu = NULL;
	struct reason why = {0};

	if (o->by_overload || o->by_shape || o->parts == TABLE_BY_RANK || o->by_module ||
	    o->between || o->compensate) {
		log_err("the recording is of samples: %s",
			o->compensate ? "no callbacks are in them, leave --compensate out"
				      : "group them by op, line, function, thread, process, "
					"activity or stack:N");
		return CLI_USAGE;
	}
	if (sample_table__new(s->timeline, &options, &table) ||
	    (o->json && s->timeline->gpu.any && table__new(s->timeline, &of_gpu, &why, &gpu))) {
		log_err("out of memory");
		return CLI_FAILED;
	}
	if (!table->rows.nr)
		log_warn("the recording has no samples in it");
	if (s->timeline->gpu_partial)
		log_warn("GPUs were looked at in windows of time, and from recordings put "
			 "together, as a flight "
			 "recorder's are, nothing is estimated: of GPUs this is what was seen, not "
			 "all");
	if (s->timeline->gpu_unseen)
		log_warn("CUDA was used, but --overhead allowed for no look at what GPUs did: "
			 "record "
			 "for longer, or with more of it");
	return write_sample_table(s, table, gpu, o);
}

static int show_table(const struct shown *s, const struct show_options *o)
{
	const struct table_options options = {.by_overload = o->by_overload,
					      .by_shape = o->by_shape,
					      .parts = o->parts,
					      .only = o->only,
					      .by_stack = o->by_stack,
					      .by_module = o->by_module,
					      .tree = o->module_tree,
					      .between = o->between,
					      .sort = o->sort ? o->sort : DEFAULT_SORT,
					      .top_level = o->top_level,
					      .compensate = o->compensate};
	CLEANUP(cleanup_table) struct table *table = NULL;
	struct reason why = {0};
	int err;

	if (o->samples_by != SAMPLE_BY_OP && !o->parts && !s->timeline->sampled) {
		log_err("only samples can be grouped by that (record with --mode sample); group "
			"operators by stack:1 for lines of Python");
		return CLI_USAGE;
	}
	err = table__new(s->timeline, &options, &why, &table);
	if (err) {
		log_err("%s", why.text);
		return err == -EINVAL ? CLI_USAGE : CLI_FAILED;
	}
	if (!absent_warn_of_groups(s, o))
		absent_warn_of_operators(s, table->rows.nr);
	return write_table(s, table, o);
}

/* GPU work and calls of CUDA that CUPTI told while threads were sampled, in a table of their own,
 * for which CSV has no place. */
static int show_sampled(const struct shown *s, const struct show_options *o)
{
	int status = show_sample_table(s, o);

	if (status != CLI_DONE || !s->timeline->gpu.any || o->json || o->csv)
		return status;
	return show_table(s, o);
}

/* What the GPU's columns are without, where there are any. */
static void tell_unseen(const struct timeline *t)
{
	if (t->gpu.launches_unseen_nr)
		log_warn("%llu launches of kernels have no GPU times: they were seen by uprobes "
			 "alone",
			 (unsigned long long)t->gpu.launches_unseen_nr);
}

int show_recording(const char *path, const struct show_options *options)
{
	CLEANUP(shown__done) struct shown s;
	int status = open_shown(&s, path, options->steps), next;

	if (status != CLI_DONE)
		return status;
	if (!absent_has_part(&s, &options->only))
		return CLI_FAILED;
	status = s.timeline->sampled ? show_sampled(&s, options) : show_table(&s, options);
	if (options->trace_path) {
		next = shown__write_trace(&s, options->trace_path, false);
		status = status ? status : next;
	}
	if (options->memory_path) {
		next = shown__write_memory(&s, options->memory_path);
		status = status ? status : next;
	}
	if (options->tell_steps && !s.timeline->sampled)
		tell_steps(&s);
	tell_unseen(s.timeline);
	next = shown__losses(&s, options->losses);
	return status ? status : next;
}

static int write_ranks(const struct shown *s, const struct show_options *o)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	struct ranks ranks;
	int err = ranks__find(s->timeline, &ranks);

	err = err ? err : sink__new_fd(STDOUT_FILENO, &sink);
	if (!err && o->json)
		err = output_ranks_json(sink, s->timeline, &ranks);
	else if (!err)
		err = output_ranks_text(sink, s->timeline, &ranks, rows_of(o));
	err = err ? err : sink__finish(sink);
	ranks__done(&ranks);
	return err && err != -EPIPE ? output_failed("ranks", "-", err) : CLI_DONE;
}

int show_ranks(const char *path, const struct show_options *options)
{
	CLEANUP(shown__done) struct shown s;
	int status = open_shown(&s, path, options->steps), next;

	if (status != CLI_DONE)
		return status;
	if (!ranks_there(s.timeline)) {
		log_err("the recording '%s' has no two ranks of one job: record them together "
			"(--children, or several --pid), or put their recordings together with "
			"gpuprof merge. A rank is a process that was started with RANK in its "
			"environment, as torchrun does",
			path);
		return CLI_FAILED;
	}
	status = write_ranks(&s, options);
	next = shown__losses(&s, options->losses);
	return status ? status : next;
}
