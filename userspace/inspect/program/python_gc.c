/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Only searches the notes for the markers' names; libbpf parses them.
 */
#include "inspect/program/python_gc.h"

#include "base/cleanup.h"
#include "inspect/elf/elf.h"

#include <string.h>

#include "base/banned.h"

bool target_python_marks_gc(const struct target_library *file)
{
	static const char start[] = PYTHON_GC_PROVIDER "\0" PYTHON_GC_START;
	static const char done[] = PYTHON_GC_PROVIDER "\0" PYTHON_GC_DONE;
	CLEANUP(cleanup_elf) struct elf_file *f = NULL;
	const unsigned char *notes;
	uint64_t address;
	size_t bytes;

	if (elf_file__open(file->open_path, NULL, &f) ||
	    elf_file__section(f, ".note.stapsdt", &notes, &bytes, &address))
		return false;
	return memmem(notes, bytes, start, sizeof(start)) &&
	       memmem(notes, bytes, done, sizeof(done));
}
