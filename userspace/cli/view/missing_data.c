/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds out why a recording lacks something, and which option would have recorded it.
 */
#include "cli/view/missing_data.h"

#include "base/log.h"
#include "output/flame/stack_samples.h"
#include "output/format/output.h"

#include <stdlib.h>
#include <string.h>

#define LACKS_REPORTED 8

/* Annotations are recorded whatever operators were chosen. */
static bool has_operators(const struct timeline *t)
{
	for (size_t i = 0; i < t->ops.nr; i++)
		if (t->ops.items[i].scope != GP_SCOPE_USER)
			return true;
	return false;
}

static bool has_lost_events(const struct timeline *t)
{
	return output_losses_have_events(t->losses.items, t->losses.nr);
}

void missing_data_warn_of_operators(const struct loaded_recording *s, size_t rows_nr)
{
	const char *ops = recording__meta(s->recording, "ops");
	bool none = ops && !strcmp(ops, "none"), chosen = ops && !none && strcmp(ops, "all");
	const char *budget = recording__meta(s->recording, "overhead_pct");
	bool unpaid = budget && !none && !s->timeline->windows.nr && !s->timeline->sampled &&
		      !has_operators(s->timeline);

	/* Where no window was opened the rows are of what is seen all the time, such as memory. */
	if (chosen ? has_operators(s->timeline) : rows_nr > 0 && !unpaid)
		return;
	if (none)
		log_warn("the recording has no operators in it: none were asked for (--ops none)");
	else if (chosen && !has_lost_events(s->timeline))
		log_warn("the recording has no operators in it: none matched --ops '%s'", ops);
	else if (recording__damage(s->recording))
		log_warn("the recording has no operators in it: it was cut before any were "
			 "written");
	else if (has_lost_events(s->timeline))
		log_warn("the recording has no operators in it: those that were called may be "
			 "among the events that are missing; see the losses");
	else if (unpaid)
		log_warn("the recording has no operators in it: --overhead %s did not pay for a "
			 "single window; record for longer, or with a larger --overhead",
			 budget);
	else
		log_warn("the recording has no operators in it: the process called none while it "
			 "was recorded; those that it started are not recorded with it");
}

static bool has_overloads(const struct timeline *t)
{
	for (size_t i = 0; i < t->ops.nr; i++)
		if (*t->ops.items[i].overload)
			return true;
	return false;
}

bool missing_data_warn_of_groups(const struct loaded_recording *s, const struct show_options *o)
{
	const struct timeline *t = s->timeline;
	const struct {
		bool absent;
		const char *what, *how;
	} groups[] = {
		{o->by_shape && !t->inputs.nr, "shapes", "--shapes"},
		{o->by_module && !t->modules.nr, "calls of modules", "--modules"},
		{(o->between || (o->by_stack && !t->sampled)) &&
			 !recording__meta(s->recording, "stacks"),
		 "stacks", "--stack python"},
		{o->by_overload && !has_overloads(t), "overload names", "--no-inject"},
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (!groups[i].absent)
			continue;
		log_warn("the recording has no %s in it; record with %s", groups[i].what,
			 groups[i].how);
		any = true;
	}
	return any;
}

void missing_data_warn_of_sort(const struct loaded_recording *s, const struct table *table,
			       const char *key)
{
	const char *how = "";

	if (!table->rows.nr || table_has_any_of(table, key))
		return;
	if (strstr(key, "flops"))
		how = recording__is_on(s->recording, "flops") ? "" : "; record with --flops";
	else if (strstr(key, "memory"))
		how = recording__is_on(s->recording, "memory") ? "" : "; record with --memory";
	else if (strstr(key, "time") && !strstr(key, "cpu") && !s->timeline->gpu.work.nr)
		how = "; the process used no GPU while it was recorded, or its times are missing";
	log_warn("the rows are not sorted: none has any %s%s", key, how);
}

/* Whether the part has processes of this pid, of which none has GPU times: a recording of several
 * machines may have two, and one of several times what came later. */
static bool lacks_gpu(const struct timeline *t, const struct tl_part *part, long pid)
{
	bool any = false;

	for (uint32_t i = 0; i < t->processes.nr; i++) {
		if (t->processes.items[i].pid != pid || !tl_part_has(part, &t->processes.items[i]))
			continue;
		any = true;
		for (size_t k = 0; k < t->gpu.devices.nr; k++)
			if (t->gpu.devices.items[k].process == i)
				return false;
	}
	return any;
}

void missing_data_warn_of_gpus(const struct loaded_recording *s, const struct tl_part *part)
{
	const size_t prefix = strlen(RECORDING_GPU_LACK);
	size_t more = 0, reported = 0;

	for (size_t i = 0; i < recording__metas(s->recording); i++) {
		const char *key, *why;

		recording__meta_at(s->recording, i, &key, &why);
		if (strncmp(key, RECORDING_GPU_LACK, prefix) != 0 ||
		    !lacks_gpu(s->timeline, part, strtol(key + prefix, NULL, 10)))
			continue;
		if (reported++ < LACKS_REPORTED)
			log_warn("no GPU times of %s: %s", key + prefix, why);
		else
			more++;
	}
	if (more)
		log_warn("no GPU times of %zu more processes", more);
}

bool missing_data_has_part(const struct loaded_recording *s, const struct tl_part *part)
{
	const struct timeline *t = s->timeline;

	for (size_t i = 0; i < t->processes.nr; i++)
		if (tl_part_has(part, &t->processes.items[i]))
			return true;
	if (part->one_rank)
		log_err("the recording has no rank %d%s; gpuprof table --group-by rank shows which "
			"it has",
			part->rank, part->pid ? " of that PID" : "");
	else if (part->pid)
		log_err("the recording has no process %lld; gpuprof table --group-by process "
			"shows which it has",
			(long long)part->pid);
	return !part->one_rank && !part->pid;
}

static const char *how_to_have(enum stack_metric metric)
{
	switch (metric) {
	case STACK_CUDA:
		return "the process used no GPU while it was recorded, or its times are missing";
	case STACK_SAMPLES:
	case STACK_OFF:
		return "record with --mode sample";
	case STACK_CALLS:
		return "samples have no calls, record without --mode sample";
	default:
		return "record with --memory";
	}
}

bool missing_data_has_stacks_of(const struct loaded_recording *s, const char *metric)
{
	enum stack_metric wanted = (enum stack_metric)stack_metric_of(metric);

	if (!recording__meta(s->recording, "stacks")) {
		log_err("cannot write stacks: the recording has none; record with --stack python");
		return false;
	}
	if (metric && !stack_metric_captured(s->timeline, wanted)) {
		log_err("cannot write stacks by %s: the recording has nothing of it; %s", metric,
			how_to_have(wanted));
		return false;
	}
	return true;
}
