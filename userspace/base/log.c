/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Messages to people on stderr: one write() a message, so that lines of several threads stay whole.
 */
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum log_level max_level = LOG_WARN;
static void (*sink_fn)(void *arg, const char *line);
static void *sink_arg;

void log_set_sink(void (*fn)(void *arg, const char *line), void *arg)
{
	sink_fn = fn;
	sink_arg = arg;
}

void log_set_level(enum log_level level)
{
	max_level = level;
}

enum log_level log_get_level(void)
{
	return max_level;
}

static void put_line(char *line, size_t nr, size_t cap)
{
	ssize_t ignored;

	if (nr > cap - 2)
		nr = cap - 2;
	for (size_t i = 0; i < nr; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	if (sink_fn) {
		line[nr] = '\0';
		sink_fn(sink_arg, line);
		return;
	}
	line[nr++] = '\n';
	ignored = write(STDERR_FILENO, line, nr);
	(void)ignored;
}

static size_t add(char *line, size_t at, size_t cap, const char *fmt, va_list ap)
{
	int n = vsnprintf(line + at, cap - at, fmt, ap);

	if (n < 0)
		return at;
	return at + (size_t)n < cap ? at + (size_t)n : cap - 1;
}

static const char *const prefix = "gpuprof: ";

void log_vat(enum log_level level, const char *fmt, va_list ap)
{
	char line[2048];
	size_t at = strlen(prefix);
	int saved = errno;

	if (level > max_level)
		return;
	memcpy(line, prefix, at);
	at = add(line, at, sizeof(line), fmt, ap);
	put_line(line, at, sizeof(line));
	errno = saved;
}

void log_at(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vat(level, fmt, ap);
	va_end(ap);
}

int log_errno(int err, const char *fmt, ...)
{
	char text[1536];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_at(LOG_ERR, "%s: %s", text, strerror(-err));
	return err;
}
