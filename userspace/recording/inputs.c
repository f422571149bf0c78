/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads the inputs of an op. The bytes come from the traced process or from a file: every read is
 * checked against their end.
 */
#include "recording/inputs.h"

#include <errno.h>
#include <string.h>

void inputs_reader__init(struct inputs_reader *r, const void *data, size_t bytes)
{
	*r = (struct inputs_reader){.at = data, .left = bytes};
}

static bool take_byte(struct inputs_reader *r, uint8_t *ret_byte)
{
	if (!r->left)
		return false;
	*ret_byte = *r->at++;
	r->left--;
	return true;
}

static bool take_varint(struct inputs_reader *r, uint64_t *ret_n)
{
	uint64_t n = 0;
	uint8_t byte;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		if (!take_byte(r, &byte) || (shift == 63 && byte > 1))
			return false;
		n |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		*ret_n = n;
		return true;
	}
	return false;
}

/* Sets the strides of a tensor without gaps. Those that follow from impossible sizes stay
 * unknown. */
static void dense_strides(struct input *in)
{
	int64_t stride = 1;

	for (unsigned int i = in->dims; i-- > 0;) {
		in->strides[i] = stride;
		if (__builtin_mul_overflow(stride, in->sizes[i] ? in->sizes[i] : 1, &stride))
			stride = 0;
	}
}

static bool take_numbers(struct inputs_reader *r, int64_t *to, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		uint64_t n;

		if (!take_varint(r, &n))
			return false;
		to[i] = (int64_t)n;
	}
	return true;
}

bool input_has_sizes(uint8_t what)
{
	return what == GP_INPUT_TENSOR || what == GP_INPUT_STRIDED || what == GP_INPUT_SPARSE;
}

static bool take_tensor(struct inputs_reader *r, struct input *in)
{
	if (!take_byte(r, &in->dtype) || !take_byte(r, &in->dims) || in->dims > GP_INPUT_DIMS_MAX ||
	    !take_numbers(r, in->sizes, in->dims))
		return false;
	for (unsigned int i = 0; i < in->dims; i++)
		if (in->sizes[i] < 0)
			return false;
	if (in->what == GP_INPUT_SPARSE)
		return true;
	in->strides_nr = in->dims;
	if (in->what == GP_INPUT_STRIDED)
		return take_numbers(r, in->strides, in->dims);
	dense_strides(in);
	return true;
}

static bool take_list(struct inputs_reader *r, struct input *in)
{
	if (r->list_left || !take_byte(r, &in->items) || in->items > GP_INPUT_ITEMS_MAX + 1)
		return false;
	r->in_tensors = in->what == GP_INPUT_TENSOR_LIST;
	return true;
}

static bool take_value(struct inputs_reader *r, struct input *in)
{
	uint64_t n = 0;

	if (input_has_sizes(in->what))
		return take_tensor(r, in);
	switch (in->what) {
	case GP_INPUT_OTHER:
	case GP_INPUT_OPAQUE:
	case GP_INPUT_FALSE:
	case GP_INPUT_TRUE:
	case GP_INPUT_CUT:
	case GP_INPUT_NO_VALUE:
		return true;
	case GP_INPUT_INT:
		if (!take_varint(r, &n))
			return false;
		in->integer = (int64_t)(n >> 1 ^ (n & 1 ? UINT64_MAX : 0));
		return true;
	case GP_INPUT_DOUBLE:
		if (r->left < sizeof(in->real))
			return false;
		memcpy(&in->real, r->at, sizeof(in->real));
		r->at += sizeof(in->real);
		r->left -= sizeof(in->real);
		return true;
	case GP_INPUT_TENSOR_LIST:
	case GP_INPUT_SCALAR_LIST:
		return take_list(r, in);
	default:
		return false;
	}
}

/* Whether the item may stand in the open list. */
static bool fits_list(const struct inputs_reader *r, uint8_t what)
{
	if (what == GP_INPUT_CUT)
		return r->list_left == 1;
	if (r->in_tensors)
		return input_has_sizes(what) || what == GP_INPUT_OPAQUE;
	return (what >= GP_INPUT_INT && what <= GP_INPUT_TRUE) || what == GP_INPUT_NO_VALUE;
}

int inputs_reader__next(struct inputs_reader *r, struct input *ret_input)
{
	bool in_list = r->list_left > 0;

	if (!r->left)
		return in_list ? -EBADMSG : 0;
	memset(ret_input, 0, sizeof(*ret_input));
	(void)take_byte(r, &ret_input->what);
	if (in_list && !fits_list(r, ret_input->what))
		return -EBADMSG;
	if (!take_value(r, ret_input))
		return -EBADMSG;
	if (in_list)
		r->list_left--;
	else if (++r->inputs_nr > GP_INPUTS_MAX + 1 || (ret_input->what == GP_INPUT_CUT && r->left))
		return -EBADMSG;
	r->list_left += ret_input->items;
	return 1;
}

bool inputs_are_sane(const void *data, size_t bytes)
{
	struct inputs_reader r;
	struct input in;
	int got;

	inputs_reader__init(&r, data, bytes);
	while ((got = inputs_reader__next(&r, &in)) > 0)
		;
	return got == 0 && bytes <= GP_INPUTS_BYTES_MAX;
}
