/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Messages for people on stderr: lower case, what failed first, the subject in 'quotes', no full
 * stop, and the next step where there is one. The rooms cli, probe, inject and capture log.
 */
#ifndef GP_BASE_LOG_H
#define GP_BASE_LOG_H

#include <stdarg.h>

enum log_level { LOG_ERR = 0, LOG_WARN = 1, LOG_INFO = 2, LOG_DEBUG = 3 };

/* Messages above this level are dropped. Starts at LOG_WARN; -v is LOG_INFO, -vv LOG_DEBUG. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* Prints "gpuprof: " and the message as one line (base/escape.h), because names of a traced process
 * are not trusted. */
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_vat(enum log_level level, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

#define log_err(...)   log_at(LOG_ERR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

/* Sends each line (without its end) to fn instead of stderr; NULL: to stderr again. For code that
 * draws on the terminal. */
void log_set_sink(void (*fn)(void *arg, const char *line), void *arg);

/* Logs the message, ": " and the text of errno -err. Returns err, which is negative. */
int log_errno(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif /* GP_BASE_LOG_H */
