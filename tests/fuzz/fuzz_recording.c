/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads any bytes as a recording. Where the first byte says so, checksums and indexes are made
 * right first: else the fuzzer would see little behind them.
 */
#include "recording/format.h"
#include "recording/merge.h"
#include "recording/recording.h"

#include "base/file.h"
#include "fuzz/fuzz_seed.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

static volatile uint64_t seen; /* so that every byte is really read */

static int read_event(const void *event, size_t bytes, void *arg)
{
	const uint8_t *p = event;

	for (size_t i = 0; i < bytes; i++)
		seen += p[i];
	return 0;
}

static void read_text(const char *text)
{
	seen += strlen(text);
}

static void read_stacks(const struct recording *r)
{
	for (uint32_t id = 0; id < 1000; id++) {
		uint32_t flags;
		size_t nr;
		const uint32_t *frames = recording__stack(r, id, &nr, &flags);

		for (size_t i = 0; i < nr; i++) {
			struct recording_frame f = recording__frame(r, frames[i]);

			read_text(f.file);
			read_text(f.function);
			read_text(f.module);
			seen += f.line + flags + f.inlined;
		}
	}
}

static void read_all(struct recording *r)
{
	const char *key, *value;
	uint64_t a, b, c;

	for (size_t i = 0; i < recording__metas(r); i++) {
		recording__meta_at(r, i, &key, &value);
		read_text(key);
		read_text(value);
	}
	for (size_t i = 0; i < recording__processes(r); i++) {
		read_text(recording__process_at(r, i)->comm);
		read_text(recording__process_at(r, i)->cmdline);
	}
	for (uint32_t id = 0; id < 1000; id++) {
		read_text(recording__name(r, id, &value));
		read_text(value);
	}
	for (size_t i = 0; i < recording__losses(r); i++)
		read_text(recording__loss_at(r, i, &a));
	read_stacks(r);
	recording__window(r, &a, &b, &c);
	/* It was checked when it was opened. */
	if (recording__each_event(r, read_event, NULL))
		abort();
}

static void make_right(uint8_t *data, size_t size)
{
	struct format_header h = {.version = FORMAT_VERSION, .wire_version = GP_WIRE_VERSION};
	size_t at = sizeof(h);
	uint32_t index = 0;

	if (size < sizeof(h))
		return;
	memcpy(h.magic, FORMAT_MAGIC, FORMAT_MAGIC_BYTES);
	h.crc = (uint32_t)crc32(0, (const Bytef *)&h, offsetof(struct format_header, crc));
	memcpy(data, &h, sizeof(h));
	while (size - at >= sizeof(struct format_chunk)) {
		struct format_chunk c;

		memcpy(&c, data + at, sizeof(c));
		if (c.stored_bytes > size - at - sizeof(c))
			break;
		c.magic = FORMAT_CHUNK_MAGIC;
		c.index = index++;
		c.crc = format_chunk_crc(&c, data + at + sizeof(c));
		memcpy(data + at, &c, sizeof(c));
		at += sizeof(c) + c.stored_bytes;
	}
}

/* A recording of two frames and one stack; make_right() does the rest. */
static void seed_stacks(int argc, char **argv)
{
	struct {
		uint8_t rule; /* make it right */
		uint8_t header[sizeof(struct format_header)];
		struct format_chunk frames;
		struct format_frame frame;
		uint32_t file_bytes, file, function_bytes, function;
		struct format_chunk natives;
		struct format_native_frame native;
		uint32_t texts_bytes[4]; /* all empty */
		struct format_chunk stacks;
		struct format_stack stack;
		uint32_t ids[3];
	} __attribute__((packed)) s = {
		.rule = 1,
		.frames = {.type = FORMAT_FRAMES, .stored_bytes = 24, .raw_bytes = 24},
		.frame = {.id = 1, .line = 41},
		.file_bytes = 4,
		.file = 0x79702e61,
		.function_bytes = 4,
		.function = 0x6e69616d,
		.natives = {.type = FORMAT_NATIVE_FRAMES, .stored_bytes = 40, .raw_bytes = 40},
		.native = {.id = 2, .kind = RECORDING_FRAME_NATIVE, .address = 4096},
		.stacks = {.type = FORMAT_STACKS, .stored_bytes = 24, .raw_bytes = 24},
		.stack = {.id = 1, .flags = GP_STACK_TRUNCATED, .nr = 3},
		.ids = {1, 2, 1},
	};

	fuzz_seed(argc, argv, "stacks", (const void *)&s, sizeof(s));
}

/* With itself: refused, or the half of a process that nothing describes. */
static void merge(struct recording *r)
{
	struct recording *const parts[] = {r, r};
	struct recording_writer *w;
	struct reason why;

	if (recording_writer__new("/dev/null", &why, &w))
		abort();
	(void)recording_merge(parts, 2, NULL, w, &why);
	recording_writer__free(w);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	CLEANUP(cleanup_free) char *text = NULL, *seed = NULL;
	size_t bytes;

	/* From the root of the repository, as `make check-fuzz` does. */
	if (file_read("tests/data/v1.gpuprof", 1 << 20, &text, &bytes))
		abort();
	seed = malloc(bytes + 1);
	if (!seed)
		abort();
	memcpy(seed + 1, text, bytes);
	seed[0] = 0;
	fuzz_seed(*argc, *argv, "as-it-is", seed, bytes + 1);
	seed[0] = 1;
	fuzz_seed(*argc, *argv, "made-right", seed, bytes + 1);
	seed[0] = 3;
	fuzz_seed(*argc, *argv, "merged", seed, bytes + 1);
	seed_stacks(*argc, *argv);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;
	char path[64];
	struct recording *r;
	struct reason why;
	int fd;

	if (!size)
		return 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	copy = malloc(size);
	if (fd < 0 || !copy)
		abort();
	memcpy(copy, data + 1, size - 1);
	if (data[0] & 1)
		make_right(copy, size - 1);
	if (file_write_all(fd, copy, size - 1))
		abort();
	free(copy);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!recording__open(path, &why, &r)) {
		read_all(r);
		if (data[0] & 2)
			merge(r);
		recording__free(r);
	}
	(void)close(fd);
	return 0;
}
