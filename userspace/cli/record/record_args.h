/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Holds the options of `attach` and `run` as options_parse() fills them. The tables are
 * command_attach's and command_run's.
 */
#ifndef GP_CLI_RECORD_RECORD_ARGS_H
#define GP_CLI_RECORD_RECORD_ARGS_H

#include "cli/core/options.h"
#include "cli/view/loaded_recording.h"

#include <stdint.h>

struct record_args {
	const char *mode;  /* "trace" or "sample"; NULL: not given */
	long hz;	   /* 0: not given */
	const char *pids;  /* "PID[,PID...]", NULL: not given */
	const char *name;  /* pattern, NULL: not given */
	bool wait;	   /* for PyTorch to come */
	double duration_s; /* 0: not given */
	const char *output_path;
	const char *trace_path;
	const char *memory_path;
	const char *ops;     /* "all", "none" or "GLOB[,GLOB...]", NULL: not given */
	double overhead_pct; /* 0: not given */
	bool no_annotations;
	bool python_gc;
	bool memory;
	long steps;		/* 0: not given */
	const char *schedule;	/* NULL: not given; else one that schedule_parse() takes */
	double flight_s;	/* 0: not given */
	uint64_t flight_bytes;	/* 0: not given */
	const char *trigger;	/* NULL: not given; else flight_triggers_known() */
	double trigger_apart_s; /* 0: not given */
	double rotate_s;	/* 0: not given */
	long keep;		/* 0: not given */
	uint64_t max_bytes;	/* 0: not given */
	bool shapes;
	bool flops; /* implies shapes */
	bool modules;
	bool python_functions; /* implies stack "python" */
	const char *stack;     /* "python", "native" or "both"; NULL: not given */
	bool children;
	bool no_gpu;
	bool any_cupti;
	bool no_inject;
	const char *sort; /* NULL: not given; else a known key */
	long limit;	  /* -1: all, or SHOW_LIMIT_UNSAID */
	bool json;
	bool wide;
	const char *socket;   /* NULL: not given */
	const char *metadata; /* NULL: not given; else sane: see cli/view/metadata.h */
	bool quiet;
	long ring_bytes; /* 0: not given */
};

/* The defaults. */
#define RECORD_ARGS_DEFAULT ((struct record_args){.limit = SHOW_LIMIT_UNSAID})

#endif /* GP_CLI_RECORD_RECORD_ARGS_H */
