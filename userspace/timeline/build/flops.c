/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A formula for each operator that has one. Sizes come from the traced process: if a product
 * overflows 64 bits, the whole result is 0.
 */
#include "timeline/build/flops.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/banned.h"
#include "recording/inputs.h"

#define ARGS_MAX 16
#define LIST_MAX 8

/* One argument, reduced to what formulas need. */
struct arg {
	uint8_t what; /* enum gp_input */
	uint8_t dims, items;
	int64_t integer;
	int64_t sizes[GP_INPUT_DIMS_MAX];
	int64_t list[LIST_MAX]; /* of a list of scalars */
	uint64_t weights;	/* of a list of tensors: the elements of the matrices in it */
};

struct args {
	struct arg arg[ARGS_MAX];
	unsigned int nr;
	bool sparse; /* any of them */
};

/* ---- numbers ---- */

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? 0 : product;
}

/* The same, where 0 means unknown. */
static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? 0 : sum;
}

static uint64_t product_of(const struct arg *a, unsigned int from, unsigned int to)
{
	uint64_t product = 1;

	for (unsigned int i = from; i < to; i++)
		product = times(product, (uint64_t)a->sizes[i]);
	return product;
}

static uint64_t elements(const struct arg *a)
{
	return product_of(a, 0, a->dims);
}

static uint64_t last(const struct arg *a)
{
	return (uint64_t)a->sizes[a->dims - 1];
}

/* ---- arguments ---- */

static bool is_tensor(const struct args *args, unsigned int i)
{
	return i < args->nr && input_has_sizes(args->arg[i].what);
}

static bool is_matrix(const struct args *args, unsigned int i, unsigned int dims)
{
	return is_tensor(args, i) && args->arg[i].dims == dims;
}

static bool is_true(const struct args *args, unsigned int i)
{
	return i < args->nr && args->arg[i].what == GP_INPUT_TRUE;
}

static bool is_list(const struct args *args, unsigned int i)
{
	return i < args->nr && args->arg[i].what == GP_INPUT_SCALAR_LIST;
}

/* A list of one item applies to all dimensions. */
static int64_t list_at(const struct arg *a, unsigned int i)
{
	return a->list[a->items == 1 ? 0 : i];
}

static void take_item(struct arg *a, unsigned int i, const struct input *item)
{
	if (a->what == GP_INPUT_SCALAR_LIST) {
		if (item->what == GP_INPUT_NO_VALUE || item->what == GP_INPUT_CUT)
			a->what = GP_INPUT_OTHER;
		else if (i < LIST_MAX)
			a->list[i] = item->what == GP_INPUT_INT ? item->integer
								: item->what == GP_INPUT_TRUE;
	} else if ((item->what == GP_INPUT_TENSOR || item->what == GP_INPUT_STRIDED) &&
		   item->dims == 2) {
		a->weights =
			plus(a->weights, times((uint64_t)item->sizes[0], (uint64_t)item->sizes[1]));
	}
}

static void read_args(struct args *args, const void *inputs, size_t bytes)
{
	struct inputs_reader r;
	struct input in, item;

	args->nr = 0;
	args->sparse = false;
	inputs_reader__init(&r, inputs, bytes);
	while (args->nr < ARGS_MAX && inputs_reader__next(&r, &in) > 0) {
		struct arg *a = &args->arg[args->nr++];

		*a = (struct arg){
			.what = in.what, .dims = in.dims, .items = in.items, .integer = in.integer};
		args->sparse |= in.what == GP_INPUT_SPARSE;
		memcpy(a->sizes, in.sizes, sizeof(a->sizes));
		for (unsigned int i = 0; i < in.items && inputs_reader__next(&r, &item) > 0; i++)
			take_item(a, i, &item);
	}
}

/* The places of a convolution's output in one dimension; 0: impossible. */
static uint64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding,
			 int64_t dilation)
{
	__int128 wide = (__int128)in + 2 * (__int128)padding -
			(__int128)dilation * ((__int128)kernel - 1) - 1;

	if (stride <= 0 || wide < 0 || wide / stride >= INT64_MAX)
		return 0;
	return (uint64_t)(wide / stride) + 1;
}

/* ---- formulas: `at` is where the first argument that counts stands ---- */

static uint64_t matrix_product(const struct args *args, unsigned int at)
{
	const struct arg *a = &args->arg[at], *b = a + 1;

	if (!is_tensor(args, at) || !is_tensor(args, at + 1) || !a->dims || !last(a))
		return 0;
	return times(2, times(elements(a) / last(a), elements(b)));
}

static uint64_t batched_product(const struct args *args, unsigned int at)
{
	const struct arg *a = &args->arg[at], *b = a + 1;

	if (!is_tensor(args, at) || !is_tensor(args, at + 1) || !a->dims || !last(a) ||
	    !a->sizes[0])
		return 0;
	return times(2, times(elements(a) / last(a) / (uint64_t)a->sizes[0], elements(b)));
}

