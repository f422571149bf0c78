/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parses /proc/PID/maps strictly: "START-END PERM OFFSET MAJ:MIN INODE  PATH", numbers without
 * signs or leading spaces. The kernel writes a newline in a name as \012 and escapes nothing else.
 */
#include "inspect/access/maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/file.h"

#define DELETED	  " (deleted)"
#define BYTES_MAX (256u << 20)
#define READS	  100

static int digit_of(char c, unsigned int base)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (base == 16 && c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Parses a number and the character that must follow it; moves *at behind both. */
static bool take_number(char **at, unsigned int base, char then, uint64_t *ret_number)
{
	uint64_t n = 0;
	char *p = *at;

	for (; digit_of(*p, base) >= 0; p++)
		if (__builtin_mul_overflow(n, base, &n) ||
		    __builtin_add_overflow(n, (uint64_t)digit_of(*p, base), &n))
			return false;
	if (p == *at || *p != then)
		return false;
	*at = p + 1;
	*ret_number = n;
	return true;
}

static bool take_permissions(char **at, bool *ret_executable)
{
	static const char allowed[4][3] = {"r-", "w-", "x-", "ps"};
	const char *p = *at;

	for (int i = 0; i < 4; i++)
		if (!p[i] || !strchr(allowed[i], p[i]))
			return false;
	if (p[4] != ' ')
		return false;
	*ret_executable = p[2] == 'x';
	*at += 5;
	return true;
}

/* The inode is the last number; the line may end right after it if there is no name. */
static bool take_inode(char **at, ino_t *ret_inode)
{
	uint64_t inode;
	size_t bytes = strspn(*at, "0123456789");
	char *end = *at + bytes;

	if (*end && *end != ' ')
		return false;
	if (!take_number(at, 10, *end, &inode))
		return false;
	if (!*end)
		*at = end;
	*ret_inode = (ino_t)inode;
	return true;
}

static void decode_newlines(char *path)
{
	char *to = path;

	while (*path) {
		if (!strncmp(path, "\\012", 4)) {
			*to++ = '\n';
			path += 4;
		} else {
			*to++ = *path++;
		}
	}
	*to = '\0';
}

int map_line_parse(char *line, struct map_line *ret_map)
{
	const size_t suffix = strlen(DELETED);
	struct map_line m = {0};
	uint64_t major, minor;
	char *at = line;
	size_t bytes;

	if (!take_number(&at, 16, '-', &m.start) || !take_number(&at, 16, ' ', &m.end) ||
	    m.start >= m.end || !take_permissions(&at, &m.executable) ||
	    !take_number(&at, 16, ' ', &m.offset) || !take_number(&at, 16, ':', &major) ||
	    !take_number(&at, 16, ' ', &minor) || major > UINT32_MAX || minor > UINT32_MAX ||
	    !take_inode(&at, &m.inode))
		return -EBADMSG;
	m.device = makedev((unsigned int)major, (unsigned int)minor);
	at += strspn(at, " ");
	bytes = strlen(at);
	if (*at == '/' && bytes > suffix && !strcmp(at + bytes - suffix, DELETED)) {
		m.deleted = true;
		at[bytes - suffix] = '\0';
	}
	decode_newlines(at);
	m.path = at;
	*ret_map = m;
	return 0;
}

bool maps_in_order(const char *text)
{
	uint64_t last = 0;

	for (const char *line = text; *line;) {
		const char *next = strchrnul(line, '\n');
		uint64_t start, end;
		char *at;

		/* sscanf() would measure the whole rest of the text for each line. */
		start = strtoull(line, &at, 16);
		if (at == line || *at != '-')
			return true; /* the parser of the line will report it */
		end = strtoull(at + 1, NULL, 16);
		if (start < last)
			return false;
		last = end;
		line = *next ? next + 1 : next;
	}
	return true;
}

int maps_read(pid_t pid, char **ret_text)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	for (int i = 0; i < READS; i++) {
		char *text;
		int err = file_read(path, BYTES_MAX, &text, NULL);

		if (err)
			return err;
		if (maps_in_order(text)) {
			*ret_text = text;
			return 0;
		}
		free(text);
	}
	return -EAGAIN;
}
