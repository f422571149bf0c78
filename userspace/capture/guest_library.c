/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector's library as a file, for processes that CUDA is to load it into. It stays, like the
 * plans beside it; its name says which one it is, and its content is compared each time.
 */
#include "capture/guest.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

extern const unsigned char collector_so_start[], collector_so_end[];

static bool is_ours(const char *path, mode_t type)
{
	struct stat st;

	return !lstat(path, &st) && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static bool is_there(const char *path, size_t bytes)
{
	CLEANUP(cleanup_free) char *text = NULL;
	size_t nr;

	return is_ours(path, S_IFREG) && !file_read(path, bytes, &text, &nr) && nr == bytes &&
	       !memcmp(text, collector_so_start, bytes);
}

static int write_library(const char *path, size_t bytes)
{
	struct file_new f;
	int err = file_new__open(&f, path);

	if (err)
		return err;
	err = file_write_all(f.fd, collector_so_start, bytes);
	if (!err && fchmod(f.fd, 0755))
		err = -errno;
	if (!err)
		err = file_new__commit(&f);
	file_new__done(&f);
	return err;
}

int guest_write_library(const char *folder, struct reason *why, char **ret_path)
{
	size_t bytes = (size_t)(collector_so_end - collector_so_start);
	unsigned long long hash = hash_bytes(collector_so_start, bytes);
	CLEANUP(cleanup_free) char *path = NULL;
	int err;

	if (!is_ours(folder, S_IFDIR))
		return reason_set(why, -EPERM, "'%s' is not a folder that only you may write to",
				  folder);
	if (asprintf(&path, "%s/libgpuprof-cupti-%016llx.so", folder, hash) < 0) {
		path = NULL;
		return reason_set(why, -ENOMEM, "out of memory");
	}
	err = is_there(path, bytes) ? 0 : write_library(path, bytes);
	if (err)
		return reason_set(why, err, "cannot write '%s': %s", path, strerror(-err));
	*ret_path = TAKE(path);
	return 0;
}
