/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Handles the signals that end a command: SIGINT, SIGTERM and SIGHUP.
 */
#ifndef GP_CLI_CORE_SIGNALS_H
#define GP_CLI_CORE_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

/* Blocks these signals until one of the two functions below sets their actions. Called before
 * anything else. */
void signals_hold(void);

/* Lets them end the process, without leaving a half-written output or a socket behind. Ignored
 * signals stay ignored. */
void signals_end(void);

/* Makes the first signal ask for the end and the next one end the process; SIGHUP does neither
 * where it was ignored. With `terminal` every signal only asks, because the terminal must be
 * restored before the process ends. Writing into a closed pipe becomes an error instead of a
 * signal. */
void signals_ask(bool terminal);

/* Whether a signal has asked for the end. */
bool signals_asked(void);

/* Forks, as fork(2), a child that will execute another program. From its first instruction on
 * these signals do in the child what they did in us when we started. */
pid_t signals_fork(void);

#endif /* GP_CLI_CORE_SIGNALS_H */
