/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Preloaded into gpuprof: opens of one file fail, whatever calls open(), open64(), openat() or
 * openat64() for it. Handles (O_PATH) do not count, but what is opened through them does. All by
 * the environment:
 *
 *     GPUPROF_TEST_OPEN_PATH    what the file's path has in it
 *     GPUPROF_TEST_OPEN_ERRNO   what they fail with, a number
 *     GPUPROF_TEST_OPEN_FIRST   the first that fails, from 1; without it the first
 *     GPUPROF_TEST_OPEN_NUMBER  so many from there on; without it all
 *     GPUPROF_TEST_OPEN_WHILE   a file: only while it is there are opens counted, and fail
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int open_fn(const char *path, int flags, ...);
typedef int openat_fn(int dir, const char *path, int flags, ...);

static unsigned long number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

/* A handle is opened for real by the name that stands for it. */
static const char *name_of(const char *path, char *text, size_t bytes)
{
	ssize_t nr = strncmp(path, "/proc/self/fd/", 14) ? -1 : readlink(path, text, bytes - 1);

	if (nr < 0)
		return path;
	text[nr] = '\0';
	return text;
}

static bool fails(const char *path, int flags)
{
	static unsigned long opened;
	const char *part = getenv("GPUPROF_TEST_OPEN_PATH");
	const char *while_there = getenv("GPUPROF_TEST_OPEN_WHILE");
	unsigned long at, first = number("GPUPROF_TEST_OPEN_FIRST", 1);
	char text[4096];

	if (!part || (flags & O_PATH) || !strstr(name_of(path, text, sizeof(text)), part) ||
	    (while_there && access(while_there, F_OK)))
		return false;
	at = __atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
	if (at < first || at - first >= number("GPUPROF_TEST_OPEN_NUMBER", -1UL))
		return false;
	errno = (int)number("GPUPROF_TEST_OPEN_ERRNO", EMFILE);
	return true;
}

/* What the call has as its mode, which is there only with O_CREAT or O_TMPFILE. */
static int mode_of(int flags, va_list args)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
}

#define WRAP_OPEN(name)                                                                            \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		open_fn *next = (open_fn *)dlsym(RTLD_NEXT, #name);                                \
		va_list args;                                                                      \
		int mode;                                                                          \
                                                                                                   \
		va_start(args, flags);                                                             \
		mode = mode_of(flags, args);                                                       \
		va_end(args);                                                                      \
		return fails(path, flags) ? -1 : next(path, flags, mode);                          \
	}

#define WRAP_OPENAT(name)                                                                          \
	int name(int dir, const char *path, int flags, ...)                                        \
	{                                                                                          \
		openat_fn *next = (openat_fn *)dlsym(RTLD_NEXT, #name);                            \
		va_list args;                                                                      \
		int mode;                                                                          \
                                                                                                   \
		va_start(args, flags);                                                             \
		mode = mode_of(flags, args);                                                       \
		va_end(args);                                                                      \
		return fails(path, flags) ? -1 : next(dir, path, flags, mode);                     \
	}

WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)
