/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes several recordings as one file.
 */
#include "cli/view/merged.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

int merged__open(struct merged *m, const char *path, struct reason *why)
{
	struct recording *rec;
	int err = recording__open(path, why, &rec);

	if (err)
		return err;
	if (!vec_push(&m->parts, rec))
		return 0;
	recording__free(rec);
	return reason_set(why, -ENOMEM, "out of memory");
}

int merged__write(const struct merged *m, const struct file_folder *folder, const char *path,
		  struct reason *why)
{
	CLEANUP(cleanup_writer) struct recording_writer *w = NULL;
	int err = recording_writer__new_in(folder, path, why, &w);

	err = err ? err : recording_merge(m->parts.items, m->parts.nr, m->clocks, w, why);
	if (err)
		return err;
	if (m->counter)
		err = recording_writer__loss(w, m->counter, m->count);
	err = err ? err : recording_writer__finish(w);
	err = err ? err : recording_writer__place(w);
	return err ? reason_set(why, err, "cannot write '%s': %s", path, strerror(-err)) : 0;
}

void merged__done(struct merged *m)
{
	for (size_t i = 0; i < m->parts.nr; i++)
		recording__free(m->parts.items[i]);
	vec_done(&m->parts);
}
