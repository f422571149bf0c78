/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Unwind tables on disk: a header, then the words as they are. A build-id is the target's word, so
 * a table is used only if it was made from the very .eh_frame at hand. A file of the cache that is
 * damaged in any way is as if it were not there.
 */
#include "target/unwind_table.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define CACHE_MAGIC 0x646e777570727067ULL
/* Of the file and of the rules: tables change with either, and with the size of pages. */
#define CACHE_VERSION (1 << 8 | GP_UNWIND_PAGE_SHIFT)
#define WORDS_MAX     (32U << 20)

struct cache_head {
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
	uint64_t fingerprint;
	uint64_t checksum; /* of the words, then mixed with all above */
};

uint64_t unwind_cache_hash(const void *data, size_t bytes)
{
	const unsigned char *p = data;
	uint64_t lanes[4] = {0x9e3779b97f4a7c15ULL, 0xbf58476d1ce4e5b9ULL, 0x94d049bb133111ebULL,
			     0xd6e8feb86659fd93ULL};
	uint64_t words[4], hash = bytes;

	for (; bytes >= sizeof(words); p += sizeof(words), bytes -= sizeof(words)) {
		memcpy(words, p, sizeof(words));
		for (int i = 0; i < 4; i++) {
			lanes[i] = (lanes[i] ^ words[i]) * 0xff51afd7ed558ccdULL;
			lanes[i] ^= lanes[i] >> 32;
		}
	}
	for (int i = 0; i < 4; i++)
		hash = hash_mix(hash ^ lanes[i]);
	memset(words, 0, sizeof(words));
	memcpy(words, p, bytes);
	for (int i = 0; i < 4; i++)
		hash = hash_mix(hash ^ words[i]);
	return hash;
}

static uint64_t checksum(const struct cache_head *head, const uint64_t *words)
{
	struct cache_head h = *head;

	h.checksum = unwind_cache_hash(words, (size_t)head->words_nr * sizeof(*words));
	return unwind_cache_hash(&h, sizeof(h));
}

static int cache_path(const char *dir, const char *build_id, char *path, size_t bytes)
{
	if (!*build_id || strspn(build_id, "0123456789abcdef") != strlen(build_id) ||
	    snprintf(path, bytes, "%s/%s.unwind", dir, build_id) >= (int)bytes)
		return -EINVAL;
	return 0;
}

static int read_all(int fd, void *to, size_t bytes)
{
	char *at = to;

	while (bytes) {
		ssize_t nr = read(fd, at, bytes);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			return -EIO;
		at += nr;
		bytes -= (size_t)nr;
	}
	return 0;
}

int unwind_cache_load(const char *dir, const char *build_id, uint64_t fingerprint,
		      struct unwind_table *ret_table)
{
	CLEANUP(unwind_table__done) struct unwind_table t = {0};
	CLEANUP(cleanup_fd) int fd = -1;
	struct cache_head head;
	char path[PATH_MAX];
	struct stat st;

	if (cache_path(dir, build_id, path, sizeof(path)))
		return -ENOENT;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || read_all(fd, &head, sizeof(head)))
		return -ENOENT;
	if (head.magic != CACHE_MAGIC || head.version != CACHE_VERSION ||
	    head.fingerprint != fingerprint || head.words_nr > WORDS_MAX ||
	    (uint64_t)st.st_size != sizeof(head) + (uint64_t)head.words_nr * sizeof(uint64_t))
		return -ENOENT;
	t = (struct unwind_table){.words_nr = head.words_nr,
				  .rows_nr = head.rows_nr,
				  .rules_nr = head.rules_nr,
				  .first_page = head.first_page,
				  .pages_nr = head.pages_nr,
				  .hard_nr = head.hard_nr,
				  .skipped_nr = head.skipped_nr};
	t.words = malloc((size_t)head.words_nr * sizeof(uint64_t) + 1);
	if (!t.words || read_all(fd, t.words, (size_t)head.words_nr * sizeof(uint64_t)) ||
	    checksum(&head, t.words) != head.checksum || !unwind_table__valid(&t))
		return -ENOENT;
	*ret_table = t;
	t.words = NULL;
	return 0;
}

int unwind_cache_store(const char *dir, const char *build_id, uint64_t fingerprint,
		       const struct unwind_table *t)
{
	struct cache_head head = {.magic = CACHE_MAGIC,
				  .version = CACHE_VERSION,
				  .words_nr = t->words_nr,
				  .rows_nr = t->rows_nr,
				  .rules_nr = t->rules_nr,
				  .first_page = t->first_page,
				  .pages_nr = t->pages_nr,
				  .hard_nr = t->hard_nr,
				  .skipped_nr = t->skipped_nr,
				  .fingerprint = fingerprint};
	char path[PATH_MAX];
	struct file_new f;
	int err = cache_path(dir, build_id, path, sizeof(path));

	if (err)
		return err;
	if (mkdir(dir, 0755) && errno != EEXIST)
		return -errno;
	head.checksum = checksum(&head, t->words);
	err = file_new__open(&f, path);
	if (err)
		return err;
	err = file_write_all(f.fd, &head, sizeof(head));
	if (!err)
		err = file_write_all(f.fd, t->words, (size_t)t->words_nr * sizeof(uint64_t));
	if (!err)
		err = file_new__commit(&f);
	file_new__done(&f);
	return err;
}
