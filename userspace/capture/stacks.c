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
	hash__done(&s->number_of);
	kept_stacks__done(&s->kept);
}

int64_t stacks__number(struct stacks *s, uint32_t source, uint32_t id)
{
	uint64_t key = (uint64_t)source << 32 | id;
	const uint64_t *known = id ? hash__find(&s->number_of, key) : NULL;
	int err;

	if (known || !id)
		return known ? (int64_t)*known : 0;
	if (s->stacks_nr + 1 >= RECORDING_STACK_IDS) {
		s->numbers_lost_nr++;
		return 0;
	}
	err = hash__set(&s->number_of, key, s->stacks_nr + 1);
	return err ? (int64_t)err : (int64_t)++s->stacks_nr;
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
		uint32_t source, const struct gp_ev_stack *event, size_t bytes)
{
	const struct gp_stack_frame *frames = (const void *)(event + 1);
	struct frame_list list = {0};
	int64_t number;
	int err = 0;

	if (bytes < sizeof(*event) || event->frames_nr > GP_STACK_FRAMES ||
	    event->frames_nr > (bytes - sizeof(*event)) / sizeof(*frames) || !event->stack_id)
		return -EBADMSG;
	number = stacks__number(s, source, event->stack_id);
	if (number <= 0)
		return (int)number;
	list.flags = event->head.flags;
	list.nr = event->frames_nr;
	for (uint32_t i = 0; i < list.nr && !err; i++) {
		err = number_frame(s, w, codes, event->head.process, &frames[i], &list.numbers[i]);
		if (!err && !list.numbers[i])
			list.flags |= GP_STACK_INCOMPLETE;
		list.marks[i] = event->entries[i / 64] >> i % 64 & 1;
	}
	if (list.flags && !event->head.flags)
		s->incomplete_nr++;
	if (!err && s->keep && source == SOURCE_KERNEL)
		err = kept_stacks__add(&s->kept, event->stack_id, &list);
	return err ? err
		   : recording_writer__stack(w, (uint32_t)number, list.flags, list.numbers,
					     list.nr);
}
