/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector's shared library as bytes inside gpuprof, from collector_so_start up to
 * collector_so_end. COLLECTOR_SO is its path, given by the makefile.
 */
	.section .rodata
	.balign 16
	.globl collector_so_start
	.type collector_so_start, %object
collector_so_start:
	.incbin COLLECTOR_SO
	.globl collector_so_end
	.type collector_so_end, %object
collector_so_end:
	.byte 0
	.section .note.GNU-stack, "", %progbits
