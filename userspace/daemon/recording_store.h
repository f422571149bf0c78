/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Keeps the last recordings for clients, in memory or in a folder. The oldest are deleted when all
 * of them take more room than allowed, or there are more than 256. Any thread may call any
 * function.
 */
#ifndef GP_DAEMON_RECORDING_STORE_H
#define GP_DAEMON_RECORDING_STORE_H

#include "base/buf.h"
#include "base/reason.h"

#include <stdbool.h>
#include <stdint.h>

#define STORE_ID_BYTES 48

/* One recording: a descriptor that reads it. Whoever holds it gives it back. */
struct store_item {
	char id[STORE_ID_BYTES];
	int fd;
	uint64_t bytes;
	uint64_t start_realtime_ns, duration_ns;
	uint32_t processes_nr;
	uint64_t events_nr;
	bool on_disk;
	unsigned int holders; /* the shelf's own business */
};

struct recording_store;

/* `folder` NULL: all in memory. What an earlier daemon has left in the folder is on the shelf, too.
 * 0 or -errno with a reason. */
int recording_store__new(const char *folder, uint64_t bytes_max, struct reason *why,
			 struct recording_store **ret_shelf);
void recording_store__free(struct recording_store *s);

/* Puts a recording there; its descriptor becomes the shelf's in any case. 0, or -errno where it
 * could not be written into the folder: it stays in memory then (-ENOMEM, -EFBIG: it is gone). */
int recording_store__put(struct recording_store *s, const struct store_item *item);

/* The one of this id, or NULL; for recording_store__give_back(). */
struct store_item *recording_store__take(struct recording_store *s, const char *id);
void recording_store__give_back(struct recording_store *s, struct store_item *item);

/* All as a JSON object, newest first. */
void recording_store__json(struct recording_store *s, struct buf *out);

/* How many there are, and their bytes in memory and on disk. */
void recording_store__sizes(struct recording_store *s, uint64_t *ret_nr, uint64_t *ret_memory_bytes,
			    uint64_t *ret_disk_bytes);

/* Whether it is written as an id is. */
bool store_is_id(const char *text);

#endif /* GP_DAEMON_RECORDING_STORE_H */
