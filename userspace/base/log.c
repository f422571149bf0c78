/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Messages to people on stderr: one write() a message, so that lines of several threads stay whole.
 */
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"

#define LINE_BYTES 2048

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

static void put_line(const char *text)
{
	char line[LINE_BYTES];
	size_t nr = line_into(line, sizeof(line) - 1, text);
	ssize_t ignored;

	if (sink_fn) {
		sink_fn(sink_arg, line);
		return;
	}
	line[nr++] = '\n';
	ignored = write(STDERR_FILENO, line, nr);
	(void)ignored;
}

static const char *const prefix = "gpuprof: ";

void log_vat(enum log_level level, const char *fmt, va_list ap)
{
	char text[LINE_BYTES];
	size_t at = strlen(prefix);
	int saved = errno;

	if (level > max_level)
		return;
	memcpy(text, prefix, at + 1);
	(void)vsnprintf(text + at, sizeof(text) - at, fmt, ap);
	put_line(text);
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
