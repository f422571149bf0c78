/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The reason of a failure as text, for rooms that do not log. The caller passes a reason, the
 * failing function sets it and returns -errno, and cli/ prints it.
 */
#ifndef GP_BASE_REASON_H
#define GP_BASE_REASON_H

struct reason {
	char text[512];
};

/* Sets the text (cut to fit) and returns err, so that a failure is one statement. `r` may be NULL.
 */
int reason_set(struct reason *r, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* GP_BASE_REASON_H */
