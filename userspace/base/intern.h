/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Interned strings: equal texts share one pointer, which is valid until intern__free(). The strings
 * lie in an arena and are never freed one by one.
 */
#ifndef GP_BASE_INTERN_H
#define GP_BASE_INTERN_H

#include <stddef.h>

struct intern;

/* NULL when out of memory. */
struct intern *intern__new(void);
void intern__free(struct intern *in);

/* Returns the one copy of text[0..bytes), zero-terminated; NULL when out of memory. */
const char *intern__get(struct intern *in, const char *text, size_t bytes);

/* Does the same for a zero-terminated string. */
const char *intern__str(struct intern *in, const char *text);

#endif /* GP_BASE_INTERN_H */
