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

/* One recording: a descriptor that reads it. Its holder gives it back. */
struct store_item {
	char id[STORE_ID_BYTES];
	int fd;
	uint64_t bytes;
	uint64_t start_realtime_ns, duration_ns;
	uint32_t processes_nr;
	uint64_t events_nr;
	bool on_disk;
	unsigned int holders; /* private to the store */
};

struct recording_store;

/* `folder` NULL: keeps all in memory. Recordings that an earlier daemon left in the folder are in
 * the store, too. 0 or -errno with a reason. */
int recording_store__new(const char *folder, uint64_t bytes_max, struct reason *why,
			 struct recording_store **ret_shelf);
void recording_store__free(struct recording_store *s);

/* Adds a recording; its descriptor is the store's in any case. 0, or -errno where it could not be
 * written into the folder: it then stays in memory (-ENOMEM, -EFBIG: it is dropped). */
int recording_store__put(struct recording_store *s, const struct store_item *item);

/* The recording with this id, or NULL. To be given back by recording_store__give_back(). */
struct store_item *recording_store__take(struct recording_store *s, const char *id);
void recording_store__give_back(struct recording_store *s, struct store_item *item);

/* Appends the list as a JSON object, newest first. */
void recording_store__json(struct recording_store *s, struct buf *out);

/* The number of recordings, and their bytes in memory and on disk. */
void recording_store__sizes(struct recording_store *s, uint64_t *ret_nr, uint64_t *ret_memory_bytes,
			    uint64_t *ret_disk_bytes);

/* Whether the text has the form of an id. */
bool store_is_id(const char *text);

#endif /* GP_DAEMON_RECORDING_STORE_H */
