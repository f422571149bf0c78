/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The writer's lower half, as chunk.h is the reader's: it knows frames, checksums and compression,
 * not contents. The first error sticks. Private to this room.
 */
#ifndef GP_RECORDING_CHUNK_WRITER_H
#define GP_RECORDING_CHUNK_WRITER_H

#include "base/file.h"
#include "recording/format.h"
#include "recording/recording.h"

#include <stddef.h>
#include <stdint.h>

struct ZSTD_CCtx_s;

struct chunk_writer {
	struct file_new file;
	uint64_t begin_bytes;	    /* what an open file that was handed to us already holds */
	struct recording_room room; /* fn NULL: nobody is asked */
	int err;		    /* the one that sticks, 0: none */
	uint64_t written_bytes;
	uint32_t chunks;
	struct ZSTD_CCtx_s *zstd;
	uint8_t *packed;
	size_t packed_cap;
};

/* Initializes a writer without a file: the caller opens w->file. 0 or -ENOMEM; call
 * chunk_writer__done() either way. */
int chunk_writer__init(struct chunk_writer *w);
void chunk_writer__done(struct chunk_writer *w);

/* Writes the file's header. The file is open. 0 or -errno, which does not stick. */
int chunk_writer__begin(struct chunk_writer *w);

/* Makes `err` stick unless an earlier one does. Returns the one that sticks. */
int chunk_writer__fail(struct chunk_writer *w, int err);

/* Writes a chunk with this payload. `raw_bytes` is its length once unpacked, `flags` (enum
 * format_flags) say how it is packed. 0 or -errno, which sticks. */
int chunk_writer__put(struct chunk_writer *w, enum format_type type, unsigned int flags,
		      const void *stored, size_t stored_bytes, size_t raw_bytes);

/* The same, but packs the payload into one zstd frame where that is shorter. */
int chunk_writer__put_packed(struct chunk_writer *w, enum format_type type, unsigned int flags,
			     const void *raw, size_t bytes);

#endif /* GP_RECORDING_CHUNK_WRITER_H */
