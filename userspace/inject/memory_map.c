/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* Parses /proc/PID/maps into a sorted array. */
#include "inject/memory_map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/access/maps.h"

/* Reads the permission letters, of which map_line_parse() keeps only 'x'. */
static void read_letters(const char *line, struct mapping *m)
{
	const char *letters = strchr(line, ' ');

	if (!letters || strlen(letters) < 5)
		return;
	m->readable = letters[1] == 'r';
	m->writable = letters[2] == 'w';
	m->private = letters[4] == 'p';
}

static int add_line(struct memory_map *m, char *line)
{
	struct mapping new = {0};
	struct map_line parsed;
	int err;

	read_letters(line, &new);
	err = map_line_parse(line, &parsed);
	if (err)
		return err;
	new.start = parsed.start;
	new.end = parsed.end;
	new.offset = parsed.offset;
	new.device = parsed.device;
	new.inode = parsed.inode;
	new.executable = parsed.executable;
	new.grows = !strcmp(parsed.path, "[stack]");
	(void)snprintf(new.name, sizeof(new.name), "%s", file_base_name(parsed.path));
	return vec_push(&m->maps, new);
}

int memory_map__read(pid_t pid, struct memory_map *ret_map)
{
	char CLEANUP(cleanup_free) *text = NULL;
	char *line, *rest;
	int err;

	ret_map->maps.nr = 0;
	err = maps_read(pid, &text);
	rest = text;
	while (!err && (line = strsep(&rest, "\n")))
		if (*line)
			err = add_line(ret_map, line);
	return err ? err : ret_map->maps.nr ? 0 : -ESRCH;
}

void memory_map__done(struct memory_map *m)
{
	vec_done(&m->maps);
}

const struct mapping *memory_map__find(const struct memory_map *m, uint64_t address)
{
	size_t low = 0, high = m->maps.nr, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (m->maps.items[mid].end <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < m->maps.nr && m->maps.items[low].start <= address)
		return &m->maps.items[low];
	return NULL;
}
