/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A folder of files that this user alone can have written, for what is kept between runs. Nobody
 * else may be able to change the folder, or to put another one in its place; a file of somebody
 * else, one that others may write to, and what is no regular file are as if they were not there.
 * The folder is named by its path in each call: to look it up takes some microseconds.
 */
#ifndef GP_BASE_CACHE_H
#define GP_BASE_CACHE_H

#include "base/reason.h"

#include <stddef.h>
#include <sys/types.h>

/* Bytes that follow one another in a file. */
struct cache_part {
	const void *data;
	size_t bytes;
};

/* Whether the folder is there and safe: 0, or -errno with a reason; -EPERM if somebody else could
 * change it, its owner or a link in its path. */
int cache_check(const char *folder, struct reason *why);

/* Reads the file `name` (without a slash) of at most max_bytes. *ret_data is the caller's to free.
 * 0 or -errno, -EPERM if somebody else could have written it. */
int cache_read(const char *folder, const char *name, size_t max_bytes, char **ret_data,
	       size_t *ret_bytes);

/* Replaces the file `name`, or makes it, with this mode: readers see the old or the new one. It
 * belongs to the effective user, under sudo too. 0 or -errno; on failure nothing is left behind. */
int cache_write(const char *folder, const char *name, mode_t mode, const struct cache_part *parts,
		size_t nr);

/* Removes the least recently written files of the folder whose names end in one of the `nr`
 * suffixes, until those left have at most max_bytes together. */
void cache_shrink(const char *folder, const char *const *suffixes, size_t nr, off_t max_bytes);

#endif /* GP_BASE_CACHE_H */
