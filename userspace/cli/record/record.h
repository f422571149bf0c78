/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Records for `attach` and `run`: one capture from its start to the printed table and the written
 * files.
 */
#ifndef GP_CLI_RECORD_RECORD_H
#define GP_CLI_RECORD_RECORD_H

#include "capture/capture.h"
#include "cli/record/flight.h"
#include "cli/record/rotate.h"

#include <stdbool.h>
#include <sys/types.h>

struct record_options {
	struct capture_options capture;
	double duration_s; /* 0: until Ctrl-C or until no process is left */
	bool quiet;	   /* no progress, no summary */
	bool may_end;	   /* one of several processes may have ended before it is added */
	/* the outputs at the end; NULL: none */
	const char *trace_path;
	const char *memory_path;
	const char *sort; /* NULL: the default key */
	long limit;
	bool json;
	bool wide;		 /* all columns of the table on a terminal, too */
	const char *socket_path; /* for ctl; NULL: its place in the common folder */
	struct rotate_options rotate;
	struct flight_options flight;
	bool many;	      /* recordings: their names, and those of outputs, get numbers */
	const char *metadata; /* see cli/view/metadata.h; NULL: none */
};

/* Loads BPF, probes the processes and starts the capture. On success the caller goes on with
 * record_finish(). Sorts `pids`. Returns an enum cli_status. */
struct record;
int record_begin(const struct record_options *options, pid_t *pids, size_t pids_nr,
		 struct record **ret_record);

/* Whether the capture has no BPF: only the collector records. */
bool record_has_no_bpf(const struct record *r);

/* Records until the duration is over, a signal (SIGINT, SIGTERM, SIGHUP) arrives or no process is
 * left. Then stops, prints and writes. Returns an enum cli_status; frees the record. */
int record_finish(struct record *r);

/* The path of the recording without -o: "gpuprof-<pid>-<UTC time>.gpuprof", with a number after
 * the time if that exists. To be freed. */
char *record_default_path(pid_t pid);

/* The enum gp_stack_want bits of what --stack was given (one of record_stacks); NULL: none. */
uint32_t record_stacks_wanted(const char *stack);

/* Where plans are kept: $GPUPROF_CACHE_DIR, else /var/cache/gpuprof for root (under sudo too),
 * $XDG_CACHE_HOME/gpuprof or ~/.cache/gpuprof for others; NULL if there is no such place, or
 * somebody else could change what is there, of which it warns. To be freed. */
char *record_cache_dir(void);

/* Whether files of these names can be written here, each its own: checked before anything is
 * probed. Logs why not. */
bool record_check_outputs(const struct record_options *options);

/* Ends a record without a result: prints nothing and deletes the recording. */
void record_abandon(struct record *r);

struct record_args;

/* The options of the command line as options of a record; `path` and `cache_dir` (may be NULL) are
 * borrowed. Checks that the outputs can be written. Returns CLI_DONE, or the status to end with. */
int record_options_from(const struct record_args *args, const char *path, const char *cache_dir,
			struct record_options *ret_options);

#endif /* GP_CLI_RECORD_RECORD_H */
