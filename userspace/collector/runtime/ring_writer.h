/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The writing end of the collector's ring (bpf/wire_ring.h). Any thread may write, and nobody ever
 * waits. The bytes between head and the reader's tail plus the ring's size are always zero, because
 * the reader clears what it has read. So a slot is "not ready" until its writer says otherwise.
 */
#ifndef GP_COLLECTOR_RUNTIME_RING_WRITER_H
#define GP_COLLECTOR_RUNTIME_RING_WRITER_H

#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_PAGE_BYTES	    4096
#define RING_DATA_BYTES	    (8U << 20)
#define RING_DATA_MIN_BYTES 4096

struct ring_writer {
	struct gp_ring_page *page;
	unsigned char *data;
	uint32_t data_bytes; /* own copy: the process may overwrite the page */
	int fd;
	/* The memfd's: the process may close `fd` and reuse its number. */
	uint64_t device, inode;
};

/* Makes and maps the memfd, sealed against shrinking. data_bytes is a power of two, at least
 * RING_DATA_MIN_BYTES. 0, or -errno with *w as before. */
int ring_writer__open(struct ring_writer *w, uint32_t data_bytes);
/* Allocates and maps all of the ring's memory, which takes some milliseconds. Otherwise a full
 * control group would kill the process at a later write, and the first write to each page would
 * cost a fault, which in a virtual machine may take longer than an op. 0 or -errno. */
int ring_writer__populate(struct ring_writer *w);
/* Closes the descriptor if it is still the ring's; the mapping stays. */
void ring_writer__close_fd(struct ring_writer *w);
/* Unmaps and closes. No thread may be writing. Fine on a closed ring. */
void ring_writer__close(struct ring_writer *w);

/* Reserves room for an event of `bytes` (a multiple of 8) and stores its length in the slot. False
 * if there is no room, which is counted in page->lost. */
bool ring_writer__reserve(struct ring_writer *w, size_t bytes, uint64_t *ret_position);
/* Copies part of the event into its slot; `at` counts from the event's first byte. */
void ring_writer__fill(struct ring_writer *w, uint64_t position, size_t at, const void *data,
		       size_t bytes);
/* Marks the event as complete. */
void ring_writer__commit(struct ring_writer *w, uint64_t position);

/* Reserves, fills and commits. False if there was no room. */
bool ring_writer__write(struct ring_writer *w, const void *event, size_t bytes);

/* Counts a callback that took `ns` in page->timed_ns and timed_nr. */
void ring_writer__timed(struct ring_writer *w, uint64_t ns);

/* Adds `nr` to page->losses[what]. */
void ring_writer__count(struct ring_writer *w, enum gp_loss what, uint64_t nr);

#endif /* GP_COLLECTOR_RUNTIME_RING_WRITER_H */
