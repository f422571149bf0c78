/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * From addresses to numbered frames.
 */
#include "capture/native_stacks.h"

#include "base/demangle.h"

#include <errno.h>
#include <string.h>

void native_stacks__done(struct native_stacks *n)
{
	native_codes__free(n->codes);
	n->codes = NULL;
	hash__done(&n->frame_of);
	buf__done(&n->text);
}

/* A collision of two keys would show one place as another: the parts do not overlap for files of
 * less than 1 TiB; without a file the address is all there is. */
static uint64_t frame_key(const struct native_place *place)
{
	if (place->module == UINT32_MAX)
		return 1ULL << 63 | place->address;
	return (uint64_t)(place->module & 0x7fffff) << 40 | (place->address & 0xffffffffff);
}

/* The function's name as people read it. 0 or -ENOMEM. */
static int readable(struct native_stacks *n, const char *symbol)
{
	buf__clear(&n->text);
	if (!demangle(&n->text, symbol))
		buf__str(&n->text, symbol);
	return buf__error(&n->text);
}

static int write_frame(struct native_stacks *n, struct recording_writer *w, uint32_t number,
		       const struct native_place *place)
{
	struct recording_frame frame = {
		.file = "",
		.function = "",
		.module = place->path,
		.build_id = place->build_id,
		.address = place->address,
		.kind = RECORDING_FRAME_NATIVE,
	};
	int err = place->symbol ? readable(n, place->symbol) : 0;

	if (err)
		return err;
	if (place->symbol)
		frame.function = n->text.bytes;
	return recording_writer__frame(w, number, &frame);
}

/* Number of the frame; 0 if there are too many. 0 or -errno. */
static int number_frame(struct native_stacks *n, struct stacks *s, struct recording_writer *w,
			const struct native_place *place, uint32_t *ret_number)
{
	const uint64_t *known = hash__find(&n->frame_of, frame_key(place));
	int err;

	*ret_number = known ? (uint32_t)*known : 0;
	if (known || s->frames_nr + 1 >= RECORDING_STACK_IDS)
		return 0;
	err = hash__set(&n->frame_of, frame_key(place), ++s->frames_nr);
	if (err)
		return err;
	*ret_number = s->frames_nr;
	return write_frame(n, w, s->frames_nr, place);
}

int native_stacks__put(struct native_stacks *n, struct stacks *s, struct recording_writer *w,
		       const struct target_process *p, const struct gp_ev_native *event,
		       size_t bytes)
{
	const __u64 *addresses = (const void *)(event + 1);
	uint32_t numbers[GP_STACK_FRAMES], flags;
	int err = 0;

	if (bytes < sizeof(*event) || event->frames_nr > GP_STACK_FRAMES ||
	    event->frames_nr > (bytes - sizeof(*event)) / sizeof(*addresses) || !event->stack_id ||
	    event->stack_id >= RECORDING_STACK_IDS)
		return -EBADMSG;
	if (!n->codes)
		n->codes = native_codes__new();
	if (!n->codes)
		return -ENOMEM;
	flags = event->head.flags;
	for (uint32_t i = 0; i < event->frames_nr && !err; i++) {
		struct native_place place;

		err = native_codes__place(n->codes, p, addresses[i], &place);
		err = err ? err : number_frame(n, s, w, &place, &numbers[i]);
		if (!err && !numbers[i])
			flags |= GP_STACK_INCOMPLETE;
	}
	if (flags && !event->head.flags)
		s->incomplete_nr++;
	return err ? err
		   : recording_writer__stack(w, event->stack_id, flags, numbers, event->frames_nr);
}
