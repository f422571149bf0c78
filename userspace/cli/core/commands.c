/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The list of subcommands. It refers to their rows only: dispatching is cli.c's.
 */
#include "cli/core/cli.h"

#include "cli/core/options.h"

#include <string.h>

const struct command *const cli_commands[] = {
	&command_attach, &command_run,	  &command_top, &command_table,
	&command_export, &command_merge,  &command_ctl, &command_list,
	&command_doctor, &command_daemon, NULL,
};

const struct command *cli_find(const char *name)
{
	for (size_t i = 0; cli_commands[i]; i++)
		if (!strcmp(cli_commands[i]->name, name))
			return cli_commands[i];
	return NULL;
}
