/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector's ring with any content: the reader must come to an end, hand out only events that
 * keep the rules, and never look outside the ring. Input: head (8 bytes, a multiple of 8 is made of
 * it), then rounds of what lies in the ring.
 */
#include "collector/ring_writer.h"
#include "unit/collector_help.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA_BYTES 4096U
#define ROUNDS	   4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each event is whole, from our process, and of a kind that the ring may hold. */
static int check(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_op *op = event;
	const struct gp_ev_name *name = event;

	if (bytes < sizeof(op->head) || op->head.process != HELP_PROCESS)
		abort();
	if (op->head.kind == GP_EV_OP) {
		if (bytes != sizeof(*op) || op->start_ns > op->head.time_ns ||
		    op->instance >> 52 != HELP_PREFIX >> 52)
			abort();
	} else if (op->head.kind == GP_EV_NAME) {
		if (strlen((const char *)(name + 1)) != name->text_bytes)
			abort();
	} else {
		abort();
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct collector_ring *r;
	struct ring_writer w;
	uint64_t head;

	if (size < sizeof(head) || ring_writer__open(&w, DATA_BYTES))
		return 0;
	if (collector_ring__open(getpid(), HELP_PROCESS, NULL, &r))
		abort();
	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	/* Small heads are the ones that lead further. */
	w.page->head = head >> 63 ? head : head % (DATA_BYTES + 64) & ~7ULL;
	for (int round = 0; round < ROUNDS; round++) {
		size_t part = size < DATA_BYTES ? size : DATA_BYTES;

		memcpy(w.data, data, part);
		data += part;
		size -= part;
		(void)collector_ring__drain(r, check, NULL);
		w.page->beat += 1000;
		(void)collector_ring__drain(r, check, NULL);
		w.page->head += 2048;
	}
	collector_ring__free(r);
	ring_writer__close(&w);
	return 0;
}
