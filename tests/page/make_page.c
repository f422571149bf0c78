/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes what the browser tests open into a folder: memory pages, the JSON beside each, flame
 * graphs, a trace.
 *
 *   make_page FOLDER
 */
#include "output/format/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/make_trace.h"
#include "unit/memory_example.h"
#include "unit/nasty_names.h"
#include "unit/stack_example.h"

#define STEPS 12
#define HELD  40

/* What a step holds at most, on the GPU in units of 9 MB. */
struct step {
	uint64_t from_us;
	int64_t unit_bytes;
	uint32_t held[2][HELD];
};

static uint32_t hold(struct timeline *t, const struct step *s, uint64_t i, bool gpu,
		     const uint32_t *ops)
{
	int64_t bytes = s->unit_bytes * (int64_t)(i % 7 + 2) * (gpu ? 9 : 1);

	return example__alloc_on(t, s->from_us + i * 600 + (gpu ? 10 : 0), bytes, ops[i % 4], 0,
				 gpu ? GP_DEVICE_CUDA : GP_DEVICE_CPU, gpu ? 0 : -1);
}

/* One training step on both devices: activations grow, then they go one by one. */
static void add_step(struct timeline *t, uint64_t from_us, int64_t unit_bytes, const uint32_t *ops)
{
	struct step s = {.from_us = from_us, .unit_bytes = unit_bytes};

	for (uint64_t i = 0; i < HELD; i++) {
		for (int gpu = 0; gpu < 2; gpu++)
			s.held[gpu][i] = hold(t, &s, i, gpu, ops);
	}
	for (uint64_t i = 0; i < HELD; i++) {
		for (int gpu = 0; gpu < 2; gpu++)
			(void)example__free(t, from_us + 26000 + i * 500 + (gpu ? 10 : 0),
					    s.held[gpu][HELD - 1 - i]);
	}
}

/* The same on the GPU by category: parameters stay, activations grow, gradients follow them. */
static void add_categories(struct timeline *t)
{
	const uint8_t gpu = GP_TENSOR_CUDA;

	example__change(t, 0, TL_PREEXISTING, 400 << 20, TL_PARAMETER, TL_PARAMETER, gpu);
	example__change(t, 0, TL_PREEXISTING, 800 << 20, TL_OPTIMIZER_STATE, TL_OPTIMIZER_STATE,
			gpu);
	for (uint64_t i = 0; i < STEPS; i++) {
		uint64_t from_us = 60000 + i * 75000;

		for (uint64_t k = 0; k < HELD; k++)
			example__change(t, from_us + k * 600, TL_CREATE, 40 << 20, TL_ACTIVATION,
					TL_ACTIVATION, gpu);
		for (uint64_t k = 0; k < HELD; k++) {
			example__change(t, from_us + 26000 + k * 500, TL_CREATE, 10 << 20,
					TL_GRADIENT, TL_GRADIENT, gpu);
			example__change(t, from_us + 26100 + k * 500, TL_DESTROY, 40 << 20,
					TL_ACTIVATION, TL_ACTIVATION, gpu);
		}
		example__change(t, from_us + 60000, TL_DESTROY, 10LL * HELD << 20, TL_GRADIENT,
				TL_GRADIENT, gpu);
	}
}

/* Training on a CPU and a GPU; the largest batch is the seventh. */
static void fill_training(struct timeline *t)
{
	uint32_t ops[4], conv;

	conv = example__op(t, "aten::conv2d", TL_NONE, GP_SCOPE_FUNCTION);
	ops[0] = example__op(t, "aten::empty", conv, GP_SCOPE_FUNCTION);
	ops[1] = example__op(t, "aten::batch_norm", TL_NONE, GP_SCOPE_FUNCTION);
	ops[2] = example__op(t, "ConvolutionBackward0", TL_NONE, GP_SCOPE_BACKWARD);
	ops[3] = TL_NONE;
	(void)example__alloc(t, 20000, 96 << 20, ops[1]);
	(void)example__alloc_on(t, 21000, 400 << 20, ops[0], 0, GP_DEVICE_CUDA, 0);
	for (uint64_t i = 0; i < STEPS; i++)
		add_step(t, 60000 + i * 75000, (i == 6 ? 2 : 1) << 20, ops);
	add_categories(t);
	example__refuse(t, 512000, 2LL << 30, ops[0], GP_DEVICE_CUDA, 0);
	example__loss(t, "ring_full", 0);
	example__loss(t, "free_unknown", 17);
}

