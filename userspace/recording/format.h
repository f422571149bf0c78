/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The bytes of a .gpuprof file, for writer and reader. FORMAT.md is the specification. All numbers
 * are little endian; structures have explicit padding only.
 */
#ifndef GP_RECORDING_FORMAT_H
#define GP_RECORDING_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "recordings are little endian: this machine needs swaps in writer.c and reader.c"
#endif

#define FORMAT_MAGIC	   "\x89gpuprof"
#define FORMAT_MAGIC_BYTES 8
#define FORMAT_VERSION	   1

struct format_header {
	uint8_t magic[FORMAT_MAGIC_BYTES];
	uint32_t version;      /* FORMAT_VERSION */
	uint32_t wire_version; /* GP_WIRE_VERSION of the events */
	uint32_t reserved;     /* 0 */
	uint32_t crc;	       /* zlib's crc32 of the bytes before it */
};

#define FORMAT_CHUNK_MAGIC 0x6b6e6863U /* "chnk" */

/* More than this in one chunk, stored or raw, is damage. */
#define FORMAT_CHUNK_MAX (64U << 20)

enum format_type {
	FORMAT_META = 1,
	FORMAT_PROCESS = 2,
	FORMAT_NAMES = 3,
	FORMAT_EVENTS = 4,
	FORMAT_LOSSES = 5,
	FORMAT_WINDOW = 6,
	FORMAT_END = 7,
	FORMAT_FRAMES = 8,
	FORMAT_STACKS = 9,
	FORMAT_NATIVE_FRAMES = 10,
	FORMAT_FRAME_OPS = 16,
	FORMAT_FRAME_LINES = 24,
	FORMAT_FIRST_LINES = 26,
};

/* Whether chunks of this type are read; others are skipped. */
static inline bool format_type_known(uint16_t type)
{
	return (type >= FORMAT_META && type <= FORMAT_NATIVE_FRAMES) || type == FORMAT_FRAME_OPS ||
	       type == FORMAT_FRAME_LINES || type == FORMAT_FIRST_LINES;
}

enum format_flags {
	FORMAT_ZSTD = 1,  /* the payload is one zstd frame of raw_bytes */
	FORMAT_DELTA = 2, /* what it unpacks to, events, are differences: see delta.h */
};

/* The packed chunks that hold no events have at most so many raw bytes together. The reader unpacks
 * events one chunk at a time and keeps everything else in memory. */
#define FORMAT_PACKED_MAX (32U << 20)

struct format_chunk {
	uint32_t magic;
	uint16_t type;	       /* enum format_type */
	uint16_t flags;	       /* enum format_flags */
	uint32_t stored_bytes; /* of the payload in the file */
	uint32_t raw_bytes;    /* of it once unpacked */
	uint32_t index;	       /* 0, 1, 2, ... */
	uint32_t crc;	       /* zlib's crc32 of the 20 bytes before it and the stored payload */
};

/* Precedes `nr` events of `bytes` each. */
struct format_run {
	uint32_t bytes; /* a multiple of 8, at least sizeof(struct gp_ev_head) */
	uint32_t nr;	/* at least 1 */
};

#define FORMAT_EVENT_MAX 65528U

/* FORMAT_PROCESS; two texts follow: comm, cmdline. */
struct format_process {
	uint32_t index;
	int32_t pid;
	int32_t rank;
	int32_t world_size;
	uint64_t start_boot_ns;
};

/* FORMAT_FRAMES; two texts follow: file, function. */
struct format_frame {
	uint32_t id;
	uint32_t line;
};

/* FORMAT_NATIVE_FRAMES; four texts follow: module, build id, function, file. */
struct format_native_frame {
	uint32_t id;
	uint32_t kind; /* enum recording_frame_kind, not Python's */
	uint64_t address;
	uint32_t line;
	uint32_t reserved;
};

/* FORMAT_FRAME_OPS */
struct format_frame_op {
	uint32_t frame;
	uint32_t name;
	uint32_t scope; /* enum gp_op_scope */
};

/* FORMAT_FRAME_LINES; `nr` places follow, innermost first: u32 line, then two texts, function and
 * file. */
struct format_frame_lines {
	uint32_t frame;
	uint32_t nr; /* from 1 to RECORDING_FRAME_LINES */
};

/* FORMAT_FIRST_LINES */
struct format_first_line {
	uint32_t frame;
	uint32_t line;
};

/* FORMAT_STACKS; `nr` frame ids follow, innermost first. */
struct format_stack {
	uint32_t id;
	uint32_t flags; /* enum gp_stack_flags */
	uint32_t nr;
};

/* FORMAT_WINDOW */
struct format_window {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t start_realtime_ns;
};

/* FORMAT_END */
struct format_end {
	uint64_t events; /* in the whole recording */
};

_Static_assert(sizeof(struct format_header) == 24, "file header");
_Static_assert(sizeof(struct format_chunk) == 24, "chunk header");
_Static_assert(sizeof(struct format_run) == 8, "run header");
_Static_assert(sizeof(struct format_process) == 24, "process");
_Static_assert(sizeof(struct format_native_frame) == 24, "native frame");

/* Checksum of a chunk: its header up to crc, then the stored payload. */
uint32_t format_chunk_crc(const struct format_chunk *c, const void *stored);

#endif /* GP_RECORDING_FORMAT_H */
