/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reading the interpreter's structures, for the walks in this folder only. The functions are
 * inlined, so that each walk has its way of reading compiled in.
 */
#ifndef GP_COLLECTOR_PYTHON_PYTHON_READ_H
#define GP_COLLECTOR_PYTHON_PYTHON_READ_H

#include "collector/python/python.h"

#include <stddef.h>
#include <string.h>

#define ADDRESS_MIN 65536ULL
#define ADDRESS_END (1ULL << 47)

/* Lets the kernel copy the bytes. False: they cannot be read. errno stays as it is. */
bool python_checked_read(uint64_t address, void *to, size_t bytes);

/* Returns the bytes at `address`, in place or copied to `buffer`; NULL if they cannot be read. */
static inline __attribute__((always_inline)) const void *
read_target(enum python_reads reads, uint64_t address, size_t bytes, void *buffer)
{
	if (reads == PYTHON_CHECKED)
		return python_checked_read(address, buffer, bytes) ? buffer : NULL;
	if (address % 8 || address - ADDRESS_MIN >= ADDRESS_END - ADDRESS_MIN)
		return NULL;
	return (const void *)(uintptr_t)address;
}

/* Reads the word at an address. False: it cannot be read. */
static inline __attribute__((always_inline)) bool read_word(enum python_reads reads,
							    uint64_t address, uint64_t *ret_word)
{
	uint64_t copy;
	const void *at = read_target(reads, address, sizeof(copy), &copy);

	if (at)
		memcpy(ret_word, at, sizeof(*ret_word));
	return at != NULL;
}

/* The word at an offset of bytes that have been read. */
static inline uint64_t field(const void *chunk, size_t offset)
{
	uint64_t word;

	memcpy(&word, (const char *)chunk + offset, sizeof(word));
	return word;
}

/* Whether a frame is a Python function's. */
static inline bool is_function(const struct gp_python *py, const unsigned char *frame)
{
	return py->frame_owner == GP_PYTHON_NO_FIELD ||
	       frame[py->frame_owner] < GP_PYTHON_OWNER_INTERPRETER;
}

#define PYTHON_TAG_BITS 7ULL /* in references of 3.14's frames */

#define LOCALS_MAX   1024
#define LOCALS_CHUNK 16

/* Adds a frame's variables to a hash. False: they cannot be read. */
static inline __attribute__((always_inline)) bool
python_add_variables(const struct gp_python *py, uint64_t frame, uint64_t code,
		     enum python_reads reads, uint64_t *hash)
{
	uint64_t word, copy[LOCALS_CHUNK], at = frame + py->frame_locals;
	uint32_t nr;

	/* The count is 32 bits in one half of a word. */
	if (!read_word(reads, (code + py->code_locals_nr) & ~7ULL, &word))
		return false;
	nr = (uint32_t)(py->code_locals_nr % 8 ? word >> 32 : word);
	if (nr > LOCALS_MAX)
		return false;
	for (uint32_t done = 0; done < nr; done += LOCALS_CHUNK) {
		uint32_t some = nr - done < LOCALS_CHUNK ? nr - done : LOCALS_CHUNK;
		const void *words = read_target(reads, at + done * 8ULL, some * 8ULL, copy);

		if (!words)
			return false;
		for (uint32_t i = 0; i < some; i++)
			*hash = gp_python_mix(*hash, field(words, i * 8ULL) & ~PYTHON_TAG_BITS);
	}
	return true;
}

#endif /* GP_COLLECTOR_PYTHON_PYTHON_READ_H */
