/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes the chunks of a .gpuprof file. Cuts off again what a failed write left behind, so that the
 * file ends with a whole chunk.
 */
#include "recording/chunk_writer.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* 1 is zstd's fastest level that still finds most of what repeats: see FORMAT.md. */
#define ZSTD_LEVEL 1

int chunk_writer__init(struct chunk_writer *w)
{
	*w = (struct chunk_writer){.file = FILE_NEW_NONE, .zstd = ZSTD_createCCtx()};
	return w->zstd ? 0 : -ENOMEM;
}

void chunk_writer__done(struct chunk_writer *w)
{
	file_new__done(&w->file);
	ZSTD_freeCCtx(w->zstd);
	free(w->packed);
}

int chunk_writer__fail(struct chunk_writer *w, int err)
{
	if (!w->err)
		w->err = err;
	return w->err;
}

static uint64_t bytes_before(int fd)
{
	bool appends = fcntl(fd, F_GETFL) & O_APPEND;
	off_t at = lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);

	return at < 0 ? 0 : (uint64_t)at;
}

int chunk_writer__begin(struct chunk_writer *w)
{
	struct format_header h = {.version = FORMAT_VERSION, .wire_version = GP_WIRE_VERSION};
	int err;

	w->begin_bytes = bytes_before(w->file.fd);
	memcpy(h.magic, FORMAT_MAGIC, FORMAT_MAGIC_BYTES);
	h.crc = (uint32_t)crc32(0, (const Bytef *)&h, offsetof(struct format_header, crc));
	err = file_write_all(w->file.fd, &h, sizeof(h));
	w->written_bytes = sizeof(h);
	return err;
}

/* Writes header and payload, in one system call where the kernel takes all of it. */
static int write_two(int fd, const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	struct iovec parts[2] = {{(void *)a, a_bytes}, {(void *)b, b_bytes}};
	ssize_t n;
	int err;

	do
		n = writev(fd, parts, 2);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n < a_bytes) {
		err = file_write_all(fd, (const char *)a + n, a_bytes - (size_t)n);
		return err ? err : file_write_all(fd, b, b_bytes);
	}
	n -= (ssize_t)a_bytes;
	return file_write_all(fd, (const char *)b + n, b_bytes - (size_t)n);
}

static bool may_write(const struct chunk_writer *w, size_t bytes, int err)
{
	if (!w->room.fn)
		return !err;
	return (!err || err == -ENOSPC || err == -EDQUOT) && w->room.fn(w->room.arg, bytes, err);
}

int chunk_writer__put(struct chunk_writer *w, enum format_type type, unsigned int flags,
		      const void *stored, size_t stored_bytes, size_t raw_bytes)
{
	struct format_chunk c = {
		.magic = FORMAT_CHUNK_MAGIC,
		.type = (uint16_t)type,
		.flags = (uint16_t)flags,
		.stored_bytes = (uint32_t)stored_bytes,
		.raw_bytes = (uint32_t)raw_bytes,
		.index = w->chunks,
	};
	int err;

	c.crc = format_chunk_crc(&c, stored);
	if (!may_write(w, sizeof(c) + stored_bytes, 0))
		return chunk_writer__fail(w, -ENOSPC);
	do {
		err = write_two(w->file.fd, &c, sizeof(c), stored, stored_bytes);
		if (err) {
			/* Devices and pipes refuse this: they have nothing to cut. */
			off_t end = (off_t)(w->begin_bytes + w->written_bytes);
			int ignored = ftruncate(w->file.fd, end);

			(void)ignored;
			(void)lseek(w->file.fd, end, SEEK_SET);
		}
	} while (err && may_write(w, sizeof(c) + stored_bytes, err));
	if (err)
		return chunk_writer__fail(w, err);
	w->chunks++;
	w->written_bytes += sizeof(c) + stored_bytes;
	return 0;
}

int chunk_writer__put_packed(struct chunk_writer *w, enum format_type type, unsigned int flags,
			     const void *raw, size_t bytes)
{
	size_t bound = ZSTD_compressBound(bytes), nr;

	if (w->packed_cap < bound) {
		free(w->packed);
		w->packed_cap = 0;
		w->packed = malloc(bound);
		if (!w->packed)
			return chunk_writer__fail(w, -ENOMEM);
		w->packed_cap = bound;
	}
	nr = ZSTD_compressCCtx(w->zstd, w->packed, w->packed_cap, raw, bytes, ZSTD_LEVEL);
	if (ZSTD_isError(nr))
		return chunk_writer__fail(w, -ENOMEM);
	if (nr < bytes)
		return chunk_writer__put(w, type, flags | FORMAT_ZSTD, w->packed, nr, bytes);
	return chunk_writer__put(w, type, flags, raw, bytes, bytes);
}
