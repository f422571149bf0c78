/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof attach`: chooses processes and captures them once.
 */
#include "base/cleanup.h"
#include "cli/core/cli.h"
#include "cli/core/options.h"
#include "cli/core/pids.h"
#include "cli/record/record.h"
#include "cli/record/record_args.h"

#include <stdlib.h>
#include <string.h>

/* The first option given that needs the collector in the process; NULL: none. */
static const char *inner_option(const struct record_args *args)
{
	if (args->shapes)
		return "--shapes";
	if (args->flops)
		return "--flops";
	if (args->modules)
		return "--modules";
	return args->python_functions ? "--python-functions" : NULL;
}

static int check_inner(const struct record_args *args)
{
	const char *option = inner_option(args);

	if (!option)
		return CLI_DONE;
	if (args->no_inject)
		return options_usage_error(
			&command_attach,
			"%s needs the collector in the process, which --no-inject forbids", option);
	if (args->ops && strcmp(args->ops, "all"))
		return options_usage_error(&command_attach, "%s needs all operators, not --ops %s",
					   option, args->ops);
	if (args->stack && strcmp(args->stack, "python"))
		return options_usage_error(
			&command_attach,
			"%s needs operators by callback; --stack %s traces them by uprobes", option,
			args->stack);
	return CLI_DONE;
}

int cli_attach(int argc, char **argv)
{
	struct record_args args = RECORD_ARGS_DEFAULT;
	CLEANUP(cleanup_pids) struct pids pids = {0};
	CLEANUP(cleanup_free) char *path = NULL, *cache = NULL;
	struct record_options options;
	struct record *record;
	int operands, status = options_parse(&command_attach, argc, argv, &args, &operands);

	if (status >= 0)
		return status;
	status = check_inner(&args);
	if (status)
		return status;
	status = pids_choose(&command_attach, args.pids, args.name, &pids);
	if (status)
		return status;
	path = args.output_path ? strdup(args.output_path) : record_default_path(pids.items[0]);
	cache = record_cache_dir();
	status = record_options_from(&args, path, cache, &options);
	if (status)
		return status;
	/* Sampling works for any program. */
	status = pids_check(&pids,
			    args.wait || args.children || options.capture.mode == CAPTURE_SAMPLE);
	if (status)
		return status;
	options.capture.inject = !args.no_inject;
	options.may_end = args.name;
	status = record_begin(&options, pids.items, pids.nr, &record);
	return status ? status : record_finish(record);
}
