/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Copies the bytes into a memory file, so that there is one way to read ELF files.
 */
#include "inspect/elf/elf_image.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The file chooses its packed content and so its unpacked size. */
#define MINI_BYTES_MAX	  (64u << 20)
#define MINI_MEMORY_BYTES (128u << 20)

int elf_image__open(const void *image, size_t bytes, struct elf_file **ret_file)
{
	CLEANUP(cleanup_fd) int fd = memfd_create("gpuprof-elf", MFD_CLOEXEC);
	char path[64];
	int err;

	if (fd < 0)
		return -errno;
	err = file_write_all(fd, image, bytes);
	if (err)
		return err;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return elf_file__open(path, NULL, ret_file);
}

static int of_lzma(lzma_ret ret)
{
	return ret == LZMA_OK ? 0 : ret == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

/* Unpacks. The memory grows with the result, as hardly anything shrinks to a hundredth. */
static int unpack(const unsigned char *packed, size_t packed_bytes, unsigned char **ret_bytes,
		  size_t *ret_nr)
{
	for (size_t room = packed_bytes * 8;; room *= 8) {
		uint64_t memory = MINI_MEMORY_BYTES;
		size_t from = 0, to = 0;
		unsigned char *bytes;
		lzma_ret ret;

		if (room > MINI_BYTES_MAX)
			room = MINI_BYTES_MAX;
		bytes = malloc(room);
		if (!bytes)
			return -ENOMEM;
		ret = lzma_stream_buffer_decode(&memory, 0, NULL, packed, &from, packed_bytes,
						bytes, &to, room);
		if (ret == LZMA_OK) {
			*ret_bytes = bytes;
			*ret_nr = to;
			return 0;
		}
		free(bytes);
		if (ret != LZMA_BUF_ERROR || room == MINI_BYTES_MAX)
			return of_lzma(ret);
	}
}

int elf_image__mini_debug(struct elf_file *f, struct elf_file **ret_file)
{
	CLEANUP(cleanup_free) unsigned char *bytes = NULL;
	const unsigned char *packed;
	size_t packed_bytes, nr = 0;
	uint64_t address;
	int err = elf_file__section(f, ".gnu_debugdata", &packed, &packed_bytes, &address);

	if (err)
		return err;
	if (!packed_bytes || packed_bytes > MINI_BYTES_MAX / 8)
		return -EFBIG;
	err = unpack(packed, packed_bytes, &bytes, &nr);
	return err ? err : elf_image__open(bytes, nr, ret_file);
}
