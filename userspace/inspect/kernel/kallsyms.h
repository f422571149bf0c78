/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The running kernel's functions by address, as /proc/kallsyms had them when it was read.
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

/* Parses lines as in /proc/kallsyms and skips malformed ones. Takes ownership of the text, on
 * failure too. 0 or -ENOMEM. */
int kallsyms__parse(char *text, struct kallsyms **ret_symbols);

/* Reads /proc/kallsyms. If addresses are hidden from this process the result is empty. 0 or -errno.
 */
int kallsyms__read(struct kallsyms **ret_symbols);
void kallsyms__free(struct kallsyms *k);

/* Returns the number of functions. */
size_t kallsyms__nr(const struct kallsyms *k);

/* Finds the function that contains the address. 0 or -ENOENT. */
int kallsyms__find(const struct kallsyms *k, uint64_t address, struct kernel_function *ret);

/* Finds the addresses of `nr` functions of the kernel itself, in one pass that keeps nothing; an
 * address is 0 if there is no such function or it is hidden. 0 or -errno. */
int kallsyms__addresses(const char *const *names, size_t nr, uint64_t *ret_addresses);

#endif /* GP_INSPECT_KERNEL_KALLSYMS_H */
