/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Symbols are read with the first frame. Modules and programs that the kernel loads later are not
 * among them.
 */
#include "capture/symbols/kernel_frames.h"

#include <errno.h>

void kernel_frames__done(struct kernel_frames *k)
{
	kallsyms__free(k->symbols);
	k->symbols = NULL;
	hash__done(&k->frame_of);
}

static int read_symbols(struct kernel_frames *k)
{
	int err = k->asked ? 0 : kallsyms__read(&k->symbols);

	k->asked = true;
	return err == -ENOMEM ? err : 0;
}

/* Number of the frame; 0 if there are too many. 0 or -ENOMEM. */
static int number_frame(struct kernel_frames *k, struct stacks *s,
			const struct kernel_function *function, uint32_t *ret_number)
{
	struct recording_frame frame = {
		.function = function->name,
		.module = function->module ? function->module : "[kernel]",
		.kind = RECORDING_FRAME_KERNEL,
	};
	const uint64_t *known = hash__find(&k->frame_of, function->start);
	int64_t number = known ? (int64_t)*known : stacks__add_frame(s, &frame);

	*ret_number = number > 0 ? (uint32_t)number : 0;
	if (number <= 0 || known)
		return number < 0 ? (int)number : 0;
	return hash__set(&k->frame_of, function->start, (uint64_t)number);
}

int kernel_frames__add(struct kernel_frames *k, struct stacks *s, const __u64 *addresses,
		       uint32_t nr, struct frame_list *list)
{
	bool unknown = false;
	int err = read_symbols(k);

	for (uint32_t i = 0; i < nr && !err; i++) {
		struct kernel_function f = {.name = KERNEL_FRAME_UNKNOWN};
		bool again = unknown;

		unknown = !k->symbols || kallsyms__find(k->symbols, addresses[i], &f);
		if (unknown && again)
			continue;
		err = number_frame(k, s, &f, &list->numbers[list->nr]);
		if (!list->numbers[list->nr++])
			list->flags |= GP_STACK_INCOMPLETE;
	}
	return err;
}
