/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Turns addresses into numbered frames.
 */
#include "capture/symbols/native_stacks.h"

#include "base/demangle.h"

#include <errno.h>
#include <string.h>

#define WAITING_MAX 1024

void native_stacks__done(struct native_stacks *n)
{
	native_codes__free(n->codes);
	n->codes = NULL;
	hash__done(&n->frame_of);
	buf__done(&n->text);
	op_frames__done(&n->ops);
	kernel_frames__done(&n->kernel);
	frame_lines__done(&n->lines);
	vec_done(&n->waiting);
}

void native_stacks__poll(struct native_stacks *n, const struct file_users *users)
{
	if (!n->codes)
		return;
	native_codes__poll(n->codes, users);
	op_frames__poll(&n->ops, n->codes);
}

/* A collision of two keys would show one place as another: the parts do not overlap for files of
 * less than 1 TiB; without a file the address is all there is. What is not known of a place that
 * cannot be read now will have a frame of its own. */
static uint64_t frame_key(const struct native_place *place)
{
	uint64_t unread = place->unread ? 1ULL << 62 : 0;

	if (place->module == UINT32_MAX)
		return 1ULL << 63 | place->address;
	return unread | (uint64_t)(place->module & 0x3fffff) << 40 |
	       (place->address & 0xffffffffff);
}

/* As stacks__add_frame(). */
static int64_t add_frame(struct native_stacks *n, struct stacks *s,
			 const struct native_place *place)
{
	struct recording_frame frame = {
		.function = "",
		.module = place->path,
		.build_id = place->build_id,
		.address = place->address,
		.kind = RECORDING_FRAME_NATIVE,
	};

	if (place->symbol) {
		buf__clear(&n->text);
		demangle_or_keep(&n->text, place->symbol);
		if (buf__error(&n->text))
			return buf__error(&n->text);
		frame.function = n->text.bytes;
	}
	return stacks__add_frame(s, &frame);
}

/* Number of the frame; 0 if there are too many. 0 or -errno. */
static int number_frame(struct native_stacks *n, struct stacks *s, struct native_place *place,
			uint32_t *ret_number)
{
	const uint64_t *known = hash__find(&n->frame_of, frame_key(place));
	int err = known ? 0 : op_frames__read(&n->ops, place);
	int64_t number;

	if (err)
		return err;
	known = known ? known : hash__find(&n->frame_of, frame_key(place));
	number = known ? (int64_t)*known : add_frame(n, s, place);
	*ret_number = number > 0 ? (uint32_t)number : 0;
	if (number < 0 || known || !number)
		return number < 0 ? (int)number : 0;
	err = hash__set(&n->frame_of, frame_key(place), (uint64_t)number);
	err = err ? err : frame_lines__note(&n->lines, *ret_number, place);
	return err ? err : op_frames__note(&n->ops, s, *ret_number, place);
}

/* A function of CPython that runs Python's frames, or a part of it that the compiler split off. */
static bool runs_python(const char *symbol)
{
	static const char name[] = "_PyEval_EvalFrameDefault";

	return symbol && !strncmp(symbol, name, sizeof(name) - 1) &&
	       (!symbol[sizeof(name) - 1] || symbol[sizeof(name) - 1] == '.');
}

/* `id`: the kernel's. */
static int keep_stack(struct stacks *s, uint32_t id, uint32_t flags, const struct frame_list *list)
{
	int64_t number = stacks__number(s, SOURCE_KERNEL, id);

	if (number <= 0)
		return (int)number;
	if (list->flags & ~flags)
		s->incomplete_nr++;
	return stacks__keep(s, (uint32_t)number, list);
}

/* The kernel's Python stack `id`. */
static bool get_python(struct stacks *s, uint32_t id, struct frame_list *ret_python)
{
	int64_t number = stacks__number(s, SOURCE_KERNEL, id);

	return number > 0 && stacks__get(s, (uint32_t)number, ret_python);
}

