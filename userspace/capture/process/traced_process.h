/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One process of a capture and what has become of it.
 */
#ifndef GP_CAPTURE_PROCESS_TRACED_PROCESS_H
#define GP_CAPTURE_PROCESS_TRACED_PROCESS_H

#include "base/buf.h"
#include "base/vec.h"
#include "capture/process/cpu_clocks.h"
#include "inspect/process/process.h"
#include "probe/session/session.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

struct collector_client;
struct python_codes;

enum process_end {
	PROCESS_HERE = 0,
	PROCESS_EXITED = 1,
	PROCESS_EXECED = 2, /* the same process, another program */
};

/* What there has been of collectors in a process. */
struct collector_state {
	bool had;		 /* one that is gone */
	bool callbacks;		 /* its operators come, or came, from the collector */
	bool callbacks_replaced; /* by uprobes, for want of stacks */
	bool api_by_cupti;	 /* calls of CUDA, and not by uprobes */
	bool memory_by_callback; /* CPU memory, likewise */
	bool lack_logged;	 /* why an adopted collector has no GPU activity */
	bool refused;		 /* it is not to be tried (again) for CUDA, but: */
	uint64_t again_ns;	 /* when it is, as what kept it out may have passed; 0: never */
	unsigned int tries;
	int err; /* of the last try to put it in; 0: that was well, or not due */
	struct reason why;
};

/* How new what is known of a process's libraries is. */
struct maps_state {
	struct maps_moves moves; /* before its libraries were read last */
	bool changed;		 /* libraries may have come: read and probe them */
	bool libraries_changed;	 /* they have, since they were probed */
	bool failed;		 /* the last reading did, and the next is to come */
	uint64_t again_ns;	 /* when, if nothing changes before */
};

/* Of its distributed job. */
struct job_place {
	int32_t rank, world_size; /* -1: none */
	char nccl_version[24];	  /* "": there is none */
};

struct traced_process {
	struct target_process *process;
	struct collector_client *collector; /* NULL: none */
	struct collector_state state;	    /* of that and of those before */
	struct python_codes *python;	    /* where stacks are wanted and can be had, else NULL */
	bool python_walked;		    /* the kernel knows how */
	bool python_refused;		    /* why has been logged */
	struct cpu_clock cpu, collector_cpu;
	int pidfd;
	uint16_t index;	 /* what events in rings call it; later ones may have the same */
	uint32_t serial; /* counts all processes of the capture, from 0 */
	/* What each recording says of it. */
	struct job_place job;
	struct buf schemas; /* events of what its operators may write, a u64 with its bytes each */
	VEC(struct gp_ev_device) devices;
	struct gp_ev_clock clock; /* the last reading; kind 0: none */
	enum process_end end;
	int exit_status;   /* as wait(2) has it; 0 also if it is not known */
	bool is_child;	   /* not added, but started by one that is here */
	bool exec_handled; /* its end by exec has been dealt with */
	bool renamed;	   /* exec: read anew who it is */
	bool code_known;   /* the most important unwind tables have been read */
	struct maps_state maps;
};

/* Takes over the process. 0 or -errno (-ESRCH: gone meanwhile). */
int traced_process__init(struct traced_process *m, struct target_process *p, struct reason *why);
/* Of one that has exited nothing is kept but who it was. */
void traced_process__shed(struct traced_process *m);
void traced_process__done(struct traced_process *m);

/* It runs another program: that is looked at, or its capture ends. */
void traced_process__note_exec(struct traced_process *m, bool follow);

/* Asks the kernel whether it is gone. */
bool traced_process__has_exited(const struct traced_process *m);

/* Whether CUDA is mapped in the process. */
bool traced_process__has_cuda(const struct traced_process *m);

/* Whether there is a collector and one of `features` (enum gp_feature bits) is in force. */
bool traced_process__reports(const struct traced_process *m, uint32_t features);

#endif /* GP_CAPTURE_PROCESS_TRACED_PROCESS_H */
