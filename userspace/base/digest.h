/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A cryptographic digest (BLAKE2b with 256 bits, by libsodium): whoever chooses the input cannot
 * find two inputs with the same digest. Use base/hash.h for tables in memory only. Each add
 * function marks the end of its input, so "a", "bc" and "ab", "c" have different digests.
 */
#ifndef GP_BASE_DIGEST_H
#define GP_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_BYTES	  32
#define CHECKSUM_BYTES	  16
#define DIGEST_TEXT_BYTES (2 * DIGEST_BYTES + 1)

struct digest {
	_Alignas(64) unsigned char state[384]; /* libsodium's own state */
};

/* Begins a digest. It owns nothing and can be abandoned at any time. */
void digest__init(struct digest *d);

/* Adds the length and the bytes. `data` may be NULL if `bytes` is 0. */
void digest__add(struct digest *d, const void *data, size_t bytes);

/* Adds one number. */
void digest__add_number(struct digest *d, uint64_t number);

/* Adds a zero-terminated text. */
void digest__add_text(struct digest *d, const char *text);

/* Writes the digest. digest__init() makes `d` usable again. */
void digest__end(struct digest *d, uint8_t ret_sum[DIGEST_BYTES]);

/* Computes a checksum (Poly1305) that detects damage to gpuprof's own files, some five times as
 * fast as a digest. It is not a digest: whoever knows the key can construct bytes with any
 * checksum. */
void checksum_bytes(const void *data, size_t bytes, const uint8_t key[DIGEST_BYTES],
		    uint8_t ret_sum[CHECKSUM_BYTES]);

/* Writes a digest as lower-case hexadecimal digits, zero-terminated. */
void digest_text(const uint8_t sum[DIGEST_BYTES], char ret_text[DIGEST_TEXT_BYTES]);

#endif /* GP_BASE_DIGEST_H */
