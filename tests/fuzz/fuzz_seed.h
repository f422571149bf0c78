/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What every fuzz target offers to libFuzzer, and how it hands over its seeds: libFuzzer reads the
 * corpus folder after LLVMFuzzerInitialize(), so the target puts them there itself.
 */
#ifndef GP_FUZZ_SEED_H
#define GP_FUZZ_SEED_H

#include "base/cleanup.h"
#include "base/file.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Writes one seed into the first corpus folder of the command line; without one does nothing. */
static inline void fuzz_seed(int argc, char **argv, const char *name, const void *data,
			     size_t bytes)
{
	CLEANUP(cleanup_free) char *path = NULL;
	int i = 1;

	while (i < argc && argv[i][0] == '-')
		i++;
	if (i == argc)
		return;
	if (asprintf(&path, "%s/%s", argv[i], name) < 0)
		abort();
	CLEANUP(cleanup_fd) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || file_write_all(fd, data, bytes))
		abort();
}

#endif /* GP_FUZZ_SEED_H */
