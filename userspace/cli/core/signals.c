/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Handles the signals that end a command.
 */
#include "cli/core/signals.h"

#include "base/file.h"
#include "base/unix_socket.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

#define ENDS_NR (sizeof(ends) / sizeof(ends[0]))

static volatile sig_atomic_t asked;

/* The actions that this process inherited. */
static struct sigaction actions_before[ENDS_NR];
static sigset_t mask_before;
static bool is_held;

/* A forked child has these handlers until it sets others, but the files to remove are not its
 * own. */
static pid_t owner;

static void end(int sig)
{
	if (getpid() == owner) {
		file_new__abandon_all();
		unix_socket__abandon_all();
	}
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

	if (asked && getpid() == owner) {
		ignored = write(STDERR_FILENO, said, sizeof(said) - 1);
		(void)ignored;
	}
	if (asked)
		end(sig);
	ask(sig);
}

static bool is_ignored(int sig)
{
	struct sigaction before;

	return sigaction(sig, NULL, &before) || before.sa_handler == SIG_IGN;
}

static void block(sigset_t *ret_before)
{
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ENDS_NR; i++)
		(void)sigaddset(&set, ends[i]);
	(void)sigprocmask(SIG_BLOCK, &set, ret_before);
}

void signals_hold(void)
{
	block(&mask_before);
	for (size_t i = 0; i < ENDS_NR; i++)
		(void)sigaction(ends[i], NULL, &actions_before[i]);
	owner = getpid();
	is_held = true;
}

/* Signals that arrived meanwhile go to the handlers that are now set. */
static void release(void)
{
	if (is_held)
		(void)sigprocmask(SIG_SETMASK, &mask_before, NULL);
	is_held = false;
}

void signals_end(void)
{
	struct sigaction sa = {.sa_handler = end}, before;

	for (size_t i = 0; i < ENDS_NR; i++)
		if (!sigaction(ends[i], NULL, &before) && before.sa_handler == SIG_DFL)
			(void)sigaction(ends[i], &sa, NULL);
	release();
}

void signals_ask(bool terminal)
{
	struct sigaction sa = {.sa_handler = terminal ? ask : ask_or_end};

	for (size_t i = 0; i < ENDS_NR; i++)
		/* nohup means it; a shell that starts us with & means something else. */
		if (terminal || ends[i] != SIGHUP || !is_ignored(SIGHUP))
			(void)sigaction(ends[i], &sa, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	release();
}

bool signals_asked(void)
{
	return asked != 0;
}

pid_t signals_fork(void)
{
	sigset_t before;
	pid_t pid;

	block(&before);
	pid = fork();
	for (size_t i = 0; i < ENDS_NR && !pid; i++)
		(void)sigaction(ends[i], &actions_before[i], NULL);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}
