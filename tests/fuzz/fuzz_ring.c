/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector's ring with any content: the reader must come to an end, hand out only events that
 * keep the rules, and never look outside the ring. Input: head (8 bytes, a multiple of 8 is made of
 * it), then rounds of what lies in the ring.
 */
#include "collector/runtime/ring_writer.h"
#include "fuzz/fuzz_seed.h"
#include "recording/inputs.h"
#include "unit/collector_help.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA_BYTES 4096U
#define ROUNDS	   4

static size_t gpu_bytes(uint8_t kind)
{
	switch (kind) {
	case GP_EV_API:
		return sizeof(struct gp_ev_api);
	case GP_EV_KERNEL:
		return sizeof(struct gp_ev_kernel);
	case GP_EV_GPU_MEMORY:
		return sizeof(struct gp_ev_gpu_memory);
	case GP_EV_SYNC:
		return sizeof(struct gp_ev_sync_event);
	case GP_EV_CLOCK:
		return sizeof(struct gp_ev_clock);
	case GP_EV_CUDA_EVENT:
		return sizeof(struct gp_ev_cuda_event);
	default:
		return 0;
	}
}

/* Events of GPUs: those that have a length of time first have its beginning. */
static void check_gpu(const void *event, size_t bytes)
{
	const struct gp_ev_head *head = event;
	const struct gp_ev_kernel *kernel = event;
	const struct gp_ev_gpu_memory *memory = event;

	if (!gpu_bytes(head->kind) || bytes != gpu_bytes(head->kind))
		abort();
	if (head->kind != GP_EV_API && head->tid)
		abort();
	if (head->kind <= GP_EV_SYNC && kernel->start_ns > head->time_ns)
		abort();
	if (head->kind == GP_EV_KERNEL && (kernel->device >= 4096 || kernel->block[2] > 1024))
		abort();
	if (head->kind == GP_EV_GPU_MEMORY && memory->is_set > 1)
		abort();
}

static void check_op(const struct gp_ev_op *op, size_t bytes)
{
	if ((bytes != sizeof(*op) && bytes != sizeof(struct gp_ev_op_inputs)) ||
	    op->start_ns > op->head.time_ns || op->instance >> 52 != HELP_PREFIX >> 52)
		abort();
}

static void check_inputs(const struct gp_ev_inputs *in, size_t bytes)
{
	if (bytes != sizeof(*in) + ((in->bytes + 7ULL) & ~7ULL) || !in->inputs_id || in->head.tid ||
	    !inputs_are_sane(in + 1, in->bytes))
		abort();
}

static void check_stack(const struct gp_ev_stack *s, size_t bytes)
{
	if (!s->stack_id || !s->frames_nr || s->frames_nr > GP_STACK_FRAMES || s->head.tid ||
	    bytes != sizeof(*s) + s->frames_nr * sizeof(struct gp_stack_frame))
		abort();
}

/* Each event is whole, from our process, and of a kind that the ring may hold. */
static int check(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_op *op = event;
	const struct gp_ev_name *name = event;

	if (bytes < sizeof(op->head) || op->head.process != HELP_PROCESS)
		abort();
	if (op->head.kind == GP_EV_OP) {
		check_op(op, bytes);
	} else if (op->head.kind == GP_EV_NAME) {
		if (strlen((const char *)(name + 1)) != name->text_bytes)
			abort();
	} else if (op->head.kind == GP_EV_INPUTS) {
		check_inputs(event, bytes);
	} else if (op->head.kind == GP_EV_STACK) {
		check_stack(event, bytes);
	} else {
		check_gpu(event, bytes);
	}
	return 0;
}

