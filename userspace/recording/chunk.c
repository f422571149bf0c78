/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads the frames of chunks, checks their sums and unpacks them. Allocates only what a checked
 * length allows: one within the file (stored) or below FORMAT_CHUNK_MAX (raw).
 */
#include "recording/chunk.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "recording/delta.h"
#include "wire.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

/* Reads exactly these bytes. -EIO if the file became shorter meanwhile. */
static int read_at(int fd, uint64_t at, void *to, size_t bytes)
{
	ssize_t nr = file_read_all_at(fd, at, to, bytes);

	if (nr < 0)
		return (int)nr;
	return (size_t)nr < bytes ? -EIO : 0;
}

static int check_header(const struct chunk_reader *c, const char *path, struct reason *why)
{
	struct format_header h;
	int err;

	if (c->file_bytes < sizeof(h))
		return reason_set(why, -EINVAL,
				  "'%s' is no gpuprof recording: it has only %llu "
				  "bytes",
				  path, (unsigned long long)c->file_bytes);
	err = read_at(c->fd, 0, &h, sizeof(h));
	if (err)
		return reason_set(why, err, "cannot read '%s': %s", path, strerror(-err));
	if (memcmp(h.magic, FORMAT_MAGIC, FORMAT_MAGIC_BYTES))
		return reason_set(why, -EINVAL, "'%s' is no gpuprof recording", path);
	if (h.crc != (uint32_t)crc32(0, (const Bytef *)&h, offsetof(struct format_header, crc)))
		return reason_set(why, -EINVAL,
				  "'%s' is no usable recording: its first bytes are "
				  "damaged",
				  path);
	if (h.version != FORMAT_VERSION || h.wire_version != GP_WIRE_VERSION || h.reserved)
		return reason_set(why, -ENOTSUP,
				  "'%s' has format %u.%u, this gpuprof reads %u.%u; "
				  "use the gpuprof that recorded it, or a later one",
				  path, h.version, h.wire_version, FORMAT_VERSION, GP_WIRE_VERSION);
	return 0;
}

int chunk_reader__open(struct chunk_reader *c, const char *path, struct reason *why)
{
	CLEANUP(cleanup_fd) int fd = file_open_regular(path);
	struct stat st;
	int err = fd;

	if (fd == -EINVAL)
		return reason_set(why, -EINVAL,
				  "'%s' is no regular file: a recording cannot be read from a "
				  "pipe, copy it to a file",
				  path);
	if (fd >= 0 && fstat(fd, &st))
		err = -errno;
	if (err < 0)
		return reason_set(why, err, "cannot open the recording '%s': %s", path,
				  strerror(-err));
	*c = (struct chunk_reader){.fd = fd, .file_bytes = (uint64_t)st.st_size};
	err = check_header(c, path, why);
	if (err)
		c->fd = -1;
	else
		(void)take_fd(&fd);
	return err;
}

void chunk_reader__done(struct chunk_reader *c)
{
	if (c->fd >= 0)
		(void)close(take_fd(&c->fd));
}

/* Makes *buffer at least `bytes` long. Its content is lost. */
static int make_room(uint8_t **buffer, size_t *cap, size_t bytes)
{
	if (*buffer && bytes <= *cap)
		return 0;
	free(TAKE(*buffer));
	*cap = 0;
	*buffer = malloc(bytes ? bytes : 1);
	if (!*buffer)
		return -ENOMEM;
	*cap = bytes;
	return 0;
}

static int check_frame(const struct format_chunk *h, uint64_t file_bytes_left)
{
	if (h->magic != FORMAT_CHUNK_MAGIC || h->stored_bytes > FORMAT_CHUNK_MAX ||
	    h->raw_bytes > FORMAT_CHUNK_MAX)
		return -EBADMSG;
	if (!(h->flags & FORMAT_ZSTD) && h->stored_bytes != h->raw_bytes)
		return -EBADMSG;
	return h->stored_bytes > file_bytes_left ? -ENODATA : 0;
}

static int unzstd(struct chunk_buffers *b, const struct format_chunk *h)
{
	size_t nr;
	int err;

	err = make_room(&b->raw, &b->raw_cap, h->raw_bytes);
	if (err)
		return err;
	if (!b->zstd)
		b->zstd = ZSTD_createDCtx();
	if (!b->zstd)
		return -ENOMEM;
	nr = ZSTD_decompressDCtx(b->zstd, b->raw, h->raw_bytes, b->stored, h->stored_bytes);
	return ZSTD_isError(nr) || nr != h->raw_bytes ? -EBADMSG : 0;
}

static int unpack(struct chunk_buffers *b, const struct format_chunk *h, uint8_t **ret_payload)
{
	int err;

	if (h->flags & ~(FORMAT_ZSTD | FORMAT_DELTA))
		return -ENOTSUP;
	if (h->flags & FORMAT_ZSTD) {
		err = unzstd(b, h);
		if (err)
			return err;
		*ret_payload = b->raw;
	}
	if (!(h->flags & FORMAT_DELTA))
		return 0;
	return h->type == FORMAT_EVENTS ? delta_decode(*ret_payload, h->raw_bytes) : -EBADMSG;
}

int chunk_reader__get(const struct chunk_reader *c, uint64_t at, struct chunk_buffers *b,
		      struct chunk *ret_chunk)
{
	uint64_t left = at < c->file_bytes ? c->file_bytes - at : 0;
	struct format_chunk h;
	uint8_t *payload;
	int err;

	if (left < sizeof(h))
		return -ENODATA;
	err = read_at(c->fd, at, &h, sizeof(h));
	err = err ? err : check_frame(&h, left - sizeof(h));
	err = err ? err : make_room(&b->stored, &b->stored_cap, h.stored_bytes);
	err = err ? err : read_at(c->fd, at + sizeof(h), b->stored, h.stored_bytes);
	if (err)
		return err;
	if (h.crc != format_chunk_crc(&h, b->stored))
		return -EBADMSG;
	payload = b->stored;
	/* Leaves chunks of unknown types packed: they are skipped. */
	if (h.flags && format_type_known(h.type))
		err = unpack(b, &h, &payload);
	*ret_chunk = (struct chunk){.at = at, .head = h, .payload = payload};
	return err;
}

void chunk_buffers__done(struct chunk_buffers *b)
{
	free(TAKE(b->stored));
	free(TAKE(b->raw));
	ZSTD_freeDCtx(TAKE(b->zstd));
}
