/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Checks each BPF program on its own: which ones this kernel refuses, and what gpuprof cannot
 * record without them.
 */
#ifndef GP_PROBE_SESSION_PROGRAM_CHECK_H
#define GP_PROBE_SESSION_PROGRAM_CHECK_H

#include "probe/session/program_try.h"

#include <stddef.h>
#include <stdint.h>

/* A program that the kernel refuses. */
struct program_refusal {
	char program[32];  /* "": none */
	const char *costs; /* what is lost without it, such as "autograd nodes" (static) */
	bool required;	   /* a session that asks for it fails */
	bool all;	   /* every session fails: nothing can be probed */
	uint32_t kinds;	   /* 1 << enum probe_kind: the probes that need it */
	struct program_answer answer;
};

/* Tries every program that any option can ask for and calls fn for each one that is refused. Takes
 * about a second. Returns how many were tried, or -errno if none could be. */
int program_check_all(void (*fn)(const struct program_refusal *refusal, void *arg), void *arg);

/* Writes the kernel's name and release for messages: "Linux 6.1.0-44-amd64". Returns `to`. */
const char *program_check_kernel(char *to, size_t bytes);

#endif /* GP_PROBE_SESSION_PROGRAM_CHECK_H */
