/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A table's file: its words, then a trailer. The file's name is the digest of what the table is
 * built from, so one file's table is never used for another, whatever build-id it claims. A damaged
 * file counts as absent.
 */
#include "inspect/unwind/unwind_cache.h"

#include "base/cache.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "wire.h"

#include <errno.h>
#include <string.h>

#define CACHE_MAGIC 0x32646e7775707067ULL
/* Version of the file and of the rules, combined with the page size: tables depend on all three. */
#define CACHE_VERSION	(2 << 8 | GP_UNWIND_PAGE_SHIFT)
#define WORDS_MAX	(32U << 20)
#define CACHE_BYTES_MAX (WORDS_MAX * sizeof(uint64_t) + sizeof(struct cache_trailer))
/* Limit for all tables together: some sixty libraries as large as PyTorch's. */
#define FOLDER_BYTES_MAX (512 << 20)
#define NAME_END	 ".unwind"

struct cache_trailer {
	uint64_t magic;
	uint32_t version;
	uint32_t words_nr;
	uint32_t rows_nr;
	uint32_t rules_nr;
	uint32_t first_page;
	uint32_t pages_nr;
	uint32_t hard_nr;
	uint32_t reserved;
	uint64_t skipped_nr;
	uint8_t key[DIGEST_BYTES];
	uint8_t words_sum[CHECKSUM_BYTES]; /* keyed with the key */
	uint8_t sum[DIGEST_BYTES];	   /* of everything above */
};

void unwind_cache_key(const void *eh_frame, size_t bytes, uint64_t address,
		      uint8_t ret_key[DIGEST_BYTES])
{
	struct digest d;

	digest__init(&d);
	digest__add_number(&d, CACHE_VERSION);
	digest__add_number(&d, address);
	digest__add(&d, eh_frame, bytes);
	digest__end(&d, ret_key);
}

/* Sets the sums of a trailer whose other members are set. */
static void sum_up(struct cache_trailer *trailer, const uint64_t *words)
{
	struct digest d;

	checksum_bytes(words, (size_t)trailer->words_nr * sizeof(*words), trailer->key,
		       trailer->words_sum);
	digest__init(&d);
	digest__add(&d, trailer, offsetof(struct cache_trailer, sum));
	digest__end(&d, trailer->sum);
}

static void name_of(const uint8_t key[DIGEST_BYTES],
		    char ret_name[DIGEST_TEXT_BYTES + sizeof(NAME_END)])
{
	digest_text(key, ret_name);
	memcpy(ret_name + DIGEST_TEXT_BYTES - 1, NAME_END, sizeof(NAME_END));
}

/* Whether the trailer belongs to the words before it and to this key. */
static bool fits(const struct cache_trailer *trailer, const uint8_t key[DIGEST_BYTES],
		 const uint64_t *words, size_t bytes)
{
	struct cache_trailer right = *trailer;

	if (trailer->magic != CACHE_MAGIC || trailer->version != CACHE_VERSION ||
	    memcmp(trailer->key, key, DIGEST_BYTES) != 0 || trailer->words_nr > WORDS_MAX ||
	    bytes != (size_t)trailer->words_nr * sizeof(*words))
		return false;
	sum_up(&right, words);
	return !memcmp(&right, trailer, sizeof(right));
}

int unwind_cache_load(const char *dir, const uint8_t key[DIGEST_BYTES],
		      struct unwind_table *ret_table)
{
	CLEANUP(cleanup_free) char *data = NULL;
	char name[DIGEST_TEXT_BYTES + sizeof(NAME_END)];
	struct unwind_table t;
	struct cache_trailer trailer;
	size_t bytes;

	name_of(key, name);
	if (cache_read(dir, name, CACHE_BYTES_MAX, &data, &bytes) || bytes < sizeof(trailer))
		return -ENOENT;
	bytes -= sizeof(trailer);
	memcpy(&trailer, data + bytes, sizeof(trailer));
	if (!fits(&trailer, key, (const uint64_t *)data, bytes))
		return -ENOENT;
	t = (struct unwind_table){.words = (uint64_t *)data,
				  .words_nr = trailer.words_nr,
				  .rows_nr = trailer.rows_nr,
				  .rules_nr = trailer.rules_nr,
				  .first_page = trailer.first_page,
				  .pages_nr = trailer.pages_nr,
				  .hard_nr = trailer.hard_nr,
				  .skipped_nr = trailer.skipped_nr};
	if (!unwind_table__valid(&t))
		return -ENOENT;
	data = NULL;
	*ret_table = t;
	return 0;
}

int unwind_cache_store(const char *dir, const uint8_t key[DIGEST_BYTES],
		       const struct unwind_table *t)
{
	static const char *const suffixes[] = {NAME_END};
	struct cache_trailer trailer = {.magic = CACHE_MAGIC,
					.version = CACHE_VERSION,
					.words_nr = t->words_nr,
					.rows_nr = t->rows_nr,
					.rules_nr = t->rules_nr,
					.first_page = t->first_page,
					.pages_nr = t->pages_nr,
					.hard_nr = t->hard_nr,
					.skipped_nr = t->skipped_nr};
	struct cache_part parts[] = {{t->words, (size_t)t->words_nr * sizeof(*t->words)},
				     {&trailer, sizeof(trailer)}};
	char name[DIGEST_TEXT_BYTES + sizeof(NAME_END)];
	int err;

	memcpy(trailer.key, key, DIGEST_BYTES);
	sum_up(&trailer, t->words);
	name_of(key, name);
	err = cache_write(dir, name, 0600, parts, 2);
	if (!err)
		cache_shrink(dir, suffixes, 1, FOLDER_BYTES_MAX);
	return err;
}

int unwind_cache_get(struct elf_file *f, const char *dir, struct unwind_table *ret_table)
{
	uint8_t key[DIGEST_BYTES];
	const unsigned char *data;
	uint64_t address;
	size_t bytes;
	int err;

	if (!dir)
		return unwind_table__build(f, ret_table);
	err = elf_file__section(f, ".eh_frame", &data, &bytes, &address);
	if (err)
		return err;
	unwind_cache_key(data, bytes, address, key);
	if (!unwind_cache_load(dir, key, ret_table))
		return 0;
	err = unwind_table__build(f, ret_table);
	if (!err)
		(void)unwind_cache_store(dir, key, ret_table);
	return err;
}
