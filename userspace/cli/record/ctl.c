/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `gpuprof ctl`: sends a command to a running capture and prints the answer.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/unix_socket.h"
#include "cli/core/cli.h"
#include "cli/core/option_rows.h"
#include "cli/record/control.h"
#include "cli/view/metadata.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ctl_args {
	long pid;
	const char *socket;
};

static const struct option_spec ctl_options[] = {
	ROW_PID(struct ctl_args,
		"The capture of this process, or the gpuprof of this number. Not needed where only "
		"one capture runs."),
	ROW_SOCKET(struct ctl_args, "The capture that listens there (attach --socket PATH)."),
	{0},
};

static const char *const first_words[] = {"status", "stop",	"start", "dump",
					  "rotate", "metadata", "end",	 NULL};

const struct command command_ctl = {
	.name = "ctl",
	.summary = "switch a running capture off and on, ask how it goes",
	.usage = "[--pid PID | --socket PATH] status | stop [cpu|gpu] | start [cpu|gpu] | dump | "
		 "rotate | metadata KEY=VALUE | end",
	.about = "Talks to a gpuprof attach or run. 'stop' switches collection off, which then "
		 "costs "
		 "next to nothing, and 'start' on again, both of the CPU's side and of GPUs or of "
		 "one of them; the time between is no part of the capture. 'status' says how it "
		 "goes. 'dump' has everything that was recorded so far written, so that the "
		 "recording can be read while it goes on. 'rotate' begins the next recording of "
		 "a capture with --rotate or --max-bytes and waits until the one before is whole. "
		 "'metadata' puts words of your own into the recording. "
		 "'end' ends the capture as Ctrl-C does.",
	.options = ctl_options,
	.operand = "what to do: status, stop, start, dump, rotate, metadata or end",
	.min_operands = 1,
	.max_operands = 2,
	.complete = COMPLETE_NOTHING,
	.words = first_words,
	.run = cli_ctl,
};

/* Looks for "process PID" in the status. */
static bool is_of(const char *status, long pid)
{
	for (const char *at = status; (at = strstr(at, "\nprocess ")); at++)
		if (strtol(at + 9, NULL, 10) == pid)
			return true;
	return false;
}

struct found {
	char *path;
	unsigned int nr;
};

/* Asks one socket of the folder. Removes the socket of a capture that was killed. */
static void look_at(const char *folder, int handle, const char *name, long pid, struct found *found)
{
	CLEANUP(cleanup_free) char *path = NULL, *status = NULL;
	struct reason why;
	char *end;
	long own = strtol(name, &end, 10);
	int err;

	if (end == name || strcmp(end, ".sock") || asprintf(&path, "%s/%s", folder, name) < 0)
		return;
	err = control_send(path, "status", &why, &status);
	if (err == -ECONNREFUSED)
		(void)unlinkat(handle, name, 0);
	if (err || (pid && own != pid && !is_of(status, pid)))
		return;
	found->nr++;
	free(found->path);
	found->path = TAKE(path);
}

static int find_socket(long pid, char **ret_path)
{
	CLEANUP(cleanup_free) char *folder = unix_socket_folder();
	CLEANUP(cleanup_fd) int handle = folder ? unix_socket_open_folder(folder, NULL) : -1;
	CLEANUP(cleanup_dir) DIR *dir = handle < 0 ? NULL : fdopendir(dup(handle));
	struct found found = {0};
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		look_at(folder, handle, entry->d_name, pid, &found);
	*ret_path = found.path;
	if (found.nr == 1)
		return CLI_DONE;
	if (found.nr)
		log_err("%u captures are running; choose one with --pid", found.nr);
	else if (pid)
		log_err("no capture of process %ld runs here; 'gpuprof ctl' finds those of the "
			"same user",
			pid);
	else
		log_err("no capture runs here; 'gpuprof ctl' finds those of the same user");
	return CLI_FAILED;
}

static void print_lines(char *text)
{
	CLEANUP(buf__done) struct buf out = {0};
	char *line;

	while ((line = strsep(&text, "\n"))) {
		buf__line(&out, line);
		buf__str(&out, text ? "\n" : "");
	}
	if (!buf__error(&out) && out.nr)
		(void)fwrite(out.bytes, 1, out.nr, stdout);
}

/* Prints the answer. Its first line only says whether the command succeeded, and if not, why. */
static int show_answer(char *text)
{
	char *rest = strchr(text, '\n');

	if (strncmp(text, "ok", 2)) {
		text += strncmp(text, "error: ", 7) ? 0 : 7;
		log_err("%.*s", (int)strcspn(text, "\n"), text);
		return CLI_FAILED;
	}
	if (rest)
		print_lines(rest + 1);
	return CLI_DONE;
}

static bool is_command(int nr, char **words)
{
	static const char *const alone[] = {"status", "dump", "rotate", "end", NULL};
	bool sides = !strcmp(words[0], "start") || !strcmp(words[0], "stop");

	for (size_t i = 0; alone[i]; i++)
		if (!strcmp(words[0], alone[i]))
			return nr == 1;
	if (!strcmp(words[0], "metadata"))
		return nr == 2 && metadata_is_sane(words[1]);
	return sides && (nr == 1 || !strcmp(words[1], "cpu") || !strcmp(words[1], "gpu"));
}

int cli_ctl(int argc, char **argv)
{
	CLEANUP(cleanup_free) char *path = NULL, *text = NULL;
	struct ctl_args args = {0};
	int operands, status = options_parse(&command_ctl, argc, argv, &args, &operands);
	char command[CONTROL_COMMAND_BYTES];
	struct reason why;

	if (status >= 0)
		return status;
	if (args.pid && args.socket)
		return options_usage_error(&command_ctl, "give --pid or --socket, not both");
	if (!is_command(operands, argv + 1))
		return options_usage_error(&command_ctl,
					   "'%s%s%s' is none of status, stop [cpu|gpu], start "
					   "[cpu|gpu], dump, rotate, metadata KEY=VALUE and end",
					   argv[1], operands > 1 ? " " : "",
					   operands > 1 ? argv[2] : "");
	status = args.socket ? CLI_DONE : find_socket(args.pid, &path);
	if (status)
		return status;
	(void)snprintf(command, sizeof(command), "%s%s%s", argv[1], operands > 1 ? " " : "",
		       operands > 1 ? argv[2] : "");
	if (control_send(args.socket ? args.socket : path, command, &why, &text)) {
		log_err("%s", why.text);
		return CLI_FAILED;
	}
	return show_answer(text);
}
