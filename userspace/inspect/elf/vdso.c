/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The vDSO has no file: its image is read from gpuprof's own memory.
 */
#include "inspect/elf/vdso.h"

#include "base/cleanup.h"
#include "inspect/access/maps.h"
#include "inspect/elf/elf_image.h"

#include <errno.h>
#include <string.h>

#define IMAGE_BYTES_MAX (1u << 20)

int vdso_find(pid_t pid, uint64_t *ret_start, uint64_t *ret_end)
{
	CLEANUP(cleanup_free) char *text = NULL;
	char *line, *rest;
	int err;

	err = maps_read(pid, &text);
	if (err)
		return err;
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		struct map_line m;

		if (!*line || map_line_parse(line, &m) || m.inode || strcmp(m.path, "[vdso]"))
			continue;
		*ret_start = m.start;
		*ret_end = m.end;
		return 0;
	}
	return -ENOENT;
}

int vdso_open(struct elf_file **ret_file)
{
	uint64_t start, end;
	int err = vdso_find(getpid(), &start, &end);

	if (err)
		return err;
	if (end - start > IMAGE_BYTES_MAX)
		return -EFBIG;
	return elf_image__open((const void *)(uintptr_t)start, end - start, ret_file);
}
