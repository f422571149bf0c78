/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Merges recordings in memory into a file, in a thread.
 */
#ifndef GP_CLI_RECORD_FLIGHT_DUMP_H
#define GP_CLI_RECORD_FLIGHT_DUMP_H

#include "base/place.h"
#include "base/reason.h"

#include <stdbool.h>
#include <stdint.h>

struct flight_dump;

/* Of the path, a file of its last name in the folder, which is borrowed. `skipped_nr`: triggers
 * that wrote nothing, for the counter of that name. 0 or -errno with a reason. */
int flight_dump__new(const struct file_folder *folder, const char *path, uint64_t skipped_nr,
		     struct reason *why, struct flight_dump **ret_dump);
/* Waits for the thread; NULL is none. */
void flight_dump__free(struct flight_dump *d);

/* The recording in this file, which stays the caller's, is one of them. 0 or -errno with a reason.
 */
int flight_dump__add(struct flight_dump *d, int fd, struct reason *why);

/* The thread begins. 0 or -errno with a reason. */
int flight_dump__start(struct flight_dump *d, struct reason *why);
bool flight_dump__is_done(const struct flight_dump *d);

/* Waits for the thread and frees. 0 and the file's name, to be freed; or -errno with a reason. */
int flight_dump__finish(struct flight_dump *d, struct reason *why, char **ret_path);

#endif /* GP_CLI_RECORD_FLIGHT_DUMP_H */
