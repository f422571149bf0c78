/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A folder of files, kept between runs, that only this user can have written. The functions refuse
 * a folder that others could change or replace. They ignore files of other users, files that others
 * may write, and anything but regular files. Each call takes the folder's path: the lookup costs
 * some microseconds.
 */
#ifndef GP_BASE_CACHE_H
#define GP_BASE_CACHE_H

#include "base/reason.h"

#include <stddef.h>
#include <sys/types.h>

/* One part of a file's content. */
struct cache_part {
	const void *data;
	size_t bytes;
};

/* Checks that the folder exists and is safe. 0, or -errno with a reason; -EPERM if its owner or a
 * link in its path lets somebody else change it. */
int cache_check(const char *folder, struct reason *why);

/* Reads the file `name` (without a slash) of at most max_bytes. *ret_data is the caller's to free.
 * 0 or -errno, -EPERM if somebody else could have written it. */
int cache_read(const char *folder, const char *name, size_t max_bytes, char **ret_data,
	       size_t *ret_bytes);

/* Creates or replaces the file `name` with this mode; readers see the old or the new one. It
 * belongs to the effective user, under sudo too. 0 or -errno; a failure leaves nothing behind. */
int cache_write(const char *folder, const char *name, mode_t mode, const struct cache_part *parts,
		size_t nr);

/* Removes the folder's least recently written files whose names end in one of the `nr` suffixes,
 * until the rest have at most max_bytes together. */
void cache_shrink(const char *folder, const char *const *suffixes, size_t nr, off_t max_bytes);

#endif /* GP_BASE_CACHE_H */
