/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Formulas for floating-point operations: those that the workloads of the integration tests do not
 * reach, and inputs that make no sense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recording/inputs.h"
#include "timeline/build/flops.h"

struct list {
	uint8_t data[GP_INPUTS_BYTES_MAX];
	size_t nr;
};

static void put(struct list *l, uint64_t value)
{
	do {
		l->data[l->nr++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
}

static void sized(struct list *l, enum gp_input what, unsigned int dims, va_list sizes)
{
	l->data[l->nr++] = (uint8_t)what;
	l->data[l->nr++] = 6;
	l->data[l->nr++] = (uint8_t)dims;
	while (dims--)
		put(l, va_arg(sizes, uint64_t));
}

static void tensor(struct list *l, unsigned int dims, ...)
{
	va_list sizes;

	va_start(sizes, dims);
	sized(l, GP_INPUT_TENSOR, dims, sizes);
	va_end(sizes);
}

static void sparse(struct list *l, unsigned int dims, ...)
{
	va_list sizes;

	va_start(sizes, dims);
	sized(l, GP_INPUT_SPARSE, dims, sizes);
	va_end(sizes);
}

static void integer(struct list *l, uint64_t value)
{
	l->data[l->nr++] = GP_INPUT_INT;
	put(l, value * 2);
}

static void one(struct list *l, enum gp_input what)
{
	l->data[l->nr++] = (uint8_t)what;
}

static void integers(struct list *l, unsigned int nr, uint64_t value)
{
	l->data[l->nr++] = GP_INPUT_SCALAR_LIST;
	l->data[l->nr++] = (uint8_t)nr;
	while (nr--)
		integer(l, value);
}

static struct flops of(const char *name, const struct list *l)
{
	assert_true(inputs_are_sane(l->data, l->nr));
	return flops_of(name, l->data, l->nr);
}

static void expect(const char *name, const struct list *l, uint64_t own, uint64_t torch)
{
	assert_int_equal(of(name, l).own, own);
	assert_int_equal(of(name, l).torch, torch);
}

#define U(n) ((uint64_t)(n))

static void test_products(void **state)
{
	struct list mm = {0}, bmm = {0}, mv = {0};

	tensor(&mm, 2, U(3), U(4));
	tensor(&mm, 2, U(4), U(5));
	expect("aten::mm", &mm, 120, 120);
	expect("aten::_scaled_mm", &mm, 120, 0);
	expect("aten::mul", &mm, 12, 12);
	expect("aten::relu", &mm, 0, 0);
	expect("mine::mm", &mm, 0, 0);
	expect("aten::bmm", &mm, 2 * 12 / 4 / 3 * 20, 2 * 12 / 4 / 3 * 20);
	tensor(&bmm, 3, U(2), U(3), U(4));
	tensor(&bmm, 3, U(2), U(4), U(5));
	expect("aten::bmm", &bmm, 240, 240);
	expect("aten::addbmm", &bmm, 0, 0);
	tensor(&mv, 2, U(3), U(4));
	tensor(&mv, 1, U(4));
	expect("aten::mv", &mv, 24, 0);
	expect("aten::linear", &mm, 2 * 12 * 4, 0);
}

/* What they take depends on how many elements there are; torch.profiler counts all. */
static void test_of_sparse_tensors_torch_alone_counts(void **state)
{
	struct list first = {0}, second = {0};

	sparse(&first, 2, U(3), U(4));
	tensor(&first, 2, U(4), U(5));
	expect("aten::mm", &first, 0, 120);
	expect("aten::mul", &first, 0, 12);
	tensor(&second, 2, U(3), U(4));
	sparse(&second, 2, U(4), U(5));
	expect("aten::mm", &second, 0, 120);
}

static struct list conv(unsigned int dims, enum gp_input transposed)
{
	struct list l = {0};

	if (dims == 1)
		tensor(&l, 3, U(2), U(4), U(10));
	else
		tensor(&l, 5, U(2), U(4), U(10), U(10), U(10));
	if (dims == 1)
		tensor(&l, 3, U(6), U(4), U(3));
	else
		tensor(&l, 5, U(6), U(4), U(3), U(3), U(3));
	one(&l, GP_INPUT_OTHER);
	integers(&l, dims, 1);
	integers(&l, dims, 0);
	integers(&l, 1, 1);
	one(&l, transposed);
	integers(&l, dims, 0);
	integer(&l, 1);
	return l;
}

static void test_convolutions(void **state)
{
	struct list l = conv(1, GP_INPUT_FALSE);

	expect("aten::convolution", &l, 2 * 2 * 8 * 6 * 4 * 3, 0);
	l = conv(3, GP_INPUT_FALSE);
	expect("aten::convolution", &l, 2 * 2 * 512 * 6 * 4 * 27, 0);
	l = conv(1, GP_INPUT_TRUE);
	expect("aten::convolution", &l, 2 * 2 * 10 * 6 * 4 * 3, 0);
	/* Only conv2d's own formula needs exactly two. */
	expect("aten::conv2d", &l, 0, 0);
}

static void test_attention(void **state)
{
	struct list l = {0};

	for (int i = 0; i < 3; i++)
		tensor(&l, 4, U(2), U(3), U(5), U(7));
	one(&l, GP_INPUT_DOUBLE);
	memset(l.data + l.nr, 0, 8);
	l.nr += 8;
	one(&l, GP_INPUT_FALSE);
	expect("aten::_scaled_dot_product_flash_attention", &l, 2 * 2 * 3 * 5 * 5 * 14, 0);
	l.data[l.nr - 1] = GP_INPUT_TRUE;
	expect("aten::_scaled_dot_product_flash_attention", &l, 2 * 3 * 5 * 5 * 14, 0);
	expect("aten::_scaled_dot_product_flash_attention_backward", &l, 0, 0);
}

/* Sizes whose product does not fit, sizes of zero, too few arguments, lists cut short. */
static void test_hostile(void **state)
{
	struct list huge = {0}, empty = {0}, none = {0}, cut = {0};

	tensor(&huge, 2, U(1) << 60, U(1) << 60);
	tensor(&huge, 2, U(1) << 60, U(1) << 60);
	expect("aten::mm", &huge, 0, 0);
	expect("aten::add", &huge, 0, 0);
	tensor(&empty, 2, U(3), U(0));
	tensor(&empty, 2, U(0), U(4));
	expect("aten::mm", &empty, 0, 0);
	expect("aten::bmm", &empty, 0, 0);
	expect("aten::linear", &empty, 0, 0);
	for (const char *const *name =
		     (const char *const[]){"aten::mm", "aten::conv2d", "aten::convolution",
					   "aten::convolution_backward", "aten::_cudnn_rnn",
					   "aten::scaled_dot_product_attention", NULL};
	     *name; name++)
		expect(*name, &none, 0, 0);
	tensor(&cut, 4, U(1), U(1), U(4), U(4));
	tensor(&cut, 4, U(1), U(0), U(2), U(2));
	one(&cut, GP_INPUT_OTHER);
	for (int i = 0; i < 3; i++)
		integers(&cut, 2, 1);
	integer(&cut, 1);
	expect("aten::conv2d", &cut, 0, 0);
	cut = (struct list){0};
	tensor(&cut, 4, U(1), U(1), U(INT64_MAX), U(4));
	tensor(&cut, 4, U(1), U(1), U(INT64_MAX), U(2));
	one(&cut, GP_INPUT_OTHER);
	for (int i = 0; i < 3; i++)
		integers(&cut, 2, INT64_MAX - 1);
	integer(&cut, 1);
	expect("aten::conv2d", &cut, 0, 0);
	expect("aten::convolution", &cut, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_of_sparse_tensors_torch_alone_counts),
		cmocka_unit_test(test_convolutions),
		cmocka_unit_test(test_attention),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
