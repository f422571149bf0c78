/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Machine code that gpuprof lends to a thread of the target. It lies in gpuprof's read-only data and
 * is copied, never run here. Both pieces are position-independent and keep one promise: whoever
 * enters one comes out of it exactly as its context says, with no help from gpuprof, so gpuprof may
 * die at any moment.
 */
#include "trampoline.h"

#define SYS_rt_sigprocmask 14
#define SYS_getpid	   39
#define SIG_SETMASK	   2

/* Puts the signal mask back and then everything that system calls and `put_back` itself change.
 * rsp must point to free stack: a signal that was held back until now may be taken here. */
.macro put_back ctx
	movl	$SIG_SETMASK, %edi
	leaq	\ctx + CTX_MASK(%rip), %rsi
	xorl	%edx, %edx
	movl	$8, %r10d
	movl	$SYS_rt_sigprocmask, %eax
	syscall
	pushq	\ctx + CTX_FLAGS(%rip)
	popfq
	movq	\ctx + CTX_RAX(%rip), %rax
	movq	\ctx + CTX_RCX(%rip), %rcx
	movq	\ctx + CTX_RDX(%rip), %rdx
	movq	\ctx + CTX_RSI(%rip), %rsi
	movq	\ctx + CTX_RDI(%rip), %rdi
	movq	\ctx + CTX_R8(%rip), %r8
	movq	\ctx + CTX_R9(%rip), %r9
	movq	\ctx + CTX_R10(%rip), %r10
	movq	\ctx + CTX_R11(%rip), %r11
.endm

	.section .rodata
	.balign	16

/*
 * The caller: one system call in the thread's own context. gpuprof sets the call's registers together
 * with rip, and rsp below the red zone; it reads the result at the system call's exit stop. Registers
 * that no system call changes still hold the thread's own values and are not touched.
 */
	.globl	gp_caller_begin, gp_caller_syscall, gp_caller_context, gp_caller_end
gp_caller_begin:
gp_caller_magic:
	.ascii	"gpuprof caller"
	.byte	0, 1
gp_caller_owner:
	.quad	0			/* the thread that uses this copy */
gp_caller_syscall:
	syscall
	put_back gp_caller_context
	movq	gp_caller_context + CTX_RSP(%rip), %rsp
	jmp	*gp_caller_context + CTX_RIP(%rip)
	.balign	8
gp_caller_context:
	.skip	CTX_BYTES
gp_caller_end:

/*
 * The runner: calls a list of C functions on a stack of its own. Entered with rbx = data block and
 * rsp = top of that stack (16-byte aligned), every vector and floating-point register still the
 * thread's own.
 */
	.globl	gp_runner_begin, gp_runner_entry, gp_runner_marker, gp_runner_context, gp_runner_end
	.balign	16
gp_runner_begin:
gp_runner_entry:
	cld
	movl	$-1, %eax
	movl	$-1, %edx
	cmpq	$0, RUN_XSAVE(%rbx)
	je	1f
	xsave64	RUN_AREA(%rbx)
	jmp	2f
1:	fxsave64 RUN_AREA(%rbx)
2:	/* What the C ABI expects: an empty x87 stack and default control words. */
	fninit
	pushq	$0x1f80
	ldmxcsr	(%rsp)
	addq	$8, %rsp
3:	cmpq	$0, RUN_COUNT(%rbx)
	je	7f
	movq	RUN_NEXT(%rbx), %r12
	movq	CALL_IF(%r12), %rax
	testq	%rax, %rax
	jz	4f
	/* ecx = whether the word is not zero; run if that is what is wanted */
	xorl	%ecx, %ecx
	cmpq	$0, (%rax)
	setne	%cl
	cmpq	%rcx, CALL_WANT(%r12)
	jne	6f
4:	movq	CALL_FN(%r12), %rax
	movq	CALL_FN_AT(%r12), %rcx
	testq	%rcx, %rcx
	jz	5f
	movq	(%rcx), %rax
5:	movq	CALL_ARG0(%r12), %rdi
	movq	CALL_ARG0_AT(%r12), %rcx
	testq	%rcx, %rcx
	jz	8f
	movq	(%rcx), %rdi
8:	movq	CALL_ARG1(%r12), %rsi
	call	*%rax
	movq	%rax, CALL_RESULT(%r12)
	movq	$1, CALL_DONE(%r12)
6:	addq	$CALL_BYTES, %r12
	movq	%r12, RUN_NEXT(%rbx)
	decq	RUN_COUNT(%rbx)
	jmp	3b
7:	movq	$1, RUN_DONE(%rbx)
	movl	$-1, %eax
	movl	$-1, %edx
	cmpq	$0, RUN_XSAVE(%rbx)
	je	1f
	xrstor64 RUN_AREA(%rbx)
	jmp	2f
1:	fxrstor64 RUN_AREA(%rbx)
2:	/* A system call without effect, by which gpuprof sees that the calls are over. */
	movl	$SYS_getpid, %eax
gp_runner_marker:
	syscall
	put_back gp_runner_context
	movq	gp_runner_context + CTX_RBX(%rip), %rbx
	movq	gp_runner_context + CTX_RBP(%rip), %rbp
	movq	gp_runner_context + CTX_R12(%rip), %r12
	movq	gp_runner_context + CTX_R13(%rip), %r13
	movq	gp_runner_context + CTX_R14(%rip), %r14
	movq	gp_runner_context + CTX_R15(%rip), %r15
	movq	gp_runner_context + CTX_RSP(%rip), %rsp
	jmp	*gp_runner_context + CTX_RIP(%rip)
	.balign	8
gp_runner_context:
	.skip	CTX_BYTES
gp_runner_end:

	.section .note.GNU-stack, "", @progbits
