/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of wire.h for choosing operators: shell patterns, as POSIX defines them for fnmatch()
 * without flags, as tokens that a program of bounded length can match step by step: the BPF
 * programs, for names in the process's memory, and gpuprof itself. probe/plan/globs.h compiles
 * them.
 */
#ifndef GP_BPF_GLOB_TOKENS_H
#define GP_BPF_GLOB_TOKENS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define GP_GLOB_TOKENS 4096 /* a power of two */
#define GP_GLOB_SETS   32   /* likewise */

/* The upper byte of a token; the lower one is its value. */
enum gp_glob_kind {
	GP_GLOB_STOP = 0, /* behind the last pattern */
	GP_GLOB_END = 1,  /* of a pattern */
	GP_GLOB_BYTE = 2, /* the value */
	GP_GLOB_ANY = 3,  /* one byte, '?' */
	GP_GLOB_MANY = 4, /* any number of them, '*' */
	GP_GLOB_SET = 5,  /* one of the set that the value numbers, '[...]' */
};

struct gp_globs {
	__u64 sets[GP_GLOB_SETS * 4]; /* four words each: a bit for each byte */
	__u16 tokens[GP_GLOB_TOKENS];
};

/* The state of a match; all zero at the beginning. */
struct gp_glob_search {
	__u32 token;
	__u32 byte;	 /* position in the name */
	__u32 many;	 /* token behind the last '*'; 0: none */
	__u32 many_byte; /* where the text for that '*' ends */
	__u32 lost;	 /* this pattern does not match */
	__u32 fits;	 /* after the last step: whether a pattern matches */
};

/* The most steps for the longest name and list: each token is tried at most once per byte. */
#define GP_GLOB_STEPS_MAX (1U << 19)

static inline __attribute__((always_inline)) int gp_glob_is_in(const __u64 *sets, __u8 kind,
							       __u8 value, __u8 byte)
{
	if (kind == GP_GLOB_SET)
		return sets[(value & (GP_GLOB_SETS - 1)) * 4 + (byte >> 6)] >> (byte & 63) & 1;
	return kind == GP_GLOB_ANY || (kind == GP_GLOB_BYTE && value == byte);
}

/* Makes one step. `byte` is the name's byte at s->byte, 0 behind the last one. `tokens` and `sets`
 * are those of struct gp_globs. Returns whether it was the last step. */
static inline __attribute__((always_inline)) int
gp_glob_step(const __u16 *tokens, const __u64 *sets, struct gp_glob_search *s, __u8 byte)
{
	__u16 token = tokens[s->token & (GP_GLOB_TOKENS - 1)];
	__u8 kind = token >> 8, value = (__u8)token;

	if (kind == GP_GLOB_STOP)
		return 1;
	if (s->lost) {
		s->token++;
		if (kind == GP_GLOB_END)
			s->byte = s->many = s->lost = 0;
	} else if (kind == GP_GLOB_MANY) {
		s->many = ++s->token;
		s->many_byte = s->byte;
	} else if (kind == GP_GLOB_END && !byte) {
		s->fits = 1;
		return 1;
	} else if (byte && gp_glob_is_in(sets, kind, value, byte)) {
		s->token++;
		s->byte++;
	} else if (byte && s->many) {
		/* Let the '*' stand for one byte more. */
		s->token = s->many;
		s->byte = ++s->many_byte;
	} else {
		s->lost = 1;
	}
	return 0;
}

#endif /* GP_BPF_GLOB_TOKENS_H */
