/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The layout of the two pieces of machine code in trampoline.S, shared with the C code that fills
 * them in. Context offsets count from the label of the piece's context.
 */
#ifndef GP_INJECT_TRAMPOLINE_H
#define GP_INJECT_TRAMPOLINE_H

/* The context: the state that the piece restores in the thread. */
#define CTX_MASK  0 /* signal mask */
#define CTX_FLAGS 8
#define CTX_RIP	  16
#define CTX_RSP	  24
#define CTX_RAX	  32
#define CTX_RBX	  40
#define CTX_RCX	  48
#define CTX_RDX	  56
#define CTX_RSI	  64
#define CTX_RDI	  72
#define CTX_RBP	  80
#define CTX_R8	  88
#define CTX_R9	  96
#define CTX_R10	  104
#define CTX_R11	  112
#define CTX_R12	  120
#define CTX_R13	  128
#define CTX_R14	  136
#define CTX_R15	  144
#define CTX_BYTES 152

/* One call of the runner's program. All addresses are in the traced process. */
#define CALL_IF	     0	/* address of a word to look at first; 0: none */
#define CALL_WANT    8	/* run if that word is zero (0) or not zero (1) */
#define CALL_FN	     16 /* the function, or ... */
#define CALL_FN_AT   24 /* ... where its address is; 0: CALL_FN counts */
#define CALL_ARG0    32
#define CALL_ARG0_AT 40 /* where the first argument is; 0: CALL_ARG0 counts */
#define CALL_ARG1    48
#define CALL_RESULT  56
#define CALL_DONE    64 /* 1 once the call has returned */
#define CALL_BYTES   72

/* The runner's data block. */
#define RUN_COUNT 0  /* calls left */
#define RUN_NEXT  8  /* address of the next call */
#define RUN_XSAVE 16 /* 1: xsave, 0: fxsave */
#define RUN_DONE  24 /* 1 once the last call has returned */
#define RUN_AREA  64 /* register state; 64-byte aligned */

#endif /* GP_INJECT_TRAMPOLINE_H */
