/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Memory by category: one step of a training made by hand, and what tells of tensors but makes no
 * sense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"

#define T	  (1ULL << 32)
#define WORDS_MAX 600
#define INPUT	  0x1000
#define WEIGHT	  0x2000
#define PRODUCT	  0x3000
#define GRADIENT  0x4000
#define MOMENT	  0x5000
#define OTHER	  0x6000

struct tensors {
	struct gp_ev_tensors ev;
	uint64_t words[WORDS_MAX];
};

static void schemas(struct events *e, const char *lines)
{
	struct {
		struct gp_ev_schemas ev;
		char text[256];
	} s = {.ev.head.kind = GP_EV_SCHEMAS};

	s.ev.bytes = (uint32_t)strlen(lines);
	memcpy(s.text, lines, strlen(lines));
	events__raw(e, &s, sizeof(s.ev) + ((strlen(lines) + 7) & ~(size_t)7));
}

static void raw_words(struct events *e, uint64_t instance, uint32_t first, const uint64_t *words,
		      uint32_t nr)
{
	struct tensors t = {.ev = {.head.kind = GP_EV_TENSORS,
				   .instance = instance,
				   .first = first,
				   .words_nr = nr}};

	memcpy(t.words, words, nr * sizeof(*words));
	events__raw(e, &t, sizeof(t.ev) + nr * 8);
}

/* Tensors of 100 bytes each at these addresses, 0: an input that is none. */
static void inputs(struct events *e, uint64_t instance, const uint64_t *addresses, size_t nr)
{
	uint64_t words[WORDS_MAX];
	uint32_t at = 0;

	for (size_t i = 0; i < nr; i++) {
		words[at++] = addresses[i] ? (uint64_t)GP_TENSOR_STORED << 56 | addresses[i] : 0;
		if (addresses[i])
			words[at++] = 100;
	}
	raw_words(e, instance, 0, words, at);
}

#define INPUTS(e, instance, ...)                                                                   \
	inputs((e), (instance), (const uint64_t[]){__VA_ARGS__},                                   \
	       sizeof((const uint64_t[]){__VA_ARGS__}) / 8)

static void op(struct events *e, const char *name, uint32_t scope, uint64_t nr, uint64_t parent,
	       uint64_t start_ns, uint64_t end_ns)
{
	events__op(e, (struct event_op){.name = name,
					.scope = scope,
					.flags = GP_OP_CALLBACK,
					.instance = T + nr,
					.parent = parent ? T + parent : 0,
					.start_ns = start_ns,
					.end_ns = end_ns});
}

static void allocate(struct events *e, uint64_t time_ns, uint64_t address, int64_t bytes)
{
	events__memory(
		e, (struct event_memory){.time_ns = time_ns, .address = address, .bytes = bytes});
}

static void release(struct events *e, uint64_t time_ns, uint64_t address)
{
	events__memory(e, (struct event_memory){.time_ns = time_ns,
						.address = address,
						.flags = GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN});
}

/* product = input * weight, its gradient, and a step of an optimizer with a moment. */
static void training(struct events *e)
{
	schemas(e, "mul tt\nadd_ Tto\nadd_ Too\ndetach t\nrelu t\n");
	INPUTS(e, T + 1, INPUT, WEIGHT);
	allocate(e, 110, PRODUCT, 100);
	allocate(e, 112, OTHER, 64);
	release(e, 114, OTHER);
	op(e, "aten::mul", GP_SCOPE_FUNCTION, 1, 0, 100, 120);
	INPUTS(e, T + 4, PRODUCT, INPUT);
	allocate(e, 212, GRADIENT, 100);
	op(e, "aten::mul", GP_SCOPE_FUNCTION, 4, 3, 210, 220);
	op(e, "MulBackward0", GP_SCOPE_BACKWARD, 3, 0, 205, 230);
	release(e, 235, PRODUCT);
	INPUTS(e, T + 6, GRADIENT);
	op(e, "aten::detach", GP_SCOPE_FUNCTION, 6, 5, 242, 244);
	op(e, "torch::autograd::AccumulateGrad", GP_SCOPE_BACKWARD, 5, 0, 240, 250);
	INPUTS(e, T + 8, MOMENT, GRADIENT, 0);
	op(e, "aten::add_", GP_SCOPE_FUNCTION, 8, 7, 310, 320);
	INPUTS(e, T + 9, WEIGHT, MOMENT, 0);
	op(e, "aten::add_", GP_SCOPE_FUNCTION, 9, 7, 330, 340);
	op(e, "Optimizer.step#SGD.step", GP_SCOPE_USER, 7, 0, 300, 350);
}

