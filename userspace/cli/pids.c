/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Lists of processes on the command line.
 */
#include "cli/pids.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "target/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void cleanup_pids(struct pids *p)
{
	vec_done(p);
}

int pids_parse(const struct command *command, const char *text, struct pids *pids)
{
	const char *at = text;

	for (;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(at, &end, 10);
		if (errno || end == at || pid <= 0 || pid > INT32_MAX || (*end && *end != ','))
			return options_usage_error(command,
						   "--pid takes process ids with commas between "
						   "them, not '%s'",
						   text);
		for (size_t i = 0; i < pids->nr; i++)
			if (pids->items[i] == (pid_t)pid)
				return options_usage_error(command, "%ld is named twice", pid);
		if (pids->nr >= PIDS_MAX || vec_push(pids, (pid_t)pid))
			return options_usage_error(command, "at most %d processes at once",
						   PIDS_MAX);
		if (!*end)
			return CLI_DONE;
		at = end + 1;
	}
}

void pids_warn_of_others(const struct pids *p)
{
	for (size_t i = 0; i < p->nr; i++) {
		struct target_process *process;

		if (target_process__new(p->items[i], NULL, &process))
			continue;
		if (!target_process__is_profilable(process))
			log_warn("process %d (%s) has no PyTorch in it: nothing is seen before it "
				 "loads it; 'gpuprof list' shows which processes have",
				 (int)process->pid, process->comm);
		target_process__free(process);
	}
}

static int find_by_name(const char *pattern, struct pids *pids)
{
	CLEANUP(cleanup_free) pid_t *all = NULL;
	size_t nr = 0;

	(void)target_scan(&all, &nr);
	for (size_t i = 0; i < nr && pids->nr < PIDS_MAX; i++) {
		struct target_process *p;

		if (all[i] == getpid() || target_process__new(all[i], NULL, &p))
			continue;
		if (target_process__is_profilable(p) && target_process__is_named(p, pattern))
			(void)vec_push(pids, all[i]);
		target_process__free(p);
	}
	if (pids->nr)
		return CLI_DONE;
	log_err("no process with PyTorch or CUDA in it has '%s' in its command line; 'gpuprof "
		"list' shows those there are",
		pattern);
	return CLI_FAILED;
}

int pids_choose(const struct command *command, const char *list, const char *name,
		struct pids *pids)
{
	if (!list == !name)
		return options_usage_error(command, list ? "give --pid or --name, not both"
							 : "give --pid PID or --name PATTERN");
	return list ? pids_parse(command, list, pids) : find_by_name(name, pids);
}
