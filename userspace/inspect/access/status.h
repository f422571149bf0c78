/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads fields of /proc/PID/status. The kernel writes the file, but a process that ends takes it
 * away.
 */
#ifndef GP_INSPECT_ACCESS_STATUS_H
#define GP_INSPECT_ACCESS_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads the status of a thread of the process, or with `tid` 0 that of the process (or thread)
 * `pid`; `pid` 0: gpuprof's own. 0 and *ret_text for the caller to free, or -errno. */
int status_read(pid_t pid, pid_t tid, char **ret_text);

/* As `index` of status_number(): the last number of the line. */
#define STATUS_LAST (-1)

/* Finds the line "NAME:" and parses its index-th decimal number. False: there is none, or `text` is
 * NULL. */
bool status_number(const char *text, const char *name, int index, long *ret_number);

/* Parses the hexadecimal mask in the line "NAME:"; 0 if there is none or `text` is NULL. */
uint64_t status_mask(const char *text, const char *name);

/* Reads one number of a status file; -1: the file, or the number, is not there. */
long status_read_number(pid_t pid, pid_t tid, const char *name, int index);

#endif /* GP_INSPECT_ACCESS_STATUS_H */
