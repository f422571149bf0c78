/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The sink of a writer. Small writes gather in a block, and a full block is written, compressed if
 * the path ends in .gz. The first error sticks and stops all writing, so a writer may go on to its
 * end and check once.
 */
#include "output/format/output.h"
#include "output/format/output_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "base/file.h"

#define BLOCK_BYTES (128 * 1024)

/* Traces are repetitive: even the fastest level removes nine tenths. */
#define GZIP_LEVEL 1

/* zlib's windowBits for a gzip header around the largest window. */
#define GZIP_WINDOW (15 + 16)

enum sink_kind { SINK_FD, SINK_PATH, SINK_MEMORY };

struct sink {
	enum sink_kind kind;
	int err;
	bool finished;
	int fd;		      /* borrowed: the caller's or file's */
	struct file_new file; /* SINK_PATH */
	z_stream *deflater;   /* NULL: not compressed */
	struct buf memory;    /* SINK_MEMORY */
	char *block;	      /* else: what is not written yet */
	size_t nr;
};

static struct sink *sink_alloc(enum sink_kind kind)
{
	struct sink *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->kind = kind;
	s->fd = -1;
	s->file = FILE_NEW_NONE;
	if (kind == SINK_MEMORY)
		return s;
	s->block = malloc(BLOCK_BYTES);
	if (!s->block) {
		free(s);
		return NULL;
	}
	return s;
}

static int start_deflater(struct sink *s)
{
	s->deflater = calloc(1, sizeof(*s->deflater));
	if (!s->deflater)
		return -ENOMEM;
	if (deflateInit2(s->deflater, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		free(TAKE(s->deflater));
		return -ENOMEM;
	}
	return 0;
}

int sink__new_fd(int fd, struct sink **ret_sink)
{
	struct sink *s = sink_alloc(SINK_FD);

	if (!s)
		return -ENOMEM;
	s->fd = fd;
	*ret_sink = s;
	return 0;
}

int sink__new_fd_gzip(int fd, struct sink **ret_sink)
{
	struct sink *s;
	int err = sink__new_fd(fd, &s);

	if (err)
		return err;
	err = start_deflater(s);
	if (err) {
		sink__free(s);
		return err;
	}
	*ret_sink = s;
	return 0;
}

int sink__new_memory(struct sink **ret_sink)
{
	struct sink *s = sink_alloc(SINK_MEMORY);

	if (!s)
		return -ENOMEM;
	*ret_sink = s;
	return 0;
}

static bool ends_in_gz(const char *path)
{
	size_t bytes = strlen(path);

	return bytes > 3 && !strcmp(path + bytes - 3, ".gz");
}

bool output_path_ends(const char *path, const char *extension)
{
	size_t nr = strlen(path), want = strlen(extension);

	if (ends_in_gz(path))
		nr -= 3;
	return nr > want && !strncmp(path + nr - want, extension, want);
}

int sink__new_path(const char *path, struct sink **ret_sink)
{
	return sink__new_in(NULL, path, ret_sink);
}

int sink__new_in(const struct file_folder *folder, const char *path, struct sink **ret_sink)
{
	struct sink *s = sink_alloc(SINK_PATH);
	int err = s ? 0 : -ENOMEM;

	if (!err && ends_in_gz(path))
		err = start_deflater(s);
	if (!err)
		err = file_new__open_in(&s->file, folder, path);
	if (err) {
		sink__free(s);
		return err;
	}
	s->fd = s->file.fd;
	*ret_sink = s;
	return 0;
}

/* Compresses the bytes and writes them; `how` is Z_NO_FLUSH, or Z_FINISH once at the end. */
static int put_deflated(struct sink *s, const char *data, size_t bytes, int how)
{
	z_stream *z = s->deflater;
	unsigned char out[32 * 1024];

	z->next_in = (unsigned char *)data;
	z->avail_in = (uInt)bytes;
	do {
		int err;

		z->next_out = out;
		z->avail_out = sizeof(out);
		if (deflate(z, how) == Z_STREAM_ERROR)
			return -EIO;
		err = file_write_all(s->fd, out, sizeof(out) - z->avail_out);
		if (err)
			return err;
	} while (!z->avail_out);
	return 0;
}

static int put_block(struct sink *s, const char *data, size_t bytes, bool last)
{
	if (s->deflater)
		return put_deflated(s, data, bytes, last ? Z_FINISH : Z_NO_FLUSH);
	return file_write_all(s->fd, data, bytes);
}

static int write_blocks(struct sink *s, const char *data, size_t bytes)
{
	while (bytes) {
		size_t part = BLOCK_BYTES - s->nr;

		if (part > bytes)
			part = bytes;
		memcpy(s->block + s->nr, data, part);
		s->nr += part;
		data += part;
		bytes -= part;
		if (s->nr == BLOCK_BYTES) {
			int err = put_block(s, s->block, s->nr, false);

			s->nr = 0;
			if (err)
				return err;
		}
	}
	return 0;
}

int sink__write(struct sink *s, const void *data, size_t bytes)
{
	if (!s->err && s->finished)
		s->err = -EINVAL;
	if (s->err || !bytes)
		return s->err;
	if (s->kind == SINK_MEMORY) {
		buf__add(&s->memory, data, bytes);
		s->err = buf__error(&s->memory);
	} else {
		s->err = write_blocks(s, data, bytes);
	}
	return s->err;
}

int sink__drain(struct sink *s, struct buf *b, size_t least)
{
	int err = buf__error(b);

	if (err || b->nr < least)
		return err;
	err = sink__write(s, b->bytes, b->nr);
	buf__clear(b);
	return err;
}

int sink__write_buf(struct sink *s, struct buf *b)
{
	int err = sink__drain(s, b, 0);

	buf__done(b);
	return err;
}

int sink__finish(struct sink *s)
{
	if (s->err || s->finished)
		return s->err;
	s->finished = true;
	if (s->kind == SINK_MEMORY)
		return 0;
	s->err = put_block(s, s->block, s->nr, true);
	s->nr = 0;
	if (!s->err && s->kind == SINK_PATH)
		s->err = file_new__commit(&s->file);
	return s->err;
}

const char *sink__bytes(const struct sink *s, size_t *ret_bytes)
{
	if (ret_bytes)
		*ret_bytes = s->memory.nr;
	return s->memory.bytes ? s->memory.bytes : "";
}

void sink__free(struct sink *s)
{
	if (!s)
		return;
	if (s->kind == SINK_PATH)
		file_new__done(&s->file);
	if (s->deflater)
		(void)deflateEnd(s->deflater);
	free(s->deflater);
	free(s->block);
	buf__done(&s->memory);
	free(s);
}
