/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Scope-bound ownership: a local declared with CLEANUP(fn) is released when it goes out of scope,
 * and TAKE() moves its value out. A function uses either this or goto, never both.
 */
#ifndef GP_BASE_CLEANUP_H
#define GP_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Returns the pointer's value and sets the pointer to NULL. */
#define TAKE(p)                                                                                    \
	({                                                                                         \
		__typeof__(p) took_ = (p);                                                         \
		(p) = NULL;                                                                        \
		took_;                                                                             \
	})

/* For CLEANUP on any pointer from malloc. */
static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

/* For CLEANUP on a descriptor; a negative one is not closed. */
static inline void cleanup_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

/* Returns the descriptor and sets the variable to -1. */
static inline int take_fd(int *fd)
{
	int took = *fd;

	*fd = -1;
	return took;
}

/* For CLEANUP on a stream. */
static inline void cleanup_file(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

/* For CLEANUP on a directory. */
static inline void cleanup_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

#endif /* GP_BASE_CLEANUP_H */