static const struct tl_category_change *next(const struct timeline *t, size_t *at, int change)
{
	assert_true(*at < t->categories.nr);
	assert_int_equal(t->categories.items[*at].change, change);
	return &t->categories.items[(*at)++];
}

static void test_a_training(void **state)
{
	const struct tl_category_change *c;
	const struct timeline *t;
	size_t at = 0, nr[TL_CATEGORIES] = {0};

	training(*state);
	t = events__timeline(*state);
	assert_true(t->has_categories);
	for (int i = 0; i < 3; i++) {
		c = next(t, &at, TL_PREEXISTING);
		assert_int_equal(c->time_ns, 0);
		assert_int_equal(c->bytes, 100);
		nr[c->from]++;
	}
	assert_int_equal(nr[TL_INPUT], 1);
	assert_int_equal(nr[TL_PARAMETER], 1);
	assert_int_equal(nr[TL_OPTIMIZER_STATE], 1);
	c = next(t, &at, TL_CREATE);
	assert_int_equal(c->from, TL_ACTIVATION);
	assert_int_equal(c->time_ns, 110);
	/* No op was called with it: nobody can say what it is for. */
	assert_int_equal(next(t, &at, TL_CREATE)->from, TL_UNKNOWN);
	assert_int_equal(next(t, &at, TL_DESTROY)->bytes, 64);
	assert_int_equal(next(t, &at, TL_CREATE)->from, TL_GRADIENT);
	assert_int_equal(next(t, &at, TL_DESTROY)->from, TL_ACTIVATION);
	c = next(t, &at, TL_WRITE);
	assert_int_equal(c->from, TL_OPTIMIZER_STATE);
	assert_int_equal(c->time_ns, 310);
	c = next(t, &at, TL_WRITE);
	assert_int_equal(c->from, TL_PARAMETER);
	assert_int_equal(c->to, TL_PARAMETER);
	assert_int_equal(at, t->categories.nr);
	assert_int_equal(loss_of(t, "tensors_invalid"), 0);
	assert_int_equal(loss_of(t, "schemas_missing"), 0);
}

/* A tensor whose memory is freed and given out again is another one. */
static void test_an_address_twice(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	schemas(e, "relu t\n");
	allocate(e, 100, INPUT, 100);
	INPUTS(e, T + 1, INPUT);
	op(e, "aten::relu", GP_SCOPE_FUNCTION, 1, 0, 110, 120);
	release(e, 130, INPUT);
	allocate(e, 140, INPUT, 40);
	INPUTS(e, T + 2, INPUT);
	op(e, "aten::relu", GP_SCOPE_FUNCTION, 2, 0, 150, 160);
	/* Its free went missing. */
	allocate(e, 170, INPUT, 8);
	t = events__timeline(e);
	assert_int_equal(t->categories.nr, 4);
	assert_int_equal(t->categories.items[0].bytes, 100);
	assert_int_equal(t->categories.items[1].change, TL_DESTROY);
	assert_int_equal(t->categories.items[2].bytes, 40);
	assert_int_equal(t->categories.items[3].bytes, 8);
}