static void fill_hostile(struct timeline *t)
{
	static const char *const names[] = {
		"</script><script>window.broken = 1</script>",
		"<img src=x onerror=\"window.broken = 1\">",
		"<!-- <script>",
		"\"};window.broken=1;//",
		"${window.broken=1}",
		"\xe2\x80\xae"
		"reversed",
		"bad utf-8: \xff\xfe",
		"a-name-without-any-space-in-it-that-goes-on-and-on-and-on-and-on-and-on-and-on-"
		"and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on",
	};
	const size_t nr = sizeof(names) / sizeof(names[0]);

	t->processes.items[0].comm = names[0];
	t->processes.items[0].cmdline = names[1];
	for (size_t i = 0; i < nr; i++) {
		uint32_t outer = example__op(t, names[(i + 1) % nr], TL_NONE, GP_SCOPE_FUNCTION);
		uint32_t op = example__op(t, names[i], outer, GP_SCOPE_FUNCTION);

		(void)example__alloc(t, 1000 * (i + 1), 4096 * (int64_t)(nr - i), op);
		example__loss(t, names[i], i);
	}
}

/* A million events with one narrow spike. */
static void fill_million(struct timeline *t)
{
	uint32_t op = example__op(t, "aten::empty", TL_NONE, GP_SCOPE_FUNCTION);

	for (uint64_t i = 0; i < 500000; i++) {
		int64_t bytes = i == 200000 ? 64 << 20 : 1 << 20;
		uint32_t a = example__alloc(t, 2 * i, bytes + (int64_t)(i % 1000) * 1024, op);

		(void)example__free(t, 2 * i + 1, a);
	}
}

static void fill_nothing(struct timeline *t)
{
	example__loss(t, "ring_full", 0);
}

static int write_one(const struct timeline *t, const char *folder, const char *name,
		     const char *suffix, int (*writer)(struct sink *, const struct timeline *))
{
	struct sink *s = NULL;
	char path[4096];
	int err;

	(void)snprintf(path, sizeof(path), "%s/%s.%s", folder, name, suffix);
	err = sink__new_path(path, &s);
	if (!err)
		err = writer(s, t);
	if (!err)
		err = sink__finish(s);
	sink__free(s);
	if (err)
		fprintf(stderr, "make_page: %s: %s\n", path, strerror(-err));
	return err;
}

static int write_both(const char *folder, const char *name, void (*fill)(struct timeline *))
{
	struct timeline t;
	int err;

	example__init(&t);
	fill(&t);
	err = write_one(&t, folder, name, "html", output_memory_html);
	if (!err)
		err = write_one(&t, folder, name, "json", output_memory_json);
	example__done(&t);
	return err;
}

/* ---- flame graphs ---- */

static int write_flame(struct sink *s, const struct timeline *t)
{
	return output_flamegraph(s, t, NULL);
}

/* As of a recording of samples: a thread waits where an operator has its stack. */
static int make_sampled(struct timeline *t)
{
	const struct tl_sample wait = {.weight_ns = 5000000, .nr = 5, .syscall = 202};
	struct tl_sampled_stack stack = {.id = t->ops.items[0].stack_id};
	size_t nr = 0;

	t->sampled = true;
	stack.frames = recording__stack(t->recording, stack.id, &nr, &stack.flags);
	stack.nr = (uint32_t)nr;
	return vec_push(&t->sampled_stacks, stack) || vec_push(&t->samples, wait) ? -ENOMEM : 0;
}

/* Which recording: 'p'lain, as if of 's'amples, with 'h'ostile names, or a 'l'arge one. */
static int make_flame(const char *folder, const char *name, char which)
{
	struct stack_example e;
	char rec[4096];
	int err;

	(void)snprintf(rec, sizeof(rec), "%s/%s.gpuprof", folder, name);
	if (which == 'l')
		stack_example__open_large(&e, rec, 3000, 80);
	else
		stack_example__open(&e, rec, which == 'h');
	err = which == 's' ? make_sampled(e.timeline) : 0;
	if (!err)
		err = write_one(e.timeline, folder, name, "html", write_flame);
	stack_example__close(&e);
	return err;
}

/* Both pages of a recording in which everything has each name that a hostile target may choose. */
static int make_nasty(const char *folder)
{
	struct recording *r = NULL;
	struct timeline *t = NULL;
	struct reason why = {0};
	char rec[4096];
	int err;

	(void)snprintf(rec, sizeof(rec), "%s/nasty.gpuprof", folder);
	nasty_write(rec, NASTY_TRACE);
	err = recording__open(rec, &why, &r);
	err = err ? err : timeline__new(r, &why, &t);
	err = err ? err : write_one(t, folder, "nasty-memory", "html", output_memory_html);
	err = err ? err : write_one(t, folder, "nasty-flame", "html", write_flame);
	timeline__free(t);
	recording__free(r);
	return err;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_page FOLDER\n");
		return 2;
	}
	return write_both(argv[1], "training", fill_training) ||
	       write_both(argv[1], "hostile", fill_hostile) ||
	       write_both(argv[1], "million", fill_million) ||
	       write_both(argv[1], "nothing", fill_nothing) || make_flame(argv[1], "flame", 'p') ||
	       make_flame(argv[1], "flame-samples", 's') ||
	       make_flame(argv[1], "flame-hostile", 'h') ||
	       make_flame(argv[1], "flame-large", 'l') || make_nasty(argv[1]) ||
	       make_trace(argv[1]);
}
