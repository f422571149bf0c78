/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * An open() that fails on demand, for the program that includes this.
 */
#ifndef GP_TESTS_UNIT_FAILING_OPEN_H
#define GP_TESTS_UNIT_FAILING_OPEN_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Opens of paths with this in them fail with that; NULL: none do. */
static const char *open_fails_of;
static int open_fails_with;

/* A handle is opened for real by the name that stands for it. */
static bool open_is_to_fail(const char *path)
{
	char text[4096];
	ssize_t nr = -1;

	if (!open_fails_of)
		return false;
	if (!strncmp(path, "/proc/self/fd/", 14))
		nr = readlink(path, text, sizeof(text) - 1);
	if (nr >= 0) {
		text[nr] = '\0';
		path = text;
	}
	return strstr(path, open_fails_of);
}

int open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
	va_end(args);
	if (!(flags & O_PATH) && open_is_to_fail(path)) {
		errno = open_fails_with;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#endif /* GP_TESTS_UNIT_FAILING_OPEN_H */
