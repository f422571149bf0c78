/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * From code addresses to numbered frames. A frame that has no name is frame 0, which no recording
 * describes: a reader shows it as "?", and the stack is marked.
 */
#include "capture/stacks.h"

#include "capture/python_code.h"

#include <errno.h>

void stacks__done(struct stacks *s)
{
	hash__done(&s->frame_of);
}

/* Two keys for one place are two frames that look the same; one key for two places cannot be: the
 * parts do not overlap. */
static uint64_t frame_key(uint16_t process, uint32_t code, int32_t lasti)
{
	return (uint64_t)process << 48 | (uint64_t)(code & 0xfffff) << 28 |
	       ((uint32_t)lasti & 0xfffffff);
}

/* Number of the frame; 0 if it cannot be named. 0 or -errno. */
static int number_frame(struct stacks *s, struct recording_writer *w, struct python_codes *codes,
			uint16_t process, const struct gp_stack_frame *frame, uint32_t *ret_number)
{
	struct python_place place;
	const uint64_t *known;
	uint64_t key;
	int err = codes ? python_codes__place(codes, frame, &place) : -ENOENT;

	*ret_number = 0;
	if (err)
		return err == -ENOMEM ? err : 0;
	key = frame_key(process, place.code, frame->lasti);
	known = hash__find(&s->frame_of, key);
	if (known) {
		*ret_number = (uint32_t)*known;
		return 0;
	}
	if (s->frames_nr + 1 >= RECORDING_STACK_IDS)
		return 0;
	err = hash__set(&s->frame_of, key, ++s->frames_nr);
	if (err)
		return err;
	*ret_number = s->frames_nr;
	return recording_writer__frame(w, s->frames_nr,
				       &(struct recording_frame){
					       .kind = RECORDING_FRAME_PYTHON,
					       .file = place.file,
					       .function = place.function,
					       .line = place.line,
				       });
}

int stacks__put(struct stacks *s, struct recording_writer *w, struct python_codes *codes,
		const struct gp_ev_stack *event, size_t bytes)
{
	const struct gp_stack_frame *frames = (const void *)(event + 1);
	uint32_t numbers[GP_STACK_FRAMES], flags;

	if (bytes < sizeof(*event) || event->frames_nr > GP_STACK_FRAMES ||
	    event->frames_nr > (bytes - sizeof(*event)) / sizeof(*frames) || !event->stack_id ||
	    event->stack_id >= RECORDING_STACK_IDS)
		return -EBADMSG;
	flags = event->head.flags;
	for (uint32_t i = 0; i < event->frames_nr; i++) {
		int err = number_frame(s, w, codes, event->head.process, &frames[i], &numbers[i]);

		if (err)
			return err;
		if (!numbers[i])
			flags |= GP_STACK_INCOMPLETE;
	}
	if (flags && !event->head.flags)
		s->incomplete_nr++;
	return recording_writer__stack(w, event->stack_id, flags, numbers, event->frames_nr);
}