/* In parts, and with a list. */
static void test_long_inputs(void **state)
{
	uint64_t words[] = {(uint64_t)GP_TENSOR_LIST << 56 | 3,
			    (uint64_t)GP_TENSOR_STORED << 56 | INPUT,
			    100,
			    (uint64_t)GP_TENSOR_NONE << 56,
			    (uint64_t)GP_TENSOR_STORED << 56 | (uint64_t)GP_TENSOR_CUDA << 48 |
				    WEIGHT,
			    200,
			    0};
	struct events *e = *state;
	const struct timeline *t;

	schemas(e, "_foreach_add_ Lo\ncat l\n");
	raw_words(e, T + 1, 0, words, 4);
	raw_words(e, T + 2, 0, words, 1);
	raw_words(e, T + 1, 4, words + 4, 3);
	raw_words(e, T + 2, 1, words + 1, 6);
	op(e, "aten::_foreach_add_", GP_SCOPE_FUNCTION, 1, 0, 100, 110);
	op(e, "aten::_foreach_add_", GP_SCOPE_BACKWARD, 2, 0, 120, 130);
	t = events__timeline(e);
	assert_int_equal(loss_of(t, "tensors_invalid"), 0);
	/* A list with a tensor that is not told fits no schema: the operator is no node. The node
	 * of autograd is one, and who knows what it writes. */
	assert_int_equal(t->categories.nr, 4);
	assert_int_equal(t->categories.items[0].device, GP_TENSOR_CPU);
	assert_int_equal(t->categories.items[1].device, GP_TENSOR_CUDA);
	assert_int_equal(t->categories.items[1].bytes, 200);
	assert_int_equal(t->categories.items[2].change, TL_WRITE);
	assert_int_equal(t->categories.items[3].change, TL_WRITE);
}

static void test_refused(void **state)
{
	uint64_t word = 0, list = (uint64_t)GP_TENSOR_LIST << 56 | 0xffffffff;
	uint64_t cut[] = {(uint64_t)GP_TENSOR_STORED << 56 | INPUT};
	struct gp_ev_tensors lies = {.head.kind = GP_EV_TENSORS, .instance = T + 9, .words_nr = 5};
	struct gp_ev_schemas text = {.head.kind = GP_EV_SCHEMAS, .bytes = UINT32_MAX};
	struct events *e = *state;
	const struct timeline *t;

	raw_words(e, 0, 0, &word, 1);	  /* no instance */
	raw_words(e, T + 1, 3, &word, 1); /* what came before is missing */
	raw_words(e, T + 2, 0, &list, 1); /* longer than it is: seen when it is walked */
	raw_words(e, T + 3, 0, cut, 1);	  /* without its bytes: as well */
	events__raw(e, &lies, sizeof(lies));
	events__raw(e, &text, sizeof(text));
	op(e, "aten::relu", GP_SCOPE_FUNCTION, 2, 0, 100, 110);
	op(e, "aten::relu", GP_SCOPE_FUNCTION, 3, 0, 120, 130);
	INPUTS(e, T + 4, INPUT);
	op(e, "aten::gelu", GP_SCOPE_FUNCTION, 4, 0, 140, 150);
	t = events__timeline(e);
	assert_int_equal(loss_of(t, "tensors_invalid"), 6);
	assert_int_equal(loss_of(t, "schemas_missing"), 1);
	/* Of that operator's tensor it is known that it was there. */
	assert_int_equal(t->categories.nr, 1);
	assert_int_equal(t->categories.items[0].from, TL_UNKNOWN);
}

static void test_without_any(void **state)
{
	const struct timeline *t;

	allocate(*state, 100, INPUT, 100);
	t = events__timeline(*state);
	assert_false(t->has_categories);
	assert_int_equal(t->categories.nr, 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, events_setup, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_training), CASE(test_an_address_twice), CASE(test_long_inputs),
		CASE(test_refused),    CASE(test_without_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
