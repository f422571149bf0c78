/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One of the recordings of a capture, made and freed.
 */
#include "capture/recordings/segment.h"

#include <errno.h>
#include <stdlib.h>

int segment__new(const struct file_folder *folder, const char *path, struct reason *why,
		 struct segment **ret_segment)
{
	struct segment *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return reason_set(why, -ENOMEM, "out of memory");
	err = recording_writer__new_in(folder, path, why, &s->writer);
	if (err) {
		free(s);
		return err;
	}
	*ret_segment = s;
	return 0;
}

void segment__free(struct segment *s)
{
	if (!s)
		return;
	recording_writer__free(s->writer);
	bits__done(&s->names);
	bits__done(&s->frames);
	bits__done(&s->stacks);
	bits__done(&s->inputs);
	hash__done(&s->processes);
	hash__done(&s->threads);
	free(s);
}