static uint64_t elementwise(const struct args *args, unsigned int at)
{
	return is_tensor(args, at) ? elements(&args->arg[at]) : 0;
}

/* Twice the elements of the second argument, a matrix or vector: each is multiplied by one element
 * of the first, and added. */
static uint64_t vector_product(const struct args *args, unsigned int at)
{
	return is_tensor(args, at) && is_tensor(args, at + 1) ? times(2, elements(&args->arg[at]))
							      : 0;
}

/* aten::linear(input, weight, bias): the weight is out x in. */
static uint64_t linear(const struct args *args, unsigned int at)
{
	if (!is_tensor(args, at) || !is_matrix(args, at + 1, 2))
		return 0;
	return times(2, times(elements(&args->arg[at]), (uint64_t)args->arg[at + 1].sizes[0]));
}

/* Counts the rows of all groups: each goes through one of the matrices. */
static uint64_t grouped_product(const struct args *args, unsigned int at)
{
	if (!is_matrix(args, at, 2) || !is_matrix(args, at + 1, 3))
		return matrix_product(args, at);
	return times(2, times(elements(&args->arg[at]), last(&args->arg[at + 1])));
}

/* aten::conv2d(input, weight, bias, stride, padding, dilation, groups), as in torch.profiler: each
 * list has exactly two numbers. */
static uint64_t conv2d(const struct args *args, unsigned int at)
{
	const struct arg *in = &args->arg[0], *w = &args->arg[1];
	const struct arg *stride = &args->arg[3], *padding = stride + 1, *dilation = stride + 2;
	uint64_t flops;

	if (!is_matrix(args, 0, 4) || !is_matrix(args, 1, 4) || !is_list(args, 3) ||
	    !is_list(args, 4) || !is_list(args, 5) || args->nr < 7 ||
	    args->arg[6].what != GP_INPUT_INT || args->arg[6].integer <= 0 || stride->items != 2 ||
	    padding->items != 2 || dilation->items != 2)
		return 0;
	flops = times(2, times((uint64_t)in->sizes[0], times((uint64_t)in->sizes[1], elements(w))));
	if (!w->sizes[1])
		return 0;
	flops /= (uint64_t)w->sizes[1];
	for (unsigned int i = 0; i < 2; i++)
		flops = times(flops, out_size(in->sizes[2 + i], w->sizes[2 + i], stride->list[i],
					      padding->list[i], dilation->list[i]));
	return flops / (uint64_t)args->arg[6].integer;
}

/* aten::convolution(input, weight, bias, stride, padding, dilation, transposed, ...): each element
 * of the weight meets each place of the output, or of the input where it is transposed. */
static uint64_t convolution(const struct args *args, unsigned int at)
{
	const struct arg *in = &args->arg[0], *w = &args->arg[1];
	uint64_t places;

	if (!is_tensor(args, 0) || !is_tensor(args, 1) || in->dims < 3 || w->dims != in->dims ||
	    !is_list(args, 3) || !is_list(args, 4) || !is_list(args, 5) || args->nr < 7)
		return 0;
	if (is_true(args, 6))
		return times(2, times(times((uint64_t)in->sizes[0], product_of(in, 2, in->dims)),
				      elements(w)));
	places = (uint64_t)in->sizes[0];
	for (unsigned int i = 0; i + 2 < in->dims && i < LIST_MAX; i++)
		places =
			times(places,
			      out_size(in->sizes[2 + i], w->sizes[2 + i], list_at(&args->arg[3], i),
				       list_at(&args->arg[4], i), list_at(&args->arg[5], i)));
	return times(2, times(places, elements(w)));
}

/* aten::convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation,
 * transposed, output_padding, groups, output_mask): the gradients of input and weight each cost
 * what the forward does. */
static uint64_t convolution_backward(const struct args *args, unsigned int at)
{
	const struct arg *grad = &args->arg[0], *in = &args->arg[1], *w = &args->arg[2];
	const struct arg *across = is_true(args, 7) ? in : grad;
	uint64_t once, gradients;

	if (!is_tensor(args, 0) || !is_tensor(args, 1) || !is_tensor(args, 2) || grad->dims < 3 ||
	    in->dims < 3 || !is_list(args, 10) || args->arg[10].items != 3)
		return 0;
	once = times(times((uint64_t)across->sizes[0], product_of(across, 2, across->dims)),
		     elements(w));
	gradients = (args->arg[10].list[0] != 0) + (args->arg[10].list[1] != 0);
	return times(times(2, once), gradients);
}

/* Attention with query, key and value at `at`: for each pair of a query and a key, `by_key`
 * products of the length of a key and `by_value` of the length of a value. */
