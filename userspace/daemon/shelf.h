/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The last recordings, for those who want to have one: in memory, or in a folder. The oldest go
 * where they would take more room than they may, or there are more than 256. Every function may be
 * called by any thread.
 */
#ifndef GP_DAEMON_SHELF_H
#define GP_DAEMON_SHELF_H

#include "base/buf.h"
#include "base/reason.h"

#include <stdbool.h>
#include <stdint.h>

#define SHELF_ID_BYTES 48

/* One recording: a descriptor that reads it. Whoever holds it gives it back. */
struct shelf_item {
	char id[SHELF_ID_BYTES];
	int fd;
	uint64_t bytes;
	uint64_t start_realtime_ns, duration_ns;
	uint32_t processes_nr;
	uint64_t events_nr;
	bool on_disk;
	unsigned int holders; /* the shelf's own business */
};

struct shelf;

/* `folder` NULL: all in memory. What an earlier daemon has left in the folder is on the shelf, too.
 * 0 or -errno with a reason. */
int shelf__new(const char *folder, uint64_t bytes_max, struct reason *why,
	       struct shelf **ret_shelf);
void shelf__free(struct shelf *s);

/* Puts a recording there; its descriptor becomes the shelf's in any case. 0, or -errno where it
 * could not be written into the folder: it stays in memory then (-ENOMEM, -EFBIG: it is gone). */
int shelf__put(struct shelf *s, const struct shelf_item *item);

/* The one of this id, or NULL; for shelf__give_back(). */
struct shelf_item *shelf__take(struct shelf *s, const char *id);
void shelf__give_back(struct shelf *s, struct shelf_item *item);

/* All as a JSON object, newest first. */
void shelf__json(struct shelf *s, struct buf *out);

/* How many there are, and their bytes in memory and on disk. */
void shelf__sizes(struct shelf *s, uint64_t *ret_nr, uint64_t *ret_memory_bytes,
		  uint64_t *ret_disk_bytes);

/* Whether it is written as an id is. */
bool shelf_is_id(const char *text);

#endif /* GP_DAEMON_SHELF_H */
