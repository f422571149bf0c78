/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector's ring with any content: the reader must come to an end, hand out only events that
 * keep the rules, and never look outside the ring. Input: head (8 bytes, a multiple of 8 is made of
 * it), then rounds of what lies in the ring.
 */
#include "collector/ring_writer.h"
#include "fuzz/fuzz_seed.h"
#include "unit/collector_help.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA_BYTES 4096U
#define ROUNDS	   4

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

/* A name and an op as the collector writes them. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char text[15] = "aten::add_tenso";
	struct {
		uint64_t head;
		struct gp_ring_slot name_slot;
		struct gp_ev_name name;
		char text[16];
		struct gp_ring_slot op_slot;
		struct gp_ev_op op;
	} seed = {
		.head = sizeof(seed) - sizeof(seed.head),
		.name_slot = {sizeof(seed.name_slot) + sizeof(seed.name) + sizeof(seed.text), 1},
		.name = {.head.kind = GP_EV_NAME, .name_id = 1, .text_bytes = sizeof(text)},
		.op_slot = {sizeof(seed.op_slot) + sizeof(seed.op), 49},
		.op = help_op(1),
	};

	memcpy(seed.text, text, sizeof(text));
	seed.op.start_ns = seed.op.head.time_ns = 0;
	fuzz_seed(*argc, *argv, "ring", &seed, sizeof(seed));
	return 0;
}

/* Times in the input count from now: others are refused early. */
static void shift_times(unsigned char *ring)
{
	uint64_t now = help_now_ns();
	struct gp_ring_slot slot;
	struct gp_ev_op op;
	size_t bytes;

	for (size_t at = 0; at + sizeof(slot) + sizeof(op) <= DATA_BYTES; at += bytes) {
		memcpy(&slot, ring + at, sizeof(slot));
		memcpy(&op, ring + at + sizeof(slot), sizeof(op));
		bytes = slot.bytes && slot.bytes % 8 == 0 ? slot.bytes : 8;
		if (op.head.kind != GP_EV_OP || slot.bytes != sizeof(slot) + sizeof(op))
			continue;
		op.start_ns += now;
		op.head.time_ns += now;
		memcpy(ring + at + sizeof(slot), &op, sizeof(op));
	}
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
		shift_times(w.data);
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
