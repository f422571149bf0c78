/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Fuzzes inspect/elf with what grows out of a real program.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "fuzz/fuzz_seed.h"
#include "unit/elf_exercise.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	CLEANUP(cleanup_free) char *text = NULL;
	size_t bytes;

	if (file_read("/bin/true", 1 << 20, &text, &bytes))
		abort();
	fuzz_seed(*argc, *argv, "program", text, bytes);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	(void)elf_exercise(data, bytes);
	return 0;
}
