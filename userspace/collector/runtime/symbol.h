/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Functions of the process's libraries by name.
 */
#ifndef GP_COLLECTOR_RUNTIME_SYMBOL_H
#define GP_COLLECTOR_RUNTIME_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* The function of this name in *ret_function, which points to a pointer to it, NULL if there is
 * none (ISO C has no cast for it). `library`: as dlsym() takes it. False: there is none. */
static inline bool symbol_find(void *library, const char *name, void *ret_function)
{
	void *p = dlsym(library, name);

	memcpy(ret_function, &p, sizeof(p));
	return p != NULL;
}

#endif /* GP_COLLECTOR_RUNTIME_SYMBOL_H */
