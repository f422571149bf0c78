/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads one chunk of a .gpuprof file, checks and unpacks it. This is the reader's lower half: it
 * knows frames and checksums, not contents.
 */
#ifndef GP_RECORDING_CHUNK_H
#define GP_RECORDING_CHUNK_H

#include "base/reason.h"
#include "recording/format.h"

#include <stddef.h>
#include <stdint.h>

struct ZSTD_DCtx_s;

struct chunk_reader {
	int fd;
	uint64_t file_bytes; /* at opening; what is appended later is ignored */
};

/* Memory that chunks are read into, reused from one chunk to the next. All zero is empty. */
struct chunk_buffers {
	uint8_t *stored;
	size_t stored_cap;
	uint8_t *raw;
	size_t raw_cap;
	struct ZSTD_DCtx_s *zstd;
};

struct chunk {
	uint64_t at; /* of its header, in the file */
	struct format_chunk head;
	/* head.raw_bytes, aligned for any event; lies in the buffers until their next use */
	const uint8_t *payload;
};

/* Opens the file and checks its header. 0, -EINVAL (no recording), -ENOTSUP (of a later version) or
 * another -errno, each with a reason. */
int chunk_reader__open(struct chunk_reader *c, const char *path, struct reason *why);
void chunk_reader__done(struct chunk_reader *c);

/* Reads the chunk at file offset `at`. 0, -ENODATA (the file ends within it), -EBADMSG (damaged),
 * -ENOTSUP (flags of a later version), -ENOMEM or another -errno. */
int chunk_reader__get(const struct chunk_reader *c, uint64_t at, struct chunk_buffers *b,
		      struct chunk *ret_chunk);

void chunk_buffers__done(struct chunk_buffers *b);

#endif /* GP_RECORDING_CHUNK_H */
