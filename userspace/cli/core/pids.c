/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads --pid and --name, and refuses processes that cannot be recorded.
 */
#include "cli/core/pids.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "cli/core/cli.h"
#include "inspect/process/scan.h"

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

/* Whether anything in the process can be recorded, now or later. Logs why not. */
static bool is_worth_it(const struct target_process *p, bool wait)
{
	const char *sandbox = target_process__sandbox(p);

	if (sandbox) {
		log_err("cannot attach to process %d (%s): it is %s's, whose programs run where "
			"neither probes nor the collector get to; run gpuprof inside of the "
			"sandbox, or the program without it (Docker: --runtime runc; Kubernetes: "
			"without runtimeClassName)",
			(int)p->pid, p->comm, sandbox);
		return false;
	}
	if (target_process__is_profilable(p) || target_process__has_operators(p))
		return true;
	if (wait)
		log_warn("process %d (%s) has no PyTorch in it: nothing is seen before it loads it",
			 (int)p->pid, p->comm);
	else
		log_err("process %d (%s) has no PyTorch in it: there is nothing to record; "
			"'gpuprof list' shows which processes have, --wait records it once it "
			"loads PyTorch, --children what it starts",
			(int)p->pid, p->comm);
	return wait;
}

int pids_check(const struct pids *pids, bool wait)
{
	bool worth_it = true;

	for (size_t i = 0; i < pids->nr && worth_it; i++) {
		struct target_process *p;

		/* The capture says what is wrong with it. */
		if (target_process__new(pids->items[i], NULL, &p))
			continue;
		worth_it = is_worth_it(p, wait);
		target_process__free(p);
	}
	return worth_it ? CLI_DONE : CLI_FAILED;
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
	log_err("no process with PyTorch or CUDA has '%s' in its command line; 'gpuprof list' "
		"shows those that run",
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
