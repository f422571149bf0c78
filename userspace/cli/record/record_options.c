/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Turns the command line of `attach` and `run` into the options of a capture, and refuses what
 * does not go together.
 */
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/core/record_mode.h"
#include "cli/record/record.h"
#include "cli/record/record_args.h"

#include <string.h>

#define DEFAULT_RING_BYTES (32u << 20)

/* The kernel wants a power of two that is a multiple of the page size. */
static uint32_t ring_size(long wanted)
{
	uint32_t bytes = 65536;

	if (!wanted)
		return DEFAULT_RING_BYTES;
	while (bytes < wanted && bytes < (1u << 30))
		bytes *= 2;
	return bytes;
}

uint32_t record_stacks_wanted(const char *stack)
{
	if (!stack)
		return 0;
	if (!strcmp(stack, "both"))
		return GP_STACK_WANT_PYTHON | GP_STACK_WANT_NATIVE;
	return !strcmp(stack, "native") ? GP_STACK_WANT_NATIVE : GP_STACK_WANT_PYTHON;
}

static int schedule_from(const struct record_args *args, struct schedule *ret_schedule)
{
	struct reason why = {0};

	if (args->steps && args->schedule) {
		log_err("--steps and --schedule exclude each other: give active=N,repeat=1 in "
			"the schedule");
		return CLI_USAGE;
	}
	if ((args->steps || args->schedule) && args->overhead_pct > 0) {
		log_err("--steps and --schedule already choose what is recorded: leave out "
			"--overhead");
		return CLI_USAGE;
	}
	if (args->schedule && schedule_parse(args->schedule, &why, ret_schedule)) {
		log_err("%s", why.text);
		return CLI_USAGE;
	}
	if (args->steps)
		*ret_schedule = (struct schedule){.active = (uint32_t)args->steps, .repeat = 1};
	return CLI_DONE;
}

/* Sets the mode, and refuses options that samples have nothing for. */
static int mode_from(const struct record_args *args, struct capture_options *o)
{
	const char *option = args->memory || args->memory_path		  ? "--memory"
			     : args->shapes				  ? "--shapes"
			     : args->flops				  ? "--flops"
			     : args->modules				  ? "--modules"
			     : args->python_functions			  ? "--python-functions"
			     : args->python_gc				  ? "--python-gc"
			     : args->steps || args->schedule		  ? "--steps and --schedule"
			     : args->ops				  ? "--ops"
			     : args->stack && strcmp(args->stack, "both") ? "--stack"
									  : NULL;

	return record_mode_choose(&(struct record_mode){.name = args->mode,
							.hz = args->hz,
							.overhead_pct = args->overhead_pct,
							.other = option},
				  o);
}

/* Refuses triggers that samples cannot fire: they have no steps and no memory, and include threads
 * that wait. */
static int check_triggers(const struct capture_triggers *triggers, bool samples)
{
	if (!samples || (triggers->slow_step <= 0 && !triggers->oom && !triggers->hang_ns))
		return CLI_DONE;
	log_err("--trigger slow-step, oom and hang need every operator: with --mode sample only "
		"signals and 'gpuprof ctl dump' make the flight recorder write");
	return CLI_USAGE;
}

/* Refuses --no-annotations where steps are needed: in training only annotations mark them.
 * Inference has none, so leaving them out would save nothing. */
static int check_annotations(const struct record_args *args, const struct record_options *o)
{
	bool samples = o->capture.mode == CAPTURE_SAMPLE;
	const char *option = args->steps || args->schedule	  ? "--steps and --schedule need"
			     : args->overhead_pct > 0 && !samples ? "--overhead needs"
			     : o->capture.triggers.slow_step > 0  ? "--trigger slow-step needs"
								  : NULL;

	if (!args->no_annotations || !option)
		return CLI_DONE;
	log_err("%s steps, and annotations mark those: leave out --no-annotations", option);
	return CLI_USAGE;
}

int record_options_from(const struct record_args *args, const char *path, const char *cache_dir,
			struct record_options *ret_options)
{
	bool all = !args->ops || !strcmp(args->ops, "all");
	bool none = args->ops && !strcmp(args->ops, "none");
	struct record_options options = {
		.capture =
			{
				.output_path = path,
				.ops_glob = all || none ? NULL : args->ops,
				.cache_dir = cache_dir,
				.ring_bytes = ring_size(args->ring_bytes),
				.ops = !none,
				.ops_alone = args->no_annotations,
				.python_gc = args->python_gc,
				.memory = args->memory || args->memory_path,
				.shapes = args->shapes || args->flops,
				.flops = args->flops,
				.modules = args->modules,
				.calls = args->python_functions,
				.stacks = record_stacks_wanted(
					args->python_functions ? "python" : args->stack),
				.gpu = !args->no_gpu,
				.any_cupti = args->any_cupti,
				.children = args->children,
			},
		.duration_s = args->duration_s,
		.quiet = args->quiet,
		.trace_path = args->trace_path,
		.memory_path = args->memory_path,
		.sort = args->sort,
		.limit = args->limit,
		.json = args->json,
		.wide = args->wide,
		.socket_path = args->socket,
		.metadata = args->metadata,
	};

	int status;

	if (args->quiet && log_get_level() == LOG_WARN)
		log_set_level(LOG_ERR);
	if (!path) {
		log_err("out of memory");
		return CLI_FAILED;
	}
	if (!record_check_outputs(&options))
		return CLI_FAILED;
	status = mode_from(args, &options.capture);
	if (!status)
		status = record_check_python_gc(&options.capture, "--ops none");
	if (status)
		return status;
	status = schedule_from(args, &options.capture.schedule);
	if (!status)
		status = rotate_options_from(args, &options.rotate);
	if (!status)
		status = flight_options_from(args, &options.flight, &options.capture.triggers);
	if (!status)
		status = check_annotations(args, &options);
	if (!status)
		status = check_triggers(&options.capture.triggers,
					options.capture.mode == CAPTURE_SAMPLE);
	options.capture.memory |= options.capture.triggers.oom;
	options.many = rotate_wanted(&options.rotate) || options.capture.triggers.on ||
		       (options.capture.schedule.active && options.capture.schedule.repeat != 1);
	*ret_options = options;
	return status;
}
