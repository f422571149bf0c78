/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Serves `gpuprof ctl`: the commands to a capture.
 */
#ifndef GP_CLI_RECORD_RECORD_CONTROL_H
#define GP_CLI_RECORD_RECORD_CONTROL_H

#include "capture/capture.h"
#include "cli/record/control.h"
#include "cli/record/flight.h"

#include <stdbool.h>
#include <sys/types.h>

struct record_control {
	struct control *control; /* NULL: nobody can ask */
	struct capture *capture;
	const char *path;				     /* of the recording */
	struct flight *flight;				     /* NULL: none */
	bool dumping;					     /* someone waits for it */
	unsigned int dumps_nr;				     /* those before */
	char *(*recording_path)(void *arg, unsigned int nr); /* to be freed */
	void *recording_arg;
	pid_t *pids;
	size_t pids_nr;
	unsigned int waited; /* turns for what was asked to be done */
	bool waiting;	     /* someone waits for a switch */
	uint32_t rotated_nr; /* someone waits for so many recordings to have ended; 0: nobody */
};

/* Answers a client, if one asks. To be called often. Returns whether the capture should end. */
bool record_control_poll(struct record_control *r);

#endif /* GP_CLI_RECORD_RECORD_CONTROL_H */