/* Takes the stack with Python's frames in it, or lets it wait for them. */
static int keep_mixed(struct native_stacks *n, struct stacks *s, const struct gp_ev_native *event,
		      struct frame_list *list)
{
	struct waiting_stack waiting = {event->stack_id, event->python_id, event->head.flags,
					*list};
	struct frame_list python;
	bool known = event->python_id && get_python(s, event->python_id, &python);

	if (event->python_id && n->waiting.nr < WAITING_MAX && !known)
		return vec_push(&n->waiting, waiting);
	if (known)
		mix_stacks(list, &python);
	else if (event->python_id)
		list->flags |= GP_STACK_INCOMPLETE;
	return keep_stack(s, event->stack_id, event->head.flags, list);
}

int native_stacks__release(struct native_stacks *n, struct stacks *s, uint32_t python_id)
{
	struct frame_list python;
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < n->waiting.nr; i++) {
		struct waiting_stack *x = &n->waiting.items[i];

		if (err || (python_id && x->python_id != python_id)) {
			n->waiting.items[kept++] = *x;
			continue;
		}
		if (get_python(s, x->python_id, &python))
			mix_stacks(&x->frames, &python);
		else
			x->frames.flags |= GP_STACK_INCOMPLETE;
		err = keep_stack(s, x->stack_id, x->flags, &x->frames);
	}
	n->waiting.nr = kept;
	return err;
}

/* Appends the frames of the process's own code. 0 or -ENOMEM. */
static int add_frames(struct native_stacks *n, struct stacks *s, const struct target_process *p,
		      const struct gp_ev_native *event, struct frame_list *list)
{
	const __u64 *addresses = (const void *)(event + 1);
	bool marked = false;
	int err = 0;

	for (size_t i = 0; i < GP_STACK_FRAMES / 64; i++)
		marked |= event->marks[i] != 0;
	for (uint32_t i = 0; i < event->frames_nr && !err; i++) {
		uint32_t *number = &list->numbers[list->nr];
		struct native_place place;

		err = native_codes__place(n->codes, p, addresses[i], &place);
		/* By now something else lies there: neither the name nor the rules that led
		 * further out are known to be those of what lay there. */
		if (!err && place.since > event->maps_changes) {
			list->flags |= GP_STACK_INCOMPLETE;
			break;
		}
		err = err ? err : number_frame(n, s, &place, number);
		if (!err && (!*number || place.unread))
			list->flags |= GP_STACK_INCOMPLETE;
		list->marks[list->nr++] = marked ? event->marks[i / 64] >> i % 64 & 1
						 : !err && runs_python(place.symbol);
	}
	return err;
}

int native_stacks__put(struct native_stacks *n, struct stacks *s, const struct target_process *p,
		       const struct gp_ev_native *event, size_t bytes)
{
	const __u64 *addresses = (const void *)(event + 1);
	struct frame_list list = {0};
	int err;

	if (bytes < sizeof(*event) || event->frames_nr > GP_STACK_FRAMES ||
	    event->kernel_nr > GP_KERNEL_FRAMES || !event->stack_id ||
	    event->frames_nr + event->kernel_nr > (bytes - sizeof(*event)) / sizeof(*addresses))
		return -EBADMSG;
	if (!n->codes)
		n->codes = native_codes__new();
	if (!n->codes)
		return -ENOMEM;
	list.flags = event->head.flags;
	/* The kernel leaves the outermost of so many out. */
	if (event->kernel_nr >= GP_KERNEL_FRAMES - 1)
		list.flags |= GP_STACK_INCOMPLETE;
	err = kernel_frames__add(&n->kernel, s, addresses + event->frames_nr, event->kernel_nr,
				 &list);
	err = err ? err : add_frames(n, s, p, event, &list);
	return err ? err : keep_mixed(n, s, event, &list);
}
