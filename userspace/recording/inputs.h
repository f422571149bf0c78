/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads a gp_ev_inputs (wire.h) item by item and checks each. The items of a list follow its head
 * as items of their own.
 */
#ifndef GP_RECORDING_INPUTS_H
#define GP_RECORDING_INPUTS_H

#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inputs_reader {
	const uint8_t *at;
	size_t left;
	unsigned int list_left; /* items of the open list that are still to come */
	bool in_tensors;	/* the open list is one of tensors */
	unsigned int inputs_nr;
};

struct input {
	uint8_t what;	 /* enum gp_input */
	uint8_t dtype;	 /* of a tensor: c10::ScalarType, 255: another */
	uint8_t dims;	 /* of a tensor */
	uint8_t items;	 /* of a list; a CUT among them counts */
	int64_t integer; /* of an INT */
	double real;	 /* of a DOUBLE */
	int64_t sizes[GP_INPUT_DIMS_MAX];
	int64_t strides[GP_INPUT_DIMS_MAX]; /* given or derived from the sizes */
	uint8_t strides_nr;		    /* as many as dims, or 0 */
};

/* Initializes a reader of the `bytes` that follow a struct gp_ev_inputs, borrowed. */
void inputs_reader__init(struct inputs_reader *r, const void *data, size_t bytes);

/* Reads the next item. 1, 0 at the end, -EBADMSG if the bytes make no sense. */
int inputs_reader__next(struct inputs_reader *r, struct input *ret_input);

/* Whether it is a tensor with known type and sizes. */
bool input_has_sizes(uint8_t what);

/* Whether all of it can be read. */
bool inputs_are_sane(const void *data, size_t bytes);

#endif /* GP_RECORDING_INPUTS_H */
