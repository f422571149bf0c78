/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Loads one BPF program on its own to find out whether this kernel accepts it, and if not, why. A
 * whole object fails with its first program and an errno, and a verifier's refusal often has the
 * errno of missing rights.
 */
#ifndef GP_PROBE_SESSION_PROGRAM_TRY_H
#define GP_PROBE_SESSION_PROGRAM_TRY_H

#include <stdbool.h>

struct bpf_object;

/* A kernel's answer to one program. */
struct program_answer {
	int error;	 /* 0: it was loaded; or -errno */
	bool verified;	 /* the verifier refused it; `words` holds its last line */
	char words[200]; /* printable; "" if there is none */
};

/* Tries the program with this name, without the object's others. The object must be open and not
 * loaded; afterwards it can only be closed. -ENOENT in the answer: it has no such program, or the
 * kernel lacks something that the object names. */
void program_try(struct bpf_object *object, const char *name, struct program_answer *ret_answer);

/* Copies the last line of the verifier's log that is not a statistic. */
void verifier_last_words(const char *log, char *to, unsigned long bytes);

#endif /* GP_PROBE_SESSION_PROGRAM_TRY_H */
