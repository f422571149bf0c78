/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Preloaded into the profiled programs. If a signal ends one, the frames of that thread go to
 * stderr, and then the signal has its usual effect.
 */
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FRAMES 64

static unsigned char stack[1 << 16];

static void emit(int number)
{
	void *frames[FRAMES];
	char text[64];
	int nr = snprintf(text, sizeof(text), "ended by signal %d in thread %d:\n", number,
			  (int)gettid());

	if (write(STDERR_FILENO, text, (size_t)nr) == nr)
		backtrace_symbols_fd(frames, backtrace(frames, FRAMES), STDERR_FILENO);
	(void)signal(number, SIG_DFL);
	(void)raise(number);
}

__attribute__((constructor)) static void begin(void)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
	struct sigaction action = {.sa_handler = emit, .sa_flags = SA_ONSTACK};
	stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
	void *frame;

	/* It loads what it needs when it is called first. */
	(void)backtrace(&frame, 1);
	/* Of the main thread; the others have theirs. */
	(void)sigaltstack(&own, NULL);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)sigaction(numbers[i], &action, NULL);
}
