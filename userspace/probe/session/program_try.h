/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One BPF program on its own: does this kernel take it, and if not, what did it say? A whole object
 * fails with its first program and an errno; the errno of a verifier's refusal is often that of
 * missing rights.
 */
#ifndef GP_PROBE_SESSION_PROGRAM_TRY_H
#define GP_PROBE_SESSION_PROGRAM_TRY_H

#include <stdbool.h>

struct bpf_object;

/* A kernel's answer to one program. */
struct program_answer {
	int error;	 /* 0: it was loaded; or -errno */
	bool verified;	 /* the verifier refused it, and `words` are its last ones */
	char words[200]; /* printable, "" if there were none */
};

/* Loads the program of this name, without the object's others. The object must be open and not
 * loaded; afterwards it can only be closed. -ENOENT in the answer: it has no such program, or the
 * kernel lacks something that the object names. */
void program_try(struct bpf_object *object, const char *name, struct program_answer *ret_answer);

/* Copies the verifier's last line that is no statistics from its log. */
void verifier_last_words(const char *log, char *to, unsigned long bytes);

#endif /* GP_PROBE_SESSION_PROGRAM_TRY_H */
