/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Declares the subcommands and their exit statuses. Each subcommand has a file of its own;
 * commands.c lists them.
 */
#ifndef GP_CLI_CORE_CLI_H
#define GP_CLI_CORE_CLI_H

/* Exit statuses. */
enum cli_status {
	CLI_DONE = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2, /* the command line made no sense */
	CLI_LOST = 3,  /* done, but events were lost */
};

/* Runs `gpuprof ARGS...` and returns the exit status. */
int cli_main(int argc, char **argv);

/* Each subcommand's row: name, options, help. Defined beside its function (attach's and run's in
 * record_args.c). */
struct command;
extern const struct command command_attach, command_run, command_table, command_export;
extern const struct command command_merge, command_ctl, command_list, command_doctor, command_top;
extern const struct command command_daemon;

/* All of them, NULL-terminated, in the order of help; and the one of that name, or NULL. */
extern const struct command *const cli_commands[];
const struct command *cli_find(const char *name);

/* The subcommands; argv[0] is the subcommand's own name. */
int cli_attach(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_table(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_merge(int argc, char **argv);
int cli_ctl(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_list(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_daemon(int argc, char **argv);

#endif /* GP_CLI_CORE_CLI_H */
