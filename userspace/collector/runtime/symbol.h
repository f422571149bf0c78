/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Looking up functions of the process's libraries by name.
 */
#ifndef GP_COLLECTOR_RUNTIME_SYMBOL_H
#define GP_COLLECTOR_RUNTIME_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Finds the function `name`. `library` is as for dlsym(). ret_function points to the function
 * pointer to set, because ISO C has no cast for it; it is set to NULL if there is none. False:
 * there is none. */
static inline bool symbol_find(void *library, const char *name, void *ret_function)
{
	void *p = dlsym(library, name);

	memcpy(ret_function, &p, sizeof(p));
	return p != NULL;
}

#endif /* GP_COLLECTOR_RUNTIME_SYMBOL_H */
