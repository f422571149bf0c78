/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof attach`: which processes, then one capture of them.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/pids.h"
#include "cli/record.h"
#include "cli/record_args.h"
#include "target/scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool has_torch_or_cuda(const struct target_process *p)
{
	return target_process__library(p, "libtorch_cpu.so") ||
	       target_process__library(p, "libcuda.so");
}

/* A wrong --pid, such as that of a shell around the training, shows nothing: better said now. */
static void warn_of_others(const struct pids *pids)
{
	for (size_t i = 0; i < pids->nr; i++) {
		struct target_process *p;

		if (target_process__new(pids->items[i], NULL, &p))
			continue;
		if (!has_torch_or_cuda(p))
			log_warn("process %d (%s) has no PyTorch in it: nothing is seen before it "
				 "loads it; 'gpuprof list' shows which processes have",
				 (int)p->pid, p->comm);
		target_process__free(p);
	}
}

static int find_by_name(const char *pattern, struct pids *pids)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc)) && pids->nr < PIDS_MAX) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		struct target_process *p;

		if (pid <= 0 || pid == getpid() || target_process__new(pid, NULL, &p))
			continue;
		if (has_torch_or_cuda(p) && target_process__is_named(p, pattern))
			(void)vec_push(pids, pid);
		target_process__free(p);
	}
	if (proc)
		(void)closedir(proc);
	if (pids->nr)
		return CLI_DONE;
	log_err("no process with PyTorch or CUDA in it has '%s' in its command line; 'gpuprof "
		"list' shows those there are",
		pattern);
	return CLI_FAILED;
}

static int choose(const struct record_args *args, struct pids *pids)
{
	if (!args->pids == !args->name)
		return options_usage_error(&command_attach,
					   args->pids ? "give --pid or --name, not both"
						      : "give --pid PID or --name PATTERN");
	return args->pids ? pids_parse(&command_attach, args->pids, pids)
			  : find_by_name(args->name, pids);
}

/* Inputs of operators are seen from within the process alone. */
static int check_shapes(const struct record_args *args)
{
	const char *option = args->shapes ? "--shapes" : "--flops";

	if (!args->shapes && !args->flops)
		return CLI_DONE;
	if (args->no_inject)
		return options_usage_error(&command_attach,
					   "%s reads what operators are called with from "
					   "within the process, which --no-inject forbids",
					   option);
	if (args->ops && strcmp(args->ops, "all"))
		return options_usage_error(&command_attach, "%s needs all operators, not --ops %s",
					   option, args->ops);
	if (args->stack && strcmp(args->stack, "python"))
		return options_usage_error(&command_attach,
					   "%s needs operators by callback; with --stack %s they "
					   "come by uprobes",
					   option, args->stack);
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
	status = check_shapes(&args);
	if (status)
		return status;
	status = choose(&args, &pids);
	if (status)
		return status;
	path = args.output_path ? strdup(args.output_path) : record_default_path(pids.items[0]);
	cache = record_cache_dir();
	status = record_options_from(&args, path, cache, &options);
	if (status)
		return status;
	options.capture.inject = !args.no_inject;
	options.may_end = args.name;
	if (args.pids)
		warn_of_others(&pids);
	status = record_begin(&options, pids.items, pids.nr, &record);
	return status ? status : record_finish(record);
}
