/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The programs of the object, one by one: which of them this kernel refuses, and what gpuprof
 * cannot do without each.
 */
#ifndef GP_PROBE_SESSION_PROGRAM_CHECK_H
#define GP_PROBE_SESSION_PROGRAM_CHECK_H

#include "probe/session/program_try.h"

#include <stddef.h>
#include <stdint.h>

/* A program that the kernel refuses. */
struct program_refusal {
	char program[32];  /* "": there is none */
	const char *costs; /* static: what is not recorded without it, as "autograd nodes" */
	bool required;	   /* a session that wants it cannot do without */
	bool all;	   /* nor can any other: nothing is probed */
	uint32_t kinds;	   /* of probes that need it, a bit for each enum probe_kind */
	struct program_answer answer;
};

/* Tries all programs that any option asks for, and tells fn of each that is refused. Takes about a
 * second. Returns how many were tried, or -errno: none could be. */
int program_check_all(void (*fn)(const struct program_refusal *refusal, void *arg), void *arg);

/* The kernel's name and release, for messages: "Linux 6.1.0-44-amd64". Returns `to`. */
const char *program_check_kernel(char *to, size_t bytes);

#endif /* GP_PROBE_SESSION_PROGRAM_CHECK_H */
