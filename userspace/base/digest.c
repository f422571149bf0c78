/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * libsodium: ISC, no dependency of its own, its interface has been stable for ten years, and
 * BLAKE2b needs no special instructions to be about as fast as a simple hash.
 */
#include "base/digest.h"

#include <sodium.h>
#include <string.h>

_Static_assert(sizeof(crypto_generichash_state) <= sizeof(((struct digest *)0)->state) &&
		       _Alignof(crypto_generichash_state) <= _Alignof(struct digest),
	       "struct digest holds the library's state");

static crypto_generichash_state *state_of(struct digest *d)
{
	return (crypto_generichash_state *)d->state;
}

void digest__init(struct digest *d)
{
	/* It chooses the fastest code for this processor, once; without that it works too. */
	int ignored = sodium_init();

	(void)ignored;
	(void)crypto_generichash_init(state_of(d), NULL, 0, DIGEST_BYTES);
}

void digest__add_number(struct digest *d, uint64_t number)
{
	(void)crypto_generichash_update(state_of(d), (const unsigned char *)&number,
					sizeof(number));
}

void digest__add(struct digest *d, const void *data, size_t bytes)
{
	digest__add_number(d, bytes);
	if (bytes)
		(void)crypto_generichash_update(state_of(d), data, bytes);
}

void digest__add_text(struct digest *d, const char *text)
{
	digest__add(d, text, strlen(text));
}

void digest__end(struct digest *d, uint8_t ret_sum[DIGEST_BYTES])
{
	(void)crypto_generichash_final(state_of(d), ret_sum, DIGEST_BYTES);
}

void checksum_bytes(const void *data, size_t bytes, const uint8_t key[DIGEST_BYTES],
		    uint8_t ret_sum[CHECKSUM_BYTES])
{
	_Static_assert(crypto_onetimeauth_KEYBYTES == DIGEST_BYTES, "a digest is a key");
	_Static_assert(crypto_onetimeauth_BYTES == CHECKSUM_BYTES, "what it makes");
	int ignored = sodium_init();

	(void)ignored;
	(void)crypto_onetimeauth(ret_sum, data, bytes, key);
}

void digest_text(const uint8_t sum[DIGEST_BYTES], char ret_text[DIGEST_TEXT_BYTES])
{
	(void)sodium_bin2hex(ret_text, DIGEST_TEXT_BYTES, sum, DIGEST_BYTES);
}
