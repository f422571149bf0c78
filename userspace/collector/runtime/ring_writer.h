/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The writing end of the collector's ring (wire.h). Any thread may write; nobody ever waits. What
 * lies between head and the reader's tail plus the ring's size is always zero, because the reader
 * clears what it has read: so a slot is "not ready" until its writer says otherwise.
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
	uint32_t data_bytes; /* own copy: the page may be scribbled on */
	int fd;
	/* Of the memfd: the target may close `fd` and use its number again. */
	uint64_t device, inode;
};

/* Makes and maps the memfd, sealed against shrinking. data_bytes is a power of two, at least
 * RING_DATA_MIN_BYTES. 0, or -errno with *w as before. */
int ring_writer__open(struct ring_writer *w, uint32_t data_bytes);
/* Sets all its memory aside and maps it, which takes some milliseconds: without it a full cgroup
 * would kill the target at some later write, and each page's first write would cost the thread that
 * does it a fault, which in a virtual machine may take longer than an op. 0 or -errno. */
int ring_writer__populate(struct ring_writer *w);
/* Closes the descriptor, if it still is the ring's; the mapping stays. */
void ring_writer__close_fd(struct ring_writer *w);
/* Unmaps and closes. No thread may still write. Fine on a closed one. */
void ring_writer__close(struct ring_writer *w);

/* Sets room aside for an event of `bytes` (a multiple of 8) and says in its slot how long it is.
 * False, and counted in page->lost, if there is none. */
bool ring_writer__reserve(struct ring_writer *w, size_t bytes, uint64_t *ret_position);
/* Copies part of the event to its place; `at` counts from the event's first byte. */
void ring_writer__fill(struct ring_writer *w, uint64_t position, size_t at, const void *data,
		       size_t bytes);
/* The event is complete. */
void ring_writer__commit(struct ring_writer *w, uint64_t position);

/* All three. */
bool ring_writer__write(struct ring_writer *w, const void *event, size_t bytes);

/* Adds a callback that took so long to page->timed_ns. */
void ring_writer__timed(struct ring_writer *w, uint64_t ns);

/* Adds to page->losses. */
void ring_writer__count(struct ring_writer *w, enum gp_loss what, uint64_t nr);

#endif /* GP_COLLECTOR_RUNTIME_RING_WRITER_H */