static uint64_t attention(const struct args *args, unsigned int at, unsigned int causal,
			  uint64_t by_key, uint64_t by_value)
{
	const struct arg *q = &args->arg[at], *k = q + 1, *v = q + 2;
	uint64_t pairs, flops;

	if (!is_tensor(args, at) || !is_tensor(args, at + 1) || !is_tensor(args, at + 2) ||
	    q->dims < 3 || k->dims != q->dims || v->dims != q->dims)
		return 0;
	pairs = times(product_of(q, 0, q->dims - 1U), (uint64_t)k->sizes[k->dims - 2]);
	flops = times(2, times(pairs, plus(times(by_key, last(q)), times(by_value, last(v)))));
	return is_true(args, causal) ? flops / 2 : flops;
}

static uint64_t attention_forward(const struct args *args, unsigned int causal)
{
	return attention(args, 0, causal, 1, 1);
}

static uint64_t attention_backward(const struct args *args, unsigned int causal)
{
	return attention(args, 1, causal, 3, 2);
}

/* aten::mkldnn_rnn_layer(input, weight_ih, weight_hh, ...): both weights apply to each element of
 * each step. */
static uint64_t rnn_layer(const struct args *args, unsigned int at)
{
	const struct arg *in = &args->arg[0];

	if (!is_matrix(args, 0, 3) || !is_matrix(args, 1, 2) || !is_matrix(args, 2, 2))
		return 0;
	return times(2, times(product_of(in, 0, 2),
			      plus(elements(&args->arg[1]), elements(&args->arg[2]))));
}

/* aten::_cudnn_rnn(input, weights, ...). */
static uint64_t rnn(const struct args *args, unsigned int at)
{
	const struct arg *in = &args->arg[0];

	if (!is_matrix(args, 0, 3) || args->nr < 2 || args->arg[1].what != GP_INPUT_TENSOR_LIST)
		return 0;
	return times(2, times(product_of(in, 0, 2), args->arg[1].weights));
}

struct formula {
	const char *name; /* without "aten::" */
	uint64_t (*compute)(const struct args *args, unsigned int at);
	unsigned int at;
	bool torch; /* torch.profiler has the same formula */
};

static const struct formula formulas[] = {
	{"conv2d", conv2d, 0, true},
	{"mm", matrix_product, 0, true},
	{"addmm", matrix_product, 1, true},
	{"bmm", batched_product, 0, true},
	{"baddbmm", batched_product, 1, true},
	{"mul", elementwise, 0, true},
	{"add", elementwise, 0, true},
	{"_addmm_activation", matrix_product, 1, false},
	{"_int_mm", matrix_product, 0, false},
	{"_scaled_mm", matrix_product, 0, false},
	{"_grouped_mm", grouped_product, 0, false},
	{"_scaled_grouped_mm", grouped_product, 0, false},
	{"addbmm", batched_product, 1, false},
	{"mv", vector_product, 0, false},
	{"addmv", vector_product, 1, false},
	{"dot", vector_product, 0, false},
	{"vdot", vector_product, 0, false},
	{"linear", linear, 0, false},
	{"convolution", convolution, 0, false},
	{"convolution_backward", convolution_backward, 0, false},
	{"mkldnn_rnn_layer", rnn_layer, 0, false},
	{"_cudnn_rnn", rnn, 0, false},
	/* `at`: position of is_causal. */
	{"scaled_dot_product_attention", attention_forward, 5, false},
	{"_scaled_dot_product_flash_attention", attention_forward, 4, false},
	{"_scaled_dot_product_flash_attention_for_cpu", attention_forward, 4, false},
	{"_scaled_dot_product_efficient_attention", attention_forward, 6, false},
	{"_scaled_dot_product_cudnn_attention", attention_forward, 6, false},
	{"_scaled_dot_product_flash_attention_backward", attention_backward, 11, false},
	{"_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward, 7, false},
	{"_scaled_dot_product_efficient_attention_backward", attention_backward, 11, false},
	{"_scaled_dot_product_cudnn_attention_backward", attention_backward, 14, false},
};

static const struct formula *formula_of(const char *name)
{
	static const char prefix[] = "aten::";

	if (strncmp(name, prefix, strlen(prefix)))
		return NULL;
	for (size_t i = 0; i < sizeof(formulas) / sizeof(*formulas); i++)
		if (!strcmp(name + strlen(prefix), formulas[i].name))
			return &formulas[i];
	return NULL;
}

int flops_known(const char *name)
{
	return formula_of(name) != NULL;
}

struct flops flops_of(const char *name, const void *inputs, size_t bytes)
{
	const struct formula *f = formula_of(name);
	struct flops flops = {0};
	struct args args;

	if (!f)
		return flops;
	read_args(&args, inputs, bytes);
	flops.own = f->compute(&args, f->at);
	flops.torch = f->torch ? flops.own : 0;
	/* torch.profiler counts it as dense. The true number depends on how many elements there
	 * are. */
	if (args.sparse)
		flops.own = 0;
	return flops;
}
