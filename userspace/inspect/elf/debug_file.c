/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Opens separate debug files. The process chooses the link and the path: the name must have no
 * directories, and a file that does not match is ignored.
 */
#include "inspect/elf/debug_file.h"

#include "base/cleanup.h"
#include "inspect/elf/elf_private.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/banned.h"

#define DEBUG_DIR	"/usr/lib/debug"
#define CHECK_BYTES_MAX (1ULL << 30)

struct link {
	char name[NAME_MAX + 1];
	uint32_t crc;
};

static int open_by_id(const struct elf_file *f, struct elf_file **ret_file)
{
	const char *id = elf_file__build_id(f);
	char path[PATH_MAX];
	int err;

	if (strlen(id) < 3)
		return -ENOENT;
	(void)snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%.2s/%s.debug", id, id + 2);
	err = elf_file__open(path, NULL, ret_file);
	if (err || !strcmp(elf_file__build_id(*ret_file), id))
		return err;
	elf_file__free(*ret_file);
	return -ENOENT;
}

/* Parses a name, a zero, up to three more bytes, and the checksum. */
static int read_link(struct elf_file *f, struct link *ret_link)
{
	const unsigned char *data;
	size_t bytes, name_bytes;
	uint64_t address;
	int err = elf_file__section(f, ".gnu_debuglink", &data, &bytes, &address);

	if (err)
		return err;
	name_bytes = strnlen((const char *)data, bytes);
	if (!name_bytes || name_bytes > NAME_MAX || memchr(data, '/', name_bytes) ||
	    (name_bytes + 4) / 4 * 4 + 4 > bytes)
		return -ENOENT;
	memcpy(ret_link->name, data, name_bytes);
	ret_link->name[name_bytes] = '\0';
	memcpy(&ret_link->crc, data + (name_bytes + 4) / 4 * 4, 4);
	return 0;
}

static bool has_crc(const struct elf_file *f, uint32_t want)
{
	CLEANUP(cleanup_free) unsigned char *block = malloc(1 << 16);
	unsigned long crc = crc32(0, NULL, 0);

	if (!block || f->bytes > CHECK_BYTES_MAX)
		return false;
	for (uint64_t at = 0; at < f->bytes;) {
		uint64_t nr = f->bytes - at < 1 << 16 ? f->bytes - at : 1 << 16;

		if (elf_file__read(f, at, block, nr))
			return false;
		crc = crc32(crc, block, (uInt)nr);
		at += nr;
	}
	return (uint32_t)crc == want;
}

/* The file itself may lie in its debug file's place; it has another checksum. */
static int open_linked(const char *path, const struct link *l, struct elf_file **ret_file)
{
	static const struct {
		const char *before, *after;
	} places[] = {{"", ""}, {"", ".debug/"}, {DEBUG_DIR, ""}};
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!slash || path[0] != '/')
		return -ENOENT;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char at[PATH_MAX];
		int err;

		if (snprintf(at, sizeof(at), "%s%.*s%s%s", places[i].before,
			     (int)(slash + 1 - path), path, places[i].after,
			     l->name) >= (int)sizeof(at))
			continue;
		err = elf_file__open(at, NULL, ret_file);
		if (elf_error_is_ours(err))
			return err;
		if (!err && has_crc(*ret_file, l->crc))
			return 0;
		if (!err)
			elf_file__free(*ret_file);
	}
	return -ENOENT;
}

int debug_file_open(struct elf_file *f, const char *path, struct elf_file **ret_file)
{
	struct link l;
	int err = open_by_id(f, ret_file);

	if (err && !elf_error_is_ours(err))
		err = read_link(f, &l) ? -ENOENT : open_linked(path, &l, ret_file);
	return err;
}
