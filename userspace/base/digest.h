/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A cryptographic digest (BLAKE2b with 256 bits, by libsodium): whoever chooses the bytes cannot
 * find two inputs with the same one. The functions of base/hash.h are for tables in memory only.
 * Each add function marks where its input ends, so "a", "bc" and "ab", "c" differ.
 */
#ifndef GP_BASE_DIGEST_H
#define GP_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_BYTES	  32
#define CHECKSUM_BYTES	  16
#define DIGEST_TEXT_BYTES (2 * DIGEST_BYTES + 1)

struct digest {
	_Alignas(64) unsigned char state[384]; /* the library's */
};

/* Begins a digest. It owns nothing and may be left at any time. */
void digest__init(struct digest *d);

/* Adds the number of bytes and the bytes. `data` may be NULL if there are none. */
void digest__add(struct digest *d, const void *data, size_t bytes);

/* Adds one number. */
void digest__add_number(struct digest *d, uint64_t number);

/* Adds a terminated text. */
void digest__add_text(struct digest *d, const char *text);

/* Ends the digest; `d` may be used for another one after digest__init(). */
void digest__end(struct digest *d, uint8_t ret_sum[DIGEST_BYTES]);

/* Tells whether a file of one's own is as it was written (Poly1305), some five times as fast as a
 * digest. Whoever knows the key can make bytes with any checksum: it is no digest. */
void checksum_bytes(const void *data, size_t bytes, const uint8_t key[DIGEST_BYTES],
		    uint8_t ret_sum[CHECKSUM_BYTES]);

/* Writes a digest as lower-case hexadecimal digits, terminated. */
void digest_text(const uint8_t sum[DIGEST_BYTES], char ret_text[DIGEST_TEXT_BYTES]);

#endif /* GP_BASE_DIGEST_H */
