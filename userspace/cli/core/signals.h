/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Handles the signals that end a command: SIGINT, SIGTERM and SIGHUP.
 */
#ifndef GP_CLI_CORE_SIGNALS_H
#define GP_CLI_CORE_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

/* The first thing of all: none of them is delivered before one of the two below says what they do.
 */
void signals_hold(void);

/* They end the process as by themselves, but leave no half-written output and no socket behind.
 * Those that are ignored stay so. */
void signals_end(void);

/* From now on the first one asks for the end and the next one ends the process; SIGHUP does neither
 * where it was ignored. `terminal`: all ask only, for the terminal is to be given back before the
 * process ends. A write into a closed pipe is an error from now on, no signal. */
void signals_ask(bool terminal);

/* Whether one has asked. */
bool signals_asked(void);

/* As fork(2), for a child that is to become another program: these signals do in it what they did
 * in us when we began, from its first instruction on. */
pid_t signals_fork(void);

#endif /* GP_CLI_CORE_SIGNALS_H */
