/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Lists of processes on the command line.
 */
#include "cli/pids.h"

#include "base/vec.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

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