/* One of each as the collector writes them. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char text[15] = "aten::add_tenso";
	struct seed {
		uint64_t head;
		struct gp_ring_slot name_slot;
		struct gp_ev_name name;
		char text[16];
		struct gp_ring_slot op_slot;
		struct gp_ev_op op;
		struct gp_ring_slot inputs_slot;
		struct gp_ev_inputs inputs;
		uint8_t list[8];
		struct gp_ring_slot with_slot;
		struct gp_ev_op_inputs with;
		struct gp_ring_slot kernel_slot;
		struct gp_ev_kernel kernel;
		struct gp_ring_slot memory_slot;
		struct gp_ev_gpu_memory memory;
		struct gp_ring_slot clock_slot;
		struct gp_ev_clock clock;
		struct gp_ring_slot stack_slot;
		struct gp_ev_stack stack;
		struct gp_stack_frame frames[2];
	} seed = {
		.head = sizeof(seed) - sizeof(seed.head),
		.name_slot = {sizeof(seed.name_slot) + sizeof(seed.name) + sizeof(seed.text), 1},
		.name = {.head.kind = GP_EV_NAME, .name_id = 1, .text_bytes = sizeof(text)},
		.op_slot = {sizeof(seed.op_slot) + sizeof(seed.op), 49},
		.op = help_op(1),
		.inputs_slot = {sizeof(seed.inputs_slot) + sizeof(seed.inputs) + sizeof(seed.list),
				0},
		.inputs = {.head.kind = GP_EV_INPUTS, .inputs_id = 1, .bytes = 7},
		.list = {GP_INPUT_TENSOR, 6, 2, 2, 3, GP_INPUT_INT, 1},
		.with_slot = {sizeof(seed.with_slot) + sizeof(seed.with), 0},
		.with = {.op = help_op(2), .inputs_id = 1},
		.kernel_slot = {sizeof(seed.kernel_slot) + sizeof(seed.kernel), 0},
		.kernel = {.head.kind = GP_EV_KERNEL, .name_id = 1, .block = {1, 1, 1}},
		.memory_slot = {sizeof(seed.memory_slot) + sizeof(seed.memory), 0},
		.memory = {.head.kind = GP_EV_GPU_MEMORY, .bytes = 1, .peer_device = UINT32_MAX},
		.clock_slot = {sizeof(seed.clock_slot) + sizeof(seed.clock), 0},
		.clock = {.head.kind = GP_EV_CLOCK, .gpu_ns = 1},
		.stack_slot = {sizeof(seed.stack_slot) + sizeof(seed.stack) + sizeof(seed.frames),
			       0},
		.stack = {.head.kind = GP_EV_STACK, .stack_id = 1, .frames_nr = 2},
	};

	seed.inputs_slot.ready = (uint32_t)(offsetof(struct seed, inputs_slot) - 8) + 1;
	seed.stack_slot.ready = (uint32_t)(offsetof(struct seed, stack_slot) - 8) + 1;
	seed.with_slot.ready = (uint32_t)(offsetof(struct seed, with_slot) - 8) + 1;
	seed.kernel_slot.ready = (uint32_t)(offsetof(struct seed, kernel_slot) - 8) + 1;
	seed.memory_slot.ready = (uint32_t)(offsetof(struct seed, memory_slot) - 8) + 1;
	seed.clock_slot.ready = (uint32_t)(offsetof(struct seed, clock_slot) - 8) + 1;
	memcpy(seed.text, text, sizeof(text));
	seed.op.start_ns = seed.op.head.time_ns = 0;
	seed.with.op.start_ns = seed.with.op.head.time_ns = 0;
	fuzz_seed(*argc, *argv, "ring", &seed, sizeof(seed));
	return 0;
}

/* Times in the input count from now: others are refused early. */
static void shift_times(unsigned char *ring)
{
	uint64_t now = clock_now_ns();
	struct gp_ring_slot slot;
	struct gp_ev_op op;
	size_t bytes;

	for (size_t at = 0; at + sizeof(slot) + sizeof(op) <= DATA_BYTES; at += bytes) {
		memcpy(&slot, ring + at, sizeof(slot));
		memcpy(&op, ring + at + sizeof(slot), sizeof(op));
		bytes = slot.bytes && slot.bytes % 8 == 0 ? slot.bytes : 8;
		if ((op.head.kind != GP_EV_OP ||
		     (slot.bytes != sizeof(slot) + sizeof(op) &&
		      slot.bytes != sizeof(slot) + sizeof(struct gp_ev_op_inputs))) &&
		    (!gpu_bytes(op.head.kind) ||
		     slot.bytes != sizeof(slot) + gpu_bytes(op.head.kind)))
			continue;
		if (op.head.kind != GP_EV_CLOCK)
			op.start_ns += now;
		op.head.time_ns += now;
		memcpy(ring + at + sizeof(slot), &op, sizeof(op.head) + sizeof(op.start_ns));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring_reader *r;
	struct ring_writer w;
	uint64_t head;

	if (size < sizeof(head) || ring_writer__open(&w, DATA_BYTES))
		return 0;
	if (ring_reader__open(getpid(), HELP_PROCESS, NULL, &r))
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
		(void)ring_reader__drain(r, check, NULL);
		w.page->beat += 1000;
		(void)ring_reader__drain(r, check, NULL);
		w.page->head += 2048;
	}
	ring_reader__free(r);
	ring_writer__close(&w);
	return 0;
}
