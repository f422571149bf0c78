/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The inputs of an op, as Kineto writes them into its arguments: four lists with an item for each
 * input. If the recording cut the inputs, the lists end early and "Inputs cut" is there.
 */
#include "output/chrome/chrome.h"

#include <math.h>

#include "base/banned.h"
#include "recording/inputs.h"

/* c10::ScalarType as its C++ type. */
static const char *const type_names[] = {
	"unsigned char",
	"signed char",
	"short int",
	"int",
	"long int",
	"c10::Half",
	"float",
	"double",
	"c10::complex<c10::Half>",
	"c10::complex<float>",
	"c10::complex<double>",
	"bool",
	"c10::qint8",
	"c10::quint8",
	"c10::qint32",
	"c10::BFloat16",
	"c10::quint4x2",
	"c10::quint2x4",
	"c10::bits1x8",
	"c10::bits2x4",
	"c10::bits4x2",
	"c10::bits8",
	"c10::bits16",
	"c10::Float8_e5m2",
	"c10::Float8_e4m3fn",
	"c10::Float8_e5m2fnuz",
	"c10::Float8_e4m3fnuz",
	"short unsigned int",
	"unsigned int",
	"long unsigned int",
};

/* Writes what one of the four lists says of an input. */
typedef void (*write_fn)(struct json_writer *j, struct inputs_reader *r, const struct input *in);

static void numbers(struct json_writer *j, const int64_t *n, unsigned int nr)
{
	json__array(j, &json_spaced);
	for (unsigned int i = 0; i < nr; i++)
		json__i64(j, n[i]);
	json__end(j);
}

static void extents(struct json_writer *j, struct inputs_reader *r, const struct input *in,
		    bool strides)
{
	struct input item;

	if (in->what != GP_INPUT_TENSOR_LIST) {
		numbers(j, strides ? in->strides : in->sizes, strides ? in->strides_nr : in->dims);
		return;
	}
	json__array(j, &json_spaced);
	for (unsigned int i = 0; i < in->items && inputs_reader__next(r, &item) > 0; i++) {
		if (item.what == GP_INPUT_CUT)
			continue;
		numbers(j, strides ? item.strides : item.sizes,
			strides ? item.strides_nr : item.dims);
	}
	json__end(j);
}

static void write_dims(struct json_writer *j, struct inputs_reader *r, const struct input *in)
{
	extents(j, r, in, false);
}

static void write_strides(struct json_writer *j, struct inputs_reader *r, const struct input *in)
{
	extents(j, r, in, true);
}

static void write_type(struct json_writer *j, struct inputs_reader *r, const struct input *in)
{
	const char *type = "";

	(void)r;
	if (input_has_sizes(in->what))
		type = in->dtype < sizeof(type_names) / sizeof(*type_names) ? type_names[in->dtype]
									    : "";
	else if ((in->what >= GP_INPUT_INT && in->what <= GP_INPUT_TRUE) ||
		 in->what == GP_INPUT_NO_VALUE)
		type = "Scalar";
	else if (in->what == GP_INPUT_TENSOR_LIST)
		type = "TensorList";
	else if (in->what == GP_INPUT_SCALAR_LIST)
		type = "ScalarList";
	json__word(j, type);
}

/* As an IValue prints itself: whole numbers end with a point, others have all their digits. */
static void real_text(struct buf *out, double d)
{
	bool plain = d == 0 || (isnormal(d) && fabs(d) < 1e10);

	if (plain && d == (double)(int64_t)d)
		buf__printf(out, "%s%lld.", d == 0 && signbit(d) ? "-" : "", (long long)d);
	else
		buf__printf(out, "%.17g", d);
}

static void scalar_text(struct buf *out, const struct input *in)
{
	if (in->what == GP_INPUT_INT)
		buf__i64(out, in->integer);
	else if (in->what == GP_INPUT_DOUBLE)
		real_text(out, in->real);
	else if (in->what == GP_INPUT_FALSE || in->what == GP_INPUT_TRUE)
		buf__str(out, in->what == GP_INPUT_TRUE ? "True" : "False");
}

/* Kineto keeps lists of at most 30 values; longer ones are the empty text there. */
static void list_text(struct buf *out, struct inputs_reader *r, const struct input *in)
{
	struct input item;

	buf__char(out, '[');
	for (unsigned int i = 0; i < in->items && inputs_reader__next(r, &item) > 0; i++) {
		buf__str(out, i ? ", " : "");
		if (item.what == GP_INPUT_CUT)
			buf__str(out, "...");
		else if (item.what == GP_INPUT_NO_VALUE)
			buf__char(out, '?');
		scalar_text(out, &item);
	}
	buf__char(out, ']');
}

static void write_value(struct json_writer *j, struct inputs_reader *r, const struct input *in)
{
	json__begin_word(j);
	if (in->what == GP_INPUT_SCALAR_LIST)
		list_text(j->out, r, in);
	else
		scalar_text(j->out, in);
	json__end_word(j);
}

static bool write_list(struct json_writer *j, const struct tl_inputs *inputs, const char *name,
		       write_fn write)
{
	struct inputs_reader r;
	struct input in;
	bool cut = false;

	inputs_reader__init(&r, inputs->data, inputs->bytes);
	json__put_array(j, name, &json_spaced);
	while (inputs_reader__next(&r, &in) > 0) {
		cut |= in.what == GP_INPUT_CUT;
		if (in.what == GP_INPUT_CUT)
			break;
		write(j, &r, &in);
		/* What the writer did not take of a list. */
		while (r.list_left && inputs_reader__next(&r, &in) > 0)
			cut |= in.what == GP_INPUT_CUT;
	}
	json__end(j);
	return cut;
}

void chrome_inputs(struct chrome *c, const struct tl_op *op)
{
	const struct tl_inputs *inputs;
	bool cut;

	if (op->inputs == TL_NONE)
		return;
	inputs = &c->t->inputs.items[op->inputs];
	cut = write_list(&c->json, inputs, "Concrete Inputs", write_value);
	/* The writer of types does not read lists: what was cut inside one shows here. */
	cut |= write_list(&c->json, inputs, "Input type", write_type);
	(void)write_list(&c->json, inputs, "Input Strides", write_strides);
	(void)write_list(&c->json, inputs, "Input Dims", write_dims);
	if (cut)
		json__put_word(&c->json, "Inputs cut", "true");
}
