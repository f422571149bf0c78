/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Signals that end a command.
 */
#include "cli/signals.h"

#include "base/file.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
static volatile sig_atomic_t asked;

static void end(int sig)
{
	file_new__abandon_all();
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

static void ask(int sig)
{
	asked = sig;
}

static void ask_or_end(int sig)
{
	static const char said[] = "gpuprof: ended at once, by a second signal: what was recorded "
				   "so far is in the recording, and nothing was made of it\n";
	ssize_t ignored;

	if (asked) {
		ignored = write(STDERR_FILENO, said, sizeof(said) - 1);
		(void)ignored;
		end(sig);
	}
	ask(sig);
}

static bool is_ignored(int sig)
{
	struct sigaction before;

	return sigaction(sig, NULL, &before) || before.sa_handler == SIG_IGN;
}

void signals_end(void)
{
	struct sigaction sa = {.sa_handler = end}, before;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!sigaction(ends[i], NULL, &before) && before.sa_handler == SIG_DFL)
			(void)sigaction(ends[i], &sa, NULL);
}

void signals_ask(bool terminal)
{
	struct sigaction sa = {.sa_handler = terminal ? ask : ask_or_end};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		/* nohup means it; a shell that starts us with & means something else. */
		if (terminal || ends[i] != SIGHUP || !is_ignored(SIGHUP))
			(void)sigaction(ends[i], &sa, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

bool signals_asked(void)
{
	return asked != 0;
}
