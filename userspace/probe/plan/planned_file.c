/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Opens handles with inspect/access/process_file.h: a FIFO or device in the file's place neither
 * blocks nor takes effect.
 */
#include "probe/plan/planned_file.h"

#include "inspect/access/process_file.h"

#include <errno.h>
#include <unistd.h>

bool planned_file_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int planned_file__open(const char *path, const struct stat *as, struct planned_file *ret_file)
{
	struct stat st;

	ret_file->fd = process_file_handle(path, &st);
	if (ret_file->fd < 0)
		return ret_file->fd;
	process_file_handle_path(ret_file->fd, ret_file->path);
	return !as || planned_file_is_same(&st, as) ? 0 : -ESTALE;
}

void planned_file__done(struct planned_file *f)
{
	if (f->fd >= 0)
		(void)close(f->fd);
	f->fd = -1;
}
