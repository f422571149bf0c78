/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Runs the flight recorder: it holds the last seconds of a capture in a fixed amount of memory and
 * writes them as one recording each time a trigger fires.
 */
#ifndef GP_CLI_RECORD_FLIGHT_H
#define GP_CLI_RECORD_FLIGHT_H

#include "capture/capture.h"

#include <stdbool.h>
#include <stdint.h>

struct record_args;

struct flight_options {
	double seconds; /* 0: no flight recorder */
	uint64_t bytes; /* of memory */
	double apart_s; /* what sets it off by itself again sooner than that is counted only */
	bool on_signal; /* SIGUSR2 */
};

/* What the command line says of it, nothing perhaps. Logs what it must not say. Returns CLI_DONE or
 * CLI_USAGE. `ret_triggers` is for the capture. */
int flight_options_from(const struct record_args *args, struct flight_options *ret_options,
			struct capture_triggers *ret_triggers);

/* Whether the text is a list of triggers: "slow-step=3,oom,hang=60s,signal". */
bool flight_triggers_known(const char *text);

struct flight;

/* `dump_path` names the recordings that it writes, from 0 on, into the folder, which is borrowed;
 * what it returns is freed. NULL: out of memory. */
struct flight *flight__new(const struct flight_options *options, const struct file_folder *folder,
			   char *(*dump_path)(void *arg, unsigned int nr), void *arg);
void flight__free(struct flight *f);

/* Has the capture, which is about to be made, record into memory. */
void flight__prepare(struct flight *f, struct capture_options *options);

/* Called often. */
void flight__poll(struct flight *f, struct capture *c);

/* What someone who asked for a dump waits for: how many were written or failed, the name of the
 * last (NULL: none, or it failed), and whether one is on its way. */
unsigned int flight__dumps(const struct flight *f, const char **ret_path, bool *ret_busy);

/* Seconds that are held now. */
double flight__held(const struct flight *f);

/* The capture has been stopped: writes what was set off, and says what there is. Returns an enum
 * cli_status. */
int flight__end(struct flight *f, struct capture *c, bool quiet);

#endif /* GP_CLI_RECORD_FLIGHT_H */
