/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Outputs of a recording. Each is tried even if another failed; the worst outcome is the exit
 * status. Losses come last, so that they are what stands above the prompt.
 */
#include "cli/view/loaded_recording.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/view/missing_data.h"
#include "cli/view/terminal_fit.h"
#include "output/format/output.h"
#include "timeline/analysis/sample_table.h"
#include "timeline/analysis/table.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SORT "self_cpu_time_total"
#define TEXT_ROWS    100

/* ---- opening ---- */

static int open_recording(struct loaded_recording *s, const char *path, bool steps)
{
	struct reason why = {0};
	const char *damage;

	*s = (struct loaded_recording){0};
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
		loaded_recording__done(s);
		return CLI_FAILED;
	}
	return CLI_DONE;
}

int loaded_recording__open(struct loaded_recording *s, const char *path)
{
	return open_recording(s, path, false);
}

int loaded_recording__open_steps(struct loaded_recording *s, const char *path)
{
	return open_recording(s, path, true);
}

void loaded_recording__done(struct loaded_recording *s)
{
	timeline__free(s->timeline);
	recording__free(s->recording);
	*s = (struct loaded_recording){0};
}

/* ---- losses ---- */

/* Steps, and Python's garbage collections, to stderr. */
static void report_steps(const struct loaded_recording *s)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	int err = sink__new_fd(STDERR_FILENO, &sink);

	err = err ? err : output_steps_text(sink, s->timeline);
	err = err ? err : output_python_gc_text(sink, s->timeline);
	err = err ? err : sink__finish(sink);
	/* As with the losses. */
	(void)err;
}

int loaded_recording__losses(const struct loaded_recording *s, bool zeros)
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

/* ---- the table ---- */

/* As torch.profiler's table; what programs read has all. */
static long rows_of(const struct show_options *o)
{
	if (o->limit != SHOW_LIMIT_UNSAID)
		return o->limit;
	return o->json || o->csv ? -1 : TEXT_ROWS;
}

static int write_table(const struct loaded_recording *s, const struct table *table,
		       const struct show_options *o)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	struct output_table_options text = {.limit = rows_of(o),
					    .time_unit = o->time_unit,
					    .header = o->header,
					    .top_level = o->top_level};
	int err = sink__new_fd(STDOUT_FILENO, &sink);

	terminal_fit(o, &text);
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
	return err && err != -EPIPE ? show_output_failed("table", "-", err) : CLI_DONE;
}

static int write_sample_table(const struct loaded_recording *s, const struct sample_table *table,
			      const struct table *gpu, const struct show_options *o)
{
	CLEANUP(cleanup_sink) struct sink *sink = NULL;
	struct output_table_options text = {
		.limit = rows_of(o), .time_unit = o->time_unit, .header = o->header};
	int err = sink__new_fd(STDOUT_FILENO, &sink);

	terminal_fit(o, &text);
	if (!err && o->json)
		err = output_samples_json(sink, s->timeline, table, gpu, rows_of(o));
	else if (!err && o->csv)
		err = output_samples_csv(sink, table, rows_of(o));
	else if (!err)
		err = output_samples_text(sink, table, &text);
	err = err ? err : sink__finish(sink);
	return err && err != -EPIPE ? show_output_failed("table", "-", err) : CLI_DONE;
}

/* Logs what a table of samples cannot do of what was asked for. */
static bool suits_samples(const struct show_options *o)
{
	if (o->by_overload || o->by_shape || o->parts == TABLE_BY_RANK || o->by_module ||
	    o->between)
		log_err("the recording is of samples: group them by op, line, function, thread, "
			"process, activity or stack:N");
	else if (o->compensate)
		log_err("the recording is of samples: no callbacks are in them, leave "
			"--compensate out");
	else if (o->top_level || o->steps)
		log_err("the recording is of samples: --top-level and --steps are for operators, "
			"leave them out");
	else
		return true;
	return false;
}

/* Of torch.profiler's keys those that samples have something of. */
static int show_sample_table(const struct loaded_recording *s, const struct show_options *o)
{
	const struct sample_table_options options = {
		.group = o->by_stack ? SAMPLE_BY_STACK : o->samples_by,
		.frames = o->by_stack,
		.only = o->only,
		.by_total = o->sort && strstr(o->sort, "time") && !strstr(o->sort, "self"),
	};
	const struct table_options of_gpu = {.sort = o->sort ? o->sort : DEFAULT_SORT,
					     .only = o->only};
	CLEANUP(cleanup_sample_table) struct sample_table *table = NULL;
	CLEANUP(cleanup_table) struct table *gpu = NULL;
	struct reason why = {0};

	if (!suits_samples(o))
		return CLI_USAGE;
	if (o->sort && !strstr(o->sort, "cpu_time") && strcmp(o->sort, "count") != 0 &&
	    (!s->timeline->gpu.any || o->csv))
		log_warn("samples have no %s: they are sorted by " DEFAULT_SORT, o->sort);
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

static int show_table(const struct loaded_recording *s, const struct show_options *o)
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
	if (!missing_data_warn_of_groups(s, o)) {
		missing_data_warn_of_operators(s, table->rows.nr);
		if (o->sort && !o->between && !s->timeline->sampled)
			missing_data_warn_of_sort(s, table, o->sort);
	}
	return write_table(s, table, o);
}

/* GPU work and calls of CUDA that CUPTI told while threads were sampled, in a table of their own,
 * for which CSV has no place. */
static int show_sampled(const struct loaded_recording *s, const struct show_options *o)
{
	int status = show_sample_table(s, o);

	if (status != CLI_DONE || !s->timeline->gpu.any || o->json || o->csv)
		return status;
	return show_table(s, o);
}

/* What the GPU's columns are without, where there are any. */
static void report_unseen(const struct timeline *t)
{
	if (t->gpu.launches_unseen_nr)
		log_warn("%llu launches of kernels have no GPU times: they were seen by uprobes "
			 "alone",
			 (unsigned long long)t->gpu.launches_unseen_nr);
}

int show_recording(const char *path, const struct show_options *options)
{
	CLEANUP(loaded_recording__done) struct loaded_recording s;
	int status = open_recording(&s, path, options->steps), next;

	if (status != CLI_DONE)
		return status;
	if (!missing_data_has_part(&s, &options->only))
		return CLI_FAILED;
	status = s.timeline->sampled ? show_sampled(&s, options) : show_table(&s, options);
	if (options->trace_path) {
		next = loaded_recording__write_trace(&s, options->trace_path);
		status = status ? status : next;
	}
	if (options->memory_path) {
		next = loaded_recording__write_memory(&s, options->memory_path);
		status = status ? status : next;
	}
	if (options->report_steps && !s.timeline->sampled)
		report_steps(&s);
	missing_data_warn_of_gpus(&s, &options->only);
	report_unseen(s.timeline);
	next = loaded_recording__losses(&s, options->losses);
	return status ? status : next;
}

static int write_ranks(const struct loaded_recording *s, const struct show_options *o)
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
	return err && err != -EPIPE ? show_output_failed("ranks", "-", err) : CLI_DONE;
}

int show_ranks(const char *path, const struct show_options *options)
{
	CLEANUP(loaded_recording__done) struct loaded_recording s;
	int status = open_recording(&s, path, options->steps), next;

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
	next = loaded_recording__losses(&s, options->losses);
	return status ? status : next;
}
