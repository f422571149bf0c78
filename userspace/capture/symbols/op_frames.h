/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which operator a native frame belongs to: functions at::_ops::NAME::call and redispatch, and the
 * apply() of autograd nodes, by their symbols.
 */
#ifndef GP_CAPTURE_SYMBOLS_OP_FRAMES_H
#define GP_CAPTURE_SYMBOLS_OP_FRAMES_H

#include "base/vec.h"
#include "capture/symbols/names.h"
#include "capture/symbols/native_code.h"
#include "capture/symbols/stacks.h"
#include "probe/plan/names.h"

/* Operators that one file defines. */
struct op_module {
	uint32_t module;
	struct op_names names;
	bool is_read;
	uint64_t again_ns; /* it could not be read: not before then */
};

/* All zero is an empty one, in which no frame is an operator's. */
struct op_frames {
	struct names *names; /* the capture's; set where they are wanted */
	VEC(struct op_module) modules;
};

void op_frames__done(struct op_frames *o);

/* A recording begins: names of modules that `codes` has put away go, too. */
void op_frames__poll(struct op_frames *o, const struct native_codes *codes);

/* Reads what tells which operator the frame is one of, if it is; what cannot be read now is said of
 * the place. 0 or -ENOMEM. */
int op_frames__read(struct op_frames *o, struct native_place *place);

/* Notes of a new frame of `s` which operator it is one of, if it is. 0 or -errno. */
int op_frames__note(struct op_frames *o, struct stacks *s, uint32_t frame,
		    const struct native_place *place);

#endif /* GP_CAPTURE_SYMBOLS_OP_FRAMES_H */
