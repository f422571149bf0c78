/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The functions of the running kernel by address, as /proc/kallsyms had them when it was read.
 */
#ifndef GP_INSPECT_KERNEL_KALLSYMS_H
#define GP_INSPECT_KERNEL_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

struct kallsyms;

struct kernel_function {
	uint64_t start;	    /* its address */
	const char *name;   /* borrowed */
	const char *module; /* "[nf_tables]", borrowed; NULL: the kernel itself */
};

/* Takes the text over (freed by kallsyms__free(), and on failure too): lines as in /proc/kallsyms.
 * Lines that make no sense are skipped. 0 or -ENOMEM. */
int kallsyms__parse(char *text, struct kallsyms **ret_symbols);

/* Reads /proc/kallsyms. Where addresses are hidden from this process there are no functions. 0 or
 * -errno. */
int kallsyms__read(struct kallsyms **ret_symbols);
void kallsyms__free(struct kallsyms *k);

/* How many functions there are. */
size_t kallsyms__nr(const struct kallsyms *k);

/* The function that the address lies in; 0 or -ENOENT. */
int kallsyms__find(const struct kallsyms *k, uint64_t address, struct kernel_function *ret);

/* The addresses of `nr` functions of the kernel itself, in one pass that keeps nothing; 0 where
 * there is none, or it is hidden from this process. 0 or -errno. */
int kallsyms__addresses(const char *const *names, size_t nr, uint64_t *ret_addresses);

#endif /* GP_INSPECT_KERNEL_KALLSYMS_H */
