/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parses /proc/PID/status. A name is matched at the start of a line only: the first line holds the
 * process's name, which the process chooses.
 */
#include "inspect/access/status.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_BYTES_MAX 65536

int status_read(pid_t pid, pid_t tid, char **ret_text)
{
	char path[64] = "/proc/self/status";

	if (tid)
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	else if (pid)
		(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return file_read(path, STATUS_BYTES_MAX, ret_text, NULL);
}

/* Returns what follows "NAME:" at the start of a line, or NULL. */
static const char *find_line(const char *text, const char *name)
{
	size_t bytes = strlen(name);

	while (text && (strncmp(text, name, bytes) || text[bytes] != ':')) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text ? text + bytes + 1 : NULL;
}

bool status_number(const char *text, const char *name, int index, long *ret_number)
{
	bool found = false;
	long number = 0;

	text = find_line(text, name);
	for (int i = 0; text && (index == STATUS_LAST || i <= index); i++) {
		char *end;

		text += strspn(text, " \t");
		if (!isdigit((unsigned char)*text)) {
			found = found && index == STATUS_LAST;
			break;
		}
		number = strtol(text, &end, 10);
		text = end;
		found = true;
	}
	if (found)
		*ret_number = number;
	return found;
}

uint64_t status_mask(const char *text, const char *name)
{
	text = find_line(text, name);
	return text ? strtoull(text, NULL, 16) : 0;
}

long status_read_number(pid_t pid, pid_t tid, const char *name, int index)
{
	CLEANUP(cleanup_free) char *text = NULL;
	long number;

	if (status_read(pid, tid, &text) || !status_number(text, name, index, &number))
		return -1;
	return number;
}
