/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Fuzzes the parser of /proc/PID/maps with what grows out of this program's own.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "fuzz/fuzz_seed.h"
#include "inspect/access/maps.h"

#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char deleted[] = "7f1000-7f2000 r-xp 00001000 fd:01 42   /a\\012b (deleted)";
	CLEANUP(cleanup_free) char *text = NULL;
	char *line, *rest, name[32];
	size_t bytes;
	int nr = 0;

	if (file_read("/proc/self/maps", 1 << 20, &text, &bytes))
		abort();
	for (rest = text; (line = strsep(&rest, "\n"));) {
		(void)snprintf(name, sizeof(name), "line%d", nr++);
		fuzz_seed(*argc, *argv, name, line, strlen(line));
	}
	fuzz_seed(*argc, *argv, "deleted", deleted, strlen(deleted));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	CLEANUP(cleanup_free) char *line = strndup((const char *)data, bytes);
	struct map_line m;

	if (!line)
		abort();
	bytes = strlen(line);
	if (!map_line_parse(line, &m) &&
	    (m.start >= m.end || m.path < line || m.path > line + bytes ||
	     strlen(m.path) > (size_t)(line + bytes - m.path)))
		abort();
	return 0;
}
